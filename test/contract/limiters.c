/* limiter.h, job.h. */
#include <errno.h>

#include "calls.h"

static tw_service *service;
static tw_limiter *limiter;       /* one permit, one job in line */
static tw_job job, kept, waiting; /* runs, asynchronously; settled; in line */
static _Atomic int begun;

#define CONFIG(more_flags, ...)                         \
	STRUCT(tw_limiter_config, .max_concurrency = 1, \
	       .flags = TW_LIMITER_NONBLOCKING | (more_flags), __VA_ARGS__)
#define TASK(...) STRUCT(tw_limiter_task, .fn = succeed, __VA_ARGS__)

static int succeed(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	return 0;
}

static int pend(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	begun = 1;
	return TW_JOB_PENDING;
}

static void idle(void *arg, const struct tw_job_result *results, size_t n)
{
	(void)arg, (void)results, (void)n;
}

/* ---------------------------------------------------------------------- good */

static void job_calls(void)
{
	struct tw_job_result result;
	CALL(tw_job_state(limiter, job));
	CALL(tw_job_set_priority(limiter, waiting, 1));
	CALL(tw_job_wait(limiter, job, 0, &result));
	CALL(tw_job_wait(limiter, kept, 0, &result));
	CALL(tw_job_wait(limiter, kept, 0, &result));
	CALL(tw_job_cancel(limiter, waiting));
	CALL(tw_job_cancel(limiter, waiting));
	CALL(tw_job_set_priority(limiter, waiting, 1));
	CALL(tw_job_cancel(limiter, job));
	CALL(tw_job_complete(limiter, job, 0, NULL));
	CALL(tw_job_complete(limiter, job, 0, NULL));
}

static void submits(void)
{
	tw_job out;
	CALL(tw_limiter_submit(limiter, succeed, NULL, &out));
	CALL(tw_limiter_submit_task(limiter, TASK(.wait_ns = 0), &out));
	CALL(tw_limiter_submit_task(limiter, TASK(.wait_ns = MS), &out));
}

static void limiter_calls(void)
{
	CALL(tw_limiter_stats(limiter, PLAIN(tw_limiter_stats)));
	CALL(tw_limiter_set_paused(limiter, true));
	CALL(tw_limiter_set_paused(limiter, false));
	CALL(tw_limiter_set_max_concurrency(limiter, 1));
	CALL(tw_limiter_set_rate(limiter, 1000, MS));
	CALL(tw_limiter_on_idle(limiter, idle, NULL));
	CALL(tw_limiter_wait_idle(limiter, 0));
	CALL(tw_limiter_wait_idle(limiter, MS));
}

static void ends(void)
{
	CALL(tw_limiter_close(limiter, TW_CLOSE_DROP, MS));
	CALL(tw_limiter_destroy(limiter));
}

static void creates(void)
{
	tw_limiter *other;
	CALL(tw_limiter_create(&other, service, CONFIG(0, .max_pending = 1)));
	CALL(tw_limiter_create(&other, service,
			       CONFIG(0, .rate_starts = 1, .rate_interval_ns = MS)));
}

static void in_the_child(void)
{
	submits();
	job_calls();
	limiter_calls();
	creates();
	ends();
}

/* What may need memory, on a limiter that is new. */
#define FRESH(call)                                                                        \
	do {                                                                               \
		tw_limiter *fresh;                                                         \
		MUST(tw_limiter_create(                                                    \
		    &fresh, service,                                                       \
		    CONFIG(TW_LIMITER_PAUSED, .rate_starts = 1, .rate_interval_ns = MS))); \
		CALL(call);                                                                \
	} while (0)

static void grows(void)
{
	tw_job out;
	FRESH(tw_limiter_submit(fresh, succeed, NULL, &out));
	FRESH(tw_limiter_submit_task(fresh, TASK(.wait_ns = MS), &out));
	FRESH(tw_limiter_on_idle(fresh, idle, NULL));
	FRESH(tw_limiter_set_rate(fresh, 1000, MS));
	tw_limiter *fresh;
	MUST(tw_limiter_create(&fresh, service, CONFIG(TW_LIMITER_PAUSED, .max_pending = 99)));
	for (int i = 0; i < 64; i++)
		MUST(tw_limiter_submit(fresh, succeed, NULL, &out));
	CALL(tw_job_set_priority(fresh, out, 7));
	CALL(tw_limiter_set_max_concurrency(fresh, 99));
}

/* ----------------------------------------------------------------------- bad */

static void bad_limiters(void)
{
	tw_limiter *other;
	situation("with bad arguments");
	CALL(tw_limiter_create(&other, service, BIG(tw_limiter_config, .max_concurrency = 1)));
	CALL(tw_limiter_destroy(NULL));
}

