/*
 * The limiter's times: one timer for each job that keeps one, and what follows when it fires; waits for retries.
 */
#include <errno.h>

#include "executor/limiter_parts.h"
#include "wheel/timing.h"

/* ------------------------------------------------------------------- timers */

static void on_time(void *arg);

/* The next instant at which something is to be done about the job. */
static uint64_t due_of(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	if (job->state == TW_JOB_SETTLED)
		return UINT64_MAX;
	return o->until_ns < o->total_until_ns ? o->until_ns : o->total_until_ns;
}

/* One whose callback is on its way already comes to nothing, and takes itself off the count. */
static void disarm(struct tw_limiter *l, struct tw__job *job)
{
	if (job->options->timer_at_ns == UINT64_MAX)
		return;
	job->options->timer_at_ns = UINT64_MAX;
	if (tw_cancel(l->service, job->options->timer) == TW_CANCELLED) {
		job->timers--;
		l->timers_out--;
	}
}

void tw__job_disarm(struct tw_limiter *l, struct tw__job *job)
{
	if (job->options)
		disarm(l, job);
}

int tw__job_arm(struct tw_limiter *l, struct tw__job *job)
{
	uint64_t at_ns = due_of(job);
	if (at_ns == job->options->timer_at_ns)
		return 0;
	disarm(l, job);
	if (at_ns == UINT64_MAX)
		return 0;
	struct tw_task task = {
	    .size = sizeof task, .fn = on_time, .arg = job, .when_ns = at_ns, .flags = TW_TASK_AT | TW_TASK_CONTEXT};
	int r = tw_schedule_task(l->service, &task, &job->options->timer);
	if (r)
		return r;
	job->options->timer_at_ns = at_ns;
	job->timers++;
	l->timers_out++;
	return 0;
}

/* -------------------------------------------------------------------- firing */

static void attempt_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo)
{
	struct tw__job_options *o = job->options;
	if (!(job->flags & TW__JOB_INSIDE) || job->flags & TW__JOB_COMPLETED)
		return; /* its end is being dealt with, or its function has but to return */
	bool wholly = o->total_until_ns <= now_ns;
	if (wholly || (o->until_ns <= now_ns && !tw__job_may_retry(l, job, now_ns))) {
		if (now_ns > job->since_ns)                    /* not so if it began after this reading of the clock */
			job->run_ns += now_ns - job->since_ns; /* for the result; what follows is nobody's */
		tw__settle(l, job, TW_JOB_TIMED_OUT, -ETIMEDOUT, todo);
	} else if (o->until_ns > now_ns) {
		return;
	}
	job->flags |= TW__JOB_OVERDUE;
	o->until_ns = UINT64_MAX;
	tw__job_stop(l, job, todo);
}

static void wait_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo)
{
	struct tw__job_options *o = job->options;
	bool wholly = o->total_until_ns <= now_ns;
	if (!wholly && o->until_ns > now_ns)
		return;
	if (job->state == TW_JOB_IN_LINE) {
		tw__line_leave(l, job, now_ns, todo);
		tw__settle(l, job, TW_JOB_TIMED_OUT, -ETIMEDOUT, todo);
	} else if (wholly) {
		tw__retrying_leave(l, job, todo);
		tw__settle(l, job, TW_JOB_TIMED_OUT, -ETIMEDOUT, todo);
	} else {
		tw__retrying_leave(l, job, NULL);
		tw__line_enter(l, job, now_ns);
	}
}

static void on_time(void *arg)
{
	struct tw__job *job = arg;
	struct tw_limiter *l = job->options->limiter;
	struct tw__todo todo;
	uint64_t now_ns = tw_now(l->service);
	tw__limiter_lock(l, &todo);
	if (job->options->timer_at_ns != UINT64_MAX && job->options->timer.id == tw_self().id)
		job->options->timer_at_ns = UINT64_MAX;
	if (job->state == TW_JOB_RUNNING)
		attempt_is_over_time(l, job, now_ns, &todo);
	else if (job->state != TW_JOB_SETTLED)
		wait_is_over_time(l, job, now_ns, &todo);
	if (job->state != TW_JOB_SETTLED)
		tw__job_arm(l, job);
	job->timers--;
	l->timers_out--;
	tw__job_look_for_end(l, job, &todo);
	tw__dispatch(l, now_ns, &todo);
	tw__limiter_unlock(l, &todo);
}

/* ------------------------------------------------------------------- retries */

bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	const struct tw__job_options *o = job->options;
	if (!o || job->attempts > o->retry.count || !l->started || job->flags & TW__JOB_CANCEL)
		return false;
	uint64_t least_ns = now_ns + o->delay_ns;
	return least_ns <= o->retry_deadline_ns && least_ns < o->total_until_ns;
}

/* delay_ns * factor, at most cap. */
static uint64_t grown(const struct tw_retry *retry, uint64_t delay_ns)
{
	unsigned __int128 next = (unsigned __int128)delay_ns * retry->factor_x100 / 100;
	return next < retry->cap_ns ? (uint64_t)next : retry->cap_ns;
}

uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__job_options *o = job->options;
	uint64_t delay_ns = o->delay_ns;
	o->delay_ns = grown(&o->retry, delay_ns);
	return delay_ns + (o->retry.jitter_ns ? tw__random_upto(&l->random, o->retry.jitter_ns) : 0);
}

void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns)
{
	job->state = TW_JOB_RETRYING;
	job->flags &= TW__JOB_IS_ASYNC | TW__JOB_KEEP;
	job->options->until_ns = at_ns;
	job->previous = NULL;
	job->next = l->first_retrying;
	if (job->next)
		job->next->previous = job;
	l->first_retrying = job;
	l->retrying++;
	l->retried++;
	tw__pending_more(l);
	if (tw__job_arm(l, job)) {
		/* No timer is to be had: without the wait, in its place in the line. */
		tw__retrying_leave(l, job, NULL);
		tw__line_enter(l, job, tw_now(l->service));
	}
}

void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	*(job->previous ? &job->previous->next : &l->first_retrying) = job->next;
	if (job->next)
		job->next->previous = job->previous;
	l->retrying--;
	if (todo)
		tw__pending_less(l, todo);
}
