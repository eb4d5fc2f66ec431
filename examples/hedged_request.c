/*
 * Hedged requests: if the first try has no answer after HEDGE_AFTER_NS, a second try goes to
 * another replica. The first answer counts, and the other try is cancelled. If one replica in
 * twenty is slow, this costs a few more requests, and no longer the user's time.
 *
 * Both tries are jobs of one limiter, so hedges cannot overload the replicas. Requests are
 * allocated and counted: any number may be under way. main plays the same requests without and
 * with hedges, on a virtual clock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>

#define HEDGE_AFTER_NS (20 * TW_MILLISECOND)

enum { TRIES = 2, REQUESTS = 2000 };

/* What the requests share. */
struct client {
	tw_sim *sim;
	tw_service *service;
	tw_limiter *limiter;
	bool hedges;
	unsigned requests, tries; /* sent */
	uint64_t took_ns[REQUESTS];
};

struct replica_try {
	struct request *request;
	tw_job job; /* of the submit */
};

/* Freed by the last of its users: a try that has been submitted, and the timer of the hedge. */
struct request {
	struct client *client;
	pthread_mutex_t lock; /* for all that follows */
	struct replica_try tries[TRIES];
	bool answered;
	int users;
	tw_timer hedge;
	uint64_t sent_ns;
};

static void let_go(struct request *request)
{
	pthread_mutex_lock(&request->lock);
	bool is_last = --request->users == 0;
	pthread_mutex_unlock(&request->lock);
	if (!is_last)
		return;
	pthread_mutex_destroy(&request->lock);
	free(request);
}

/* ----------------------------------------------------------------- the policy */

static int ask_replica(void *arg, struct tw_job_run *run);

/* The try is not wanted any more. It ends now: its answer, if one comes, is refused. */
static void on_stop(void *arg, tw_job job, enum tw_job_status why)
{
	struct replica_try *mine = arg;
	(void)why;
	tw_job_complete(mine->request->client->limiter, job, -ECANCELED, NULL);
}

static void on_done(void *arg, const struct tw_job_result *result)
{
	struct replica_try *mine = arg;
	struct request *request = mine->request;
	struct client *client = request->client;
	if (result->status != TW_JOB_STATUS_SUCCEEDED)
		return;
	pthread_mutex_lock(&request->lock);
	bool wins = !request->answered;
	request->answered = true;
	tw_job other = request->tries[mine == &request->tries[0]].job;
	pthread_mutex_unlock(&request->lock);
	if (!wins)
		return;
	client->took_ns[client->requests++] = tw_service_now(client->service) - request->sent_ns;
	tw_cancel(client->service, request->hedge);
	tw_job_cancel(client->limiter, other); /* of no effect if there is none */
}

static void on_release(void *arg)
{
	let_go(((struct replica_try *)arg)->request);
}

/* The request is locked. */
static void send_try(struct request *request, int number)
{
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	struct replica_try *mine = &request->tries[number];
	mine->request = request;
	task.fn = ask_replica;
	task.arg = mine;
	task.done = on_done;
	task.stop = on_stop;
	task.release = on_release;
	task.flags = TW_LIMITER_TASK_ASYNC;
	if (tw_limiter_submit_task(request->client->limiter, &task, &mine->job) < 0)
		return;
	request->users++;
	request->client->tries++;
}

static void on_hedge(void *arg)
{
	struct request *request = arg;
	pthread_mutex_lock(&request->lock);
	if (!request->answered)
		send_try(request, 1);
	pthread_mutex_unlock(&request->lock);
}

static void end_hedge(void *arg, enum tw_fate fate)
{
	(void)fate;
	let_go(arg);
}

static void send_request(void *arg)
{
	struct client *client = arg;
	struct request *request = calloc(1, sizeof *request);
	if (!request)
		return;
	request->client = client;
	request->sent_ns = tw_service_now(client->service);
	request->users = 1; /* this function */
	pthread_mutex_init(&request->lock, NULL);
	pthread_mutex_lock(&request->lock);
	if (client->hedges) {
		struct tw_task task = TW_INIT(tw_task);
		task.fn = on_hedge;
		task.arg = request;
		task.release = end_hedge;
		task.when_ns = HEDGE_AFTER_NS;
		request->users += tw_schedule_task(client->service, &task, &request->hedge) == 0;
	}
	send_try(request, 0);
	pthread_mutex_unlock(&request->lock);
	let_go(request);
}

/* ------------------------------------------------------------------ the play */

/* An answer on its way. It may outlive its try. */
struct answer {
	tw_limiter *limiter;
	tw_job attempt;
};

static void on_answer(void *arg)
{
	struct answer *answer = arg;
	tw_job_complete(answer->limiter, answer->attempt, 0, NULL);
	free(answer);
}

/* One in twenty is slow. */
static int ask_replica(void *arg, struct tw_job_run *run)
{
	struct client *client = ((struct replica_try *)arg)->request->client;
	struct answer *answer = malloc(sizeof *answer);
	if (!answer)
		return -ENOMEM;
	*answer = (struct answer){.limiter = run->limiter, .attempt = run->job};
	bool slow = tw_sim_random(client->sim, 20) == 0;
	uint64_t takes_ns = (slow ? 400 : 2 + tw_sim_random(client->sim, 8)) * TW_MILLISECOND;
	int r = tw_schedule(client->service, takes_ns, on_answer, answer, NULL);
	if (r < 0)
		free(answer);
	return r < 0 ? r : TW_JOB_PENDING;
}

static int by_time(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return (left > right) - (left < right);
}

/* Returns the 99th percentile. */
static uint64_t play(bool hedges, unsigned *tries)
{
	struct client *client = calloc(1, sizeof *client);
	struct tw_sim_config config = TW_INIT(tw_sim_config);
	struct tw_limiter_config limits = TW_INIT(tw_limiter_config);
	limits.max_concurrency = 256;
	limits.flags = TW_LIMITER_NONBLOCKING;
	config.seed = 7;
	if (!client || tw_sim_create(&client->sim, &config) < 0)
		exit(1);
	client->service = tw_sim_service(client->sim);
	client->hedges = hedges;
	if (tw_limiter_create(&client->limiter, client->service, &limits) < 0)
		exit(1);
	for (uint64_t i = 0; i < REQUESTS; i++)
		tw_schedule(client->service, i * 2 * TW_MILLISECOND, send_request, client, NULL);
	tw_sim_run_for(client->sim, 10 * TW_SECOND);
	if (tw_limiter_destroy(client->limiter) < 0 || tw_sim_destroy(client->sim) < 0)
		exit(1);
	qsort(client->took_ns, client->requests, sizeof client->took_ns[0], by_time);
	uint64_t p99_ns = client->took_ns[client->requests * 99 / 100];
	*tries = client->requests == REQUESTS ? client->tries : 0;
	free(client);
	return p99_ns;
}

int main(void)
{
	unsigned plain_tries, hedged_tries;
	uint64_t plain_ns = play(false, &plain_tries), hedged_ns = play(true, &hedged_tries);
	printf("99th percentile: %.0f ms, with hedges %.0f ms; tries: %u, with hedges %u\n",
	       (double)plain_ns / 1e6, (double)hedged_ns / 1e6, plain_tries, hedged_tries);
	return plain_tries && hedged_ns < plain_ns / 5 &&
		       hedged_tries < plain_tries + plain_tries / 10
		   ? 0
		   : 1;
}