static void bad_jobs(void)
{
	tw_job out;
	struct tw_job_result result;
	situation("with bad arguments");
	CALL(tw_limiter_submit_task(limiter, BIG(tw_limiter_task, .fn = succeed), &out));
	CALL(tw_job_complete(limiter, (tw_job){0}, 0, NULL));
	CALL(tw_job_cancel(limiter, (tw_job){0}));
	CALL(tw_job_wait(limiter, (tw_job){0}, 0, &result));
	CALL(tw_job_state(limiter, (tw_job){0}));
}

/* -------------------------------------------------------------------- inside */

static tw_job own;

static int from_a_job(void *arg, struct tw_job_run *run)
{
	struct tw_job_result result;
	struct inside *inside = arg;
	own = run->job;
	situation("inside its job");
	CALL(tw_job_wait(limiter, own, MS, &result));
	CALL(tw_job_complete(limiter, own, 0, NULL));
	CALL(tw_limiter_close(limiter, TW_CLOSE_DROP, MS));
	CALL(tw_limiter_destroy(limiter));
	limiter_calls();
	inside->over = 1;
	return 0;
}

static void open_limiter(void)
{
	MUST(tw_service_create(&service, NULL));
	MUST(tw_limiter_create(
	    &limiter, service,
	    CONFIG(0, .max_pending = 1, .rate_starts = 1000, .rate_interval_ns = 1)));
}

static void end_limiter(void)
{
	MUST(tw_limiter_close(limiter, TW_CLOSE_DROP, TW_FOREVER));
	MUST(tw_limiter_destroy(limiter));
	MUST(tw_service_destroy(service));
}

/* One job runs, one is in line, and one has settled. */
static void fill(void)
{
	MUST(tw_limiter_submit_task(limiter, TASK(.flags = TW_LIMITER_TASK_KEEP), &kept));
	MUST(tw_job_wait(limiter, kept, TW_FOREVER, NULL));
	begun = 0;
	MUST(tw_limiter_submit_task(
	    limiter, STRUCT(tw_limiter_task, .fn = pend, .flags = TW_LIMITER_TASK_ASYNC), &job));
	while (!begun) {
	}
	MUST(tw_limiter_submit(limiter, succeed, NULL, &waiting));
}

/* --------------------------------------------------------------------- rooms */

void limiters(void)
{
	open_limiter();
	bad_limiters();
	fill();
	in_child(in_the_child);
	situation("full");
	submits();
	limiter_calls();
	CALL(tw_limiter_destroy(limiter));
	MUST(tw_job_complete(limiter, job, 0, NULL));
	MUST(tw_limiter_wait_idle(limiter, TW_FOREVER));
	without_memory(creates);
	without_memory(grows);
	struct inside in = {0};
	MUST(tw_limiter_submit(limiter, from_a_job, &in, NULL));
	await_over(&in);
	CALL(tw_limiter_wait_idle(limiter, TW_FOREVER));
	MUST(tw_limiter_close(limiter, TW_CLOSE_DROP, TW_FOREVER));
	situation("closed");
	submits();
	limiter_calls();
	ends();
	tw_limiter *other;
	MUST(tw_service_create(&service, NULL));
	MUST(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER));
	situation("of a closed service");
	CALL(tw_limiter_create(&other, service, CONFIG(0, .max_pending = 1)));
	MUST(tw_service_destroy(service));
}

static int count_to_nine(void *arg, struct tw_job_run *run)
{
	(void)run;
	begun = 1;
	return arg ? TW_JOB_PENDING : 0;
}

void jobs(void)
{
	open_limiter();
	fill();
	bad_jobs();
	situation("open");
	CALL(tw_limiter_close(limiter, TW_CLOSE_DRAIN, MS));
	job_calls();
	end_limiter();
	open_limiter();
	situation("paused");
	tw_limiter *refuses;
	MUST(tw_limiter_create(
	    &refuses, service,
	    CONFIG(TW_LIMITER_PAUSED | TW_LIMITER_PAUSED_REFUSES, .max_pending = 99)));
	CALL(tw_limiter_submit(refuses, succeed, NULL, NULL));
	CALL(tw_limiter_submit_task(refuses, TASK(.wait_ns = MS), NULL));
	MUST(tw_limiter_destroy(refuses));
	situation("after the timeout");
	begun = 0;
	MUST(tw_limiter_submit_task(limiter,
				    STRUCT(tw_limiter_task, .fn = count_to_nine, .arg = &begun,
					   .flags = TW_LIMITER_TASK_ASYNC, .timeout_ns = 10 * MS),
				    &job));
	MUST(tw_job_wait(limiter, job, TW_FOREVER, NULL));
	CALL(tw_job_complete(limiter, job, 0, NULL));
	end_limiter();
}
