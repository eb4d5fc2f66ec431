/*
 * A limiter that is tuned while it runs: calls to a backend, at most 20 in 100 ms.
 *
 *   an outage       each job may be tried four times, but the budget stops the storm: 10 retries
 *                   over all jobs, and one more for each ten jobs that succeed
 *   more quota      the backend allows ten times as many calls: tw_limiter_set_rate
 *   an urgent job   passes those that wait: tw_job_set_priority
 *   the end         new calls are refused, the old ones run: tw_limiter_close_then, which waits for
 *                   nothing
 */
#include <stdatomic.h>
#include <stdio.h>
#include <tickwheel.h>

enum { OUTAGE_JOBS = 15, JOBS = 60, URGENT = JOBS - 1 };

static atomic_bool down = true;
static atomic_int calls, place, urgent_place, ended;

static int call(void *arg, struct tw_job_run *run)
{
	int number = *(int *)arg;
	(void)run;
	calls++;
	if (down)
		return -1; /* the backend's error */
	int my_place = place++;
	if (number == URGENT)
		urgent_place = my_place;
	return 0;
}

static void on_end(void *arg, const struct tw_job_result *results, size_t n)
{
	(void)arg;
	(void)results;
	(void)n;
	ended = 1;
}

static int submit(tw_limiter *limiter, int *number, tw_job *out)
{
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	task.fn = call;
	task.arg = number;
	task.retry = (struct tw_retry){.count = 3, .delay_ns = TW_MILLISECOND};
	return tw_limiter_submit_task(limiter, &task, out);
}

int main(void)
{
	static int numbers[JOBS];
	tw_service *service;
	tw_limiter *limiter;
	tw_job urgent;
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	config.max_concurrency = 1;
	config.rate_starts = 20;
	config.rate_interval_ns = 100 * TW_MILLISECOND;
	config.budget_retries = 10;
	config.budget_percent = 10;
	if (tw_service_create(&service, NULL) < 0 ||
	    tw_limiter_create(&limiter, service, &config) < 0)
		return 1;

	for (int i = 0; i < OUTAGE_JOBS; i++)
		submit(limiter, &numbers[i], NULL);
	tw_limiter_wait_idle(limiter, TW_FOREVER);
	printf("outage: %d jobs, %d calls\n", OUTAGE_JOBS, (int)calls);
	int outage_calls = calls;

	down = false;
	tw_limiter_pause(limiter);
	for (int i = 0; i < JOBS; i++) {
		numbers[i] = i;
		submit(limiter, &numbers[i], i == URGENT ? &urgent : NULL);
	}
	tw_job_set_priority(limiter, urgent, 10);
	tw_limiter_resume(limiter);
	tw_limiter_set_rate(limiter, 200, 100 * TW_MILLISECOND);
	tw_limiter_close_then(limiter, TW_CLOSE_DRAIN, on_end, NULL);
	bool refused = submit(limiter, &numbers[0], NULL) < 0;
	tw_limiter_wait_idle(limiter, TW_FOREVER);
	printf("then: %d jobs, the urgent one was number %d; a late one was %s\n", (int)place,
	       urgent_place + 1, refused ? "refused" : "taken");
	while (tw_limiter_destroy(limiter) < 0) { /* a worker may be about to return */
	}
	tw_service_destroy(service);
	return outage_calls == OUTAGE_JOBS + 10 && place == JOBS && urgent_place <= 1 && refused &&
		       ended
		   ? 0
		   : 1;
}
