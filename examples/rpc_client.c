/*
 * An RPC client that has many calls in progress:
 *
 *   timeouts        of each attempt, and of the whole call
 *   retries         unless the error is final, after a delay that the server names or that grows
 *   a hedge         after 5 ms the request goes to a second server, too; the first answer counts
 *   stale answers   a request carries a handle of its attempt, which is refused after the end
 *
 * Two pipes and a thread take the place of the network and its servers. They answer some calls late
 * and some with an error. Usage: rpc_client [CALLS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel/layers.h>
#include <unistd.h>

/* Errors of an answer. BUSY - n: come back in n milliseconds. */
enum { NOT_FOUND = -ENOENT, BROKEN = -EIO, BUSY = -1000 };
enum { MANY = 128 }; /* messages: a pipe keeps a write of at most 4,096 bytes in one piece */
struct message {
	tw_job job;
	uint64_t value; /* the answer's is one more than the request's */
	int error;
	bool hedge; /* to the second server */
};

static tw_service *service, *late_answers; /* of the client, of the servers */
static tw_limiter *limiter;
static int requests[2], answers[2]; /* pipes */
static atomic_uint hedged, stale, wrong;

static void send_all(int pipe, const struct message *messages, size_t n)
{
	if (n > 0 && write(pipe, messages, n * sizeof *messages) < 0)
		perror("rpc_client: write");
}

struct call {
	struct message request; /* of the attempt that runs */
	tw_timer hedge;
};

static void send_hedge(void *arg)
{
	struct message request = ((struct call *)arg)->request;
	request.hedge = true;
	send_all(requests[1], &request, 1);
	atomic_fetch_add(&hedged, 1);
}

/* Begins an attempt. No thread waits for its answer. */
static int attempt(void *arg, struct tw_job_run *run)
{
	struct call *call = arg;
	call->request.job = run->job;
	tw_schedule(service, 5 * TW_MILLISECOND, send_hedge, call, &call->hedge);
	send_all(requests[1], &call->request, 1);
	return TW_JOB_PENDING;
}

/* An attempt is not answered in time: it ends now, and its answer will be stale. */
static void stop(void *arg, tw_job job, enum tw_job_status why)
{
	(void)arg, (void)why;
	tw_job_complete(limiter, job, -ETIMEDOUT, NULL);
}

/* An attempt has failed. Its hedge ends before the next one begins. */
static bool allow(void *arg, tw_job job, int error, uint32_t number, int64_t *delay_ns)
{
	(void)job, (void)number;
	tw_cancel_wait(service, ((struct call *)arg)->hedge, TW_FOREVER);
	if (error <= BUSY)
		*delay_ns = (BUSY - error) * (int64_t)TW_MILLISECOND;
	return error != NOT_FOUND;
}

static void done(void *arg, const struct tw_job_result *result)
{
	bool succeeded = result->status == TW_JOB_STATUS_SUCCEEDED;
	if (succeeded && (uintptr_t)result->value != ((struct call *)arg)->request.value + 1)
		atomic_fetch_add(&wrong, 1);
}

/* Nothing of the job follows. Its hedge may still be running. */
static void release(void *arg)
{
	tw_cancel_wait(service, ((struct call *)arg)->hedge, TW_FOREVER);
	free(arg);
}

static bool start_call(uint64_t value)
{
	struct call *call = calloc(1, sizeof *call);
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	if (!call)
		return false;
	call->request.value = value;
	task.fn = attempt;
	task.arg = call;
	task.done = done;
	task.stop = stop;
	task.release = release;
	task.flags = TW_LIMITER_TASK_ASYNC;
	task.wait_ns = TW_MAX_DELAY_NS; /* while max_pending calls wait */
	task.attempt_timeout_ns = 250 * TW_MILLISECOND;
	task.timeout_ns = 10 * TW_SECOND;
	task.retry.count = 8;
	task.retry.allow = allow;
	task.retry.delay_ns = TW_MILLISECOND;
	task.retry.factor_x100 = 200;
	task.retry.jitter = TW_RETRY_JITTER_FULL;
	if (tw_limiter_submit_task(limiter, &task, NULL) == 0)
		return true;
	free(call);
	return false;
}

static void *read_answers(void *arg)
{
	struct message m[MANY];
	for (ssize_t n; (n = read(answers[0], m, sizeof m)) > 0;)
		for (size_t i = 0; i < (size_t)n / sizeof m[0]; i++)
			if (tw_job_complete(limiter, m[i].job, m[i].error,
					    (void *)(uintptr_t)m[i].value) != 0)
				atomic_fetch_add(&stale, 1);
	return arg;
}

static void answer_late(void *arg)
{
	send_all(answers[1], arg, 1);
	free(arg);
}

/* Returns: *m is the answer; false: it comes later. */
static bool serve(struct message *m)
{
	static const int errors[] = {NOT_FOUND, BUSY - 3, BROKEN};
	uint64_t kind = m->value++ % 1000, first = m->job.attempt == 1;
	m->error = kind == 0 || (kind < 3 && first) ? errors[kind] : 0;
	uint64_t late_ms = kind == 3 && first ? 300 : kind % 100 == 4 && !m->hedge ? 20 : 0;
	struct message *late = late_ms > 0 ? malloc(sizeof *late) : NULL;
	if (!late)
		return true;
	*late = *m;
	tw_schedule(late_answers, late_ms * TW_MILLISECOND, answer_late, late, NULL);
	return false;
}

static void *servers(void *arg)
{
	struct message m[MANY];
	for (ssize_t n; (n = read(requests[0], m, sizeof m)) > 0;) {
		size_t ready = 0;
		for (size_t i = 0; i < (size_t)n / sizeof m[0]; i++)
			if (serve(&m[i]))
				m[ready++] = m[i];
		send_all(answers[1], m, ready);
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned calls = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
	struct tw_limiter_config config = {.size = sizeof config,
					   .max_concurrency = 200,
					   .max_pending = 2000,
					   .flags = TW_LIMITER_NONBLOCKING};
	pthread_t threads[2];
	if (pipe(requests) || pipe(answers) || tw_service_create(&service, NULL) ||
	    tw_service_create(&late_answers, NULL) ||
	    tw_limiter_create(&limiter, service, &config) ||
	    pthread_create(&threads[0], NULL, servers, NULL) ||
	    pthread_create(&threads[1], NULL, read_answers, NULL))
		return 1;
	uint64_t begin = tw_service_now(service);
	for (unsigned i = 0; i < calls; i++)
		if (!start_call(i))
			return 1;
	tw_limiter_wait_idle(limiter, TW_FOREVER);
	double seconds = (double)(tw_service_now(service) - begin) / 1e9;
	struct tw_limiter_stats stats = TW_INIT(tw_limiter_stats);
	tw_limiter_stats(limiter, &stats);
	close(requests[1]);
	pthread_join(threads[0], NULL);
	tw_service_close(late_answers, TW_CLOSE_DRAIN, TW_FOREVER);
	tw_service_destroy(late_answers);
	close(answers[1]);
	pthread_join(threads[1], NULL);
	tw_limiter_destroy(limiter);
	tw_service_destroy(service);
	printf("%u calls, %.0f a second: %u hedges, %u stale answers, %u wrong ones\n", calls,
	       calls / seconds, hedged, stale, wrong);
	return stats.succeeded == calls - (calls + 999) / 1000 && wrong == 0 ? 0 : 1;
}
