/*
 * Hedged requests: if the first try has no answer after HEDGE_AFTER_NS, a second one goes to
 * another replica. The first answer counts, and the other try is cancelled. One slow replica in
 * twenty then costs a few more requests, and no longer the user's time.
 *
 * Both tries are jobs of one limiter, so hedges cannot overload the replicas. Played on a virtual
 * clock: the same requests without and with hedges.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>

#define HEDGE_AFTER_NS (20 * TW_MILLISECOND)

enum { TRIES = 2, REQUESTS = 2000 };

struct request;

struct
try {
	struct request *request;
	tw_job job, attempt; /* of the submit; of the attempt that runs */
};

struct request {
	pthread_mutex_t lock;
	struct try tries[TRIES];
	unsigned open_tries;
	bool answered, hedges;
	tw_timer hedge;
	uint64_t sent_ns, took_ns;
};

static tw_sim *sim;
static tw_service *service;
static tw_limiter *limiter;
static unsigned tries_sent;

/* ----------------------------------------------------------------- the policy */

static int ask_replica(void *arg, struct tw_job_run *run);

/* A try that is not wanted any more: what it waits for is given up. */
static void on_stop(void *arg, tw_job job, enum tw_job_status why)
{
	(void)arg;
	(void)why;
	tw_job_complete(limiter, job, -ECANCELED, NULL);
}

static void on_done(void *arg, const struct tw_job_result *result)
{
	struct try *mine = arg;
	struct request *request = mine->request;
	struct try *other = &request->tries[mine == &request->tries[0]];
	pthread_mutex_lock(&request->lock);
	bool wins = result->status == TW_JOB_STATUS_SUCCEEDED && !request->answered;
	bool other_is_open = --request->open_tries > 0;
	request->answered |= wins;
	pthread_mutex_unlock(&request->lock);
	if (!wins)
		return;
	request->took_ns = tw_clock_now(tw_sim_clock(sim)) - request->sent_ns;
	tw_cancel(service, request->hedge);
	if (other_is_open)
		tw_job_cancel(limiter, other->job);
}

static void send_try(struct request *request, int number)
{
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	struct try *mine = &request->tries[number];
	mine->request = request;
	task.fn = ask_replica;
	task.arg = mine;
	task.done = on_done;
	task.stop = on_stop;
	task.flags = TW_LIMITER_TASK_ASYNC;
	tries_sent++;
	request->open_tries++; /* under the lock, or before the first try */
	if (tw_limiter_submit_task(limiter, &task, &mine->job) < 0)
		request->open_tries--;
}

static void on_hedge(void *arg)
{
	struct request *request = arg;
	pthread_mutex_lock(&request->lock);
	if (!request->answered)
		send_try(request, 1);
	pthread_mutex_unlock(&request->lock);
}

static void send_request(void *arg)
{
	struct request *request = arg;
	request->sent_ns = tw_clock_now(tw_sim_clock(sim));
	if (request->hedges)
		tw_schedule(service, HEDGE_AFTER_NS, on_hedge, request, &request->hedge);
	send_try(request, 0);
}

/* ------------------------------------------------------------------ the play */

static void on_answer(void *arg)
{
	struct try *mine = arg;
	tw_job_complete(limiter, mine->attempt, 0, NULL); /* refused if it was cancelled */
}

/* One in twenty is slow. */
static int ask_replica(void *arg, struct tw_job_run *run)
{
	struct try *mine = arg;
	mine->attempt = run->job;
	bool slow = tw_sim_random(sim, 20) == 0;
	uint64_t takes_ns = (slow ? 400 : 2 + tw_sim_random(sim, 8)) * TW_MILLISECOND;
	int r = tw_schedule(service, takes_ns, on_answer, mine, NULL);
	return r < 0 ? r : TW_JOB_PENDING;
}

static int by_time(const void *a, const void *b)
{
	uint64_t left = ((const struct request *)a)->took_ns,
		 right = ((const struct request *)b)->took_ns;
	return (left > right) - (left < right);
}

/* Returns the 99th percentile. */
static uint64_t play(bool hedges)
{
	static struct request requests[REQUESTS];
	struct tw_sim_config config = TW_INIT(tw_sim_config);
	struct tw_limiter_config limits = TW_INIT(tw_limiter_config);
	limits.max_concurrency = 256;
	limits.flags = TW_LIMITER_NONBLOCKING;
	config.seed = 7;
	if (tw_sim_create(&sim, &config) < 0)
		exit(1);
	service = tw_sim_service(sim);
	if (tw_limiter_create(&limiter, service, &limits) < 0)
		exit(1);
	tries_sent = 0;
	for (int i = 0; i < REQUESTS; i++) {
		requests[i] = (struct request){.lock = PTHREAD_MUTEX_INITIALIZER, .hedges = hedges};
		tw_schedule(service, (uint64_t)i * 2 * TW_MILLISECOND, send_request, &requests[i],
			    NULL);
	}
	tw_sim_run_for(sim, 10 * TW_SECOND);
	if (tw_limiter_destroy(limiter) < 0 || tw_sim_destroy(sim) < 0)
		exit(1);
	qsort(requests, REQUESTS, sizeof requests[0], by_time);
	return requests[REQUESTS * 99 / 100].took_ns;
}

int main(void)
{
	uint64_t plain_ns = play(false);
	unsigned plain_tries = tries_sent;
	uint64_t hedged_ns = play(true);
	printf("99th percentile: %.0f ms, with hedges %.0f ms; tries: %u, with hedges %u\n",
	       (double)plain_ns / 1e6, (double)hedged_ns / 1e6, plain_tries, tries_sent);
	return hedged_ns < plain_ns / 5 && tries_sent < plain_tries + plain_tries / 10 ? 0 : 1;
}
