/*
 * Jobs of different weight: a database stands eight units of work at a time. A query costs one, a
 * report six. The limiter starts jobs in order, so queries that come later do not starve the
 * report.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <tickwheel.h>

enum { UNITS = 8, QUERY = 1, REPORT = 6, JOBS = 100, REPORT_AT = 30 };

struct work {
	int units;
	int before; /* jobs that began before it */
};

static atomic_int in_use, most, begun;

/* The database answers later: the attempt ends with tw_job_complete. */
struct answer {
	tw_limiter *limiter;
	tw_job job;
	int units;
};

static tw_service *service;
static struct answer answers[JOBS];

static void on_answer(void *arg)
{
	struct answer *answer = arg;
	in_use -= answer->units;
	tw_job_complete(answer->limiter, answer->job, 0, NULL);
}

static int ask(void *arg, struct tw_job_run *run)
{
	struct work *work = arg;
	int now = in_use += work->units, before = most;
	work->before = begun++;
	while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
	}
	struct answer *answer = &answers[run->id - 1];
	*answer = (struct answer){.limiter = run->limiter, .job = run->job, .units = work->units};
	if (tw_schedule(service, TW_MILLISECOND, on_answer, answer, NULL) < 0)
		on_answer(answer);
	return TW_JOB_PENDING;
}

int main(void)
{
	static struct work works[JOBS];
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	tw_limiter *limiter;
	config.max_concurrency = UNITS;
	config.flags = TW_LIMITER_NONBLOCKING;
	if (tw_service_create(&service, NULL) < 0 ||
	    tw_limiter_create(&limiter, service, &config) < 0)
		return 1;
	for (int i = 0; i < JOBS; i++) {
		works[i].units = i == REPORT_AT ? REPORT : QUERY;
		struct tw_limiter_task task = TW_INIT(tw_limiter_task);
		task.fn = ask;
		task.arg = &works[i];
		task.flags = TW_LIMITER_TASK_ASYNC;
		task.permits = (uint32_t)works[i].units;
		if (tw_limiter_submit_task(limiter, &task, NULL) < 0)
			return 1;
	}
	tw_limiter_wait_idle(limiter, TW_FOREVER);
	while (tw_limiter_destroy(limiter) < 0) { /* a worker may be about to return */
	}
	tw_service_destroy(service);
	printf("%d jobs, at most %d of %d units at a time, %d jobs before the report\n", JOBS,
	       (int)most, UNITS, works[REPORT_AT].before);
	int off = works[REPORT_AT].before - REPORT_AT;
	return most <= UNITS && off <= UNITS && off >= -UNITS ? 0 : 1;
}
