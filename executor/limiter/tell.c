/* The runner, and the user code of jobs. Calls settle.c for what follows, and idle.c at the end. */
#include "executor/limiter/internal.h"

/* Keeps out of the way of jobs without callbacks (tw__job_go_on). */
#define NOT_INLINED __attribute__((noinline))

/* ------------------------------------------------------------------ callbacks */

enum step { STOP, DONE, RELEASE };

/* Calls one of the job's functions, without the lock. The job is BUSY, so it stays. */
NOT_INLINED static void call(struct tw_limiter *l, struct tw__job *job, enum step step)
{
	const struct tw_limiter_task *task = &job->options->task;
	bool timed_out = job->flags & TW__JOB_OVERDUE;
	tw_job attempt = tw__attempt_handle(job);
	struct tw__inside inside;
	tw_fn *fn = step == STOP      ? TW__NAMED_BY(task->stop)
		    : step == RELEASE ? TW__NAMED_BY(task->release)
		    : job->done       ? TW__NAMED_BY(job->done)
				      : TW__NAMED_BY(l->config.event);
	job->flags = (uint16_t)((job->flags | TW__JOB_BUSY) & ~TW__JOB_STOP_DUE);
	tw__limiter_leave(l, 0);
	tw__inside_begin(&inside, &l->object, job, fn, job->arg, job->name, job->context);
	if (step == STOP)
		task->stop(job->arg, attempt,
			   timed_out ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED);
	if (step == RELEASE)
		task->release(job->arg);
	if (step == DONE) {
		struct tw_job_result result = tw__result_of(job);
		if (l->config.event)
			tw__tell_event(l, job,
				       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_SETTLED,
								  .job = tw__job_handle(job),
								  .id = job->id,
								  .result = &result});
		if (job->done)
			job->done(job->arg, &result);
	}
	tw__inside_end(&inside);
	tw__limiter_lock(l);
	job->flags &= (uint16_t)~TW__JOB_BUSY;
}

/* -------------------------------------------------------------------- retries */

/*
 * The delay before the next attempt, once for each retry. The policy decides first (struct
 * tw_retry: count, times, jitter), then retry.allow.
 *
 * Full jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
static uint64_t draw_delay(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__job_options *o = job->options;
	const struct tw_retry *retry = &o->task.retry;
	uint64_t delay_ns = o->delay_ns;
	unsigned __int128 next = (unsigned __int128)delay_ns * retry->factor_x100 / 100;
	o->delay_ns = next < retry->cap_ns ? (uint64_t)next : retry->cap_ns;
	bool draws = delay_ns && retry->jitter == TW_RETRY_JITTER_FULL;
	return draws ? tw__random_upto(&l->random, delay_ns) : delay_ns;
}

/* True: the job waits for its retry, or has ended since. False: it has settled instead. */
NOT_INLINED static bool retry(struct tw_limiter *l, struct tw__job *job, bool wanted,
			      uint64_t delay_ns)
{
	uint64_t now_ns = tw_service_now(l->service);
	if (!wanted || !tw__job_may_retry(l, job, now_ns, delay_ns)) {
		tw__settle_by_result(l, job, now_ns);
		return false;
	}
	job->state = TW__JOB_DELAYED;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP | TW__JOB_OVERDUE;
	job->options->until_ns = now_ns + delay_ns;
	tw__job_line_add(&l->delayed, job);
	l->counters.retried++;
	tw__job_keep_time(job);
	if (!l->config.event)
		return true;
	struct tw_limiter_event event = {.kind = TW_LIMITER_EVENT_RETRIED,
					 .attempt = job->attempts,
					 .job = tw__job_handle(job),
					 .id = job->id,
					 .delay_ns = delay_ns};
	tw__limiter_leave(l, 0);
	tw__tell_event(l, NULL, &event);
	tw__limiter_lock(l);
	return true;
}

/* Decides what follows an attempt. True: as retry. False: the job has settled, or is ASKING. */
static bool decide(struct tw_limiter *l, struct tw__job *job)
{
	uint64_t now_ns = job->error ? tw_service_now(l->service) : 0;
	if (tw_likely(!job->error || !tw__job_may_want_retry(l, job, now_ns))) {
		tw__settle_by_result(l, job, now_ns);
		return false;
	}
	if (!job->options->task.retry.allow)
		return retry(l, job, true, draw_delay(l, job));
	job->state = TW__JOB_ASKING;
	job->options->until_ns = UINT64_MAX;
	tw__job_keep_time(job);
	return false;
}

/* Returns as retry. The answer is ignored if a timeout has settled the job meanwhile. */
NOT_INLINED static bool ask(struct tw_limiter *l, struct tw__job *job)
{
	tw_retry_fn *allow = job->options->task.retry.allow;
	int64_t delay_ns = (int64_t)draw_delay(l, job);
	int error = job->error; /* before a timeout changes it */
	bool wants = false, is_valid = true;
	struct tw__inside inside;
	if (tw__job_may_retry(l, job, 0, 0)) {
		job->flags |= TW__JOB_ASKED;
		tw__limiter_leave(l, 0);
		tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(allow), job->arg, job->name,
				 job->context);
		wants = allow(job->arg, tw__job_handle(job), error, job->attempts, &delay_ns);
		is_valid = !wants || (delay_ns >= 0 && (uint64_t)delay_ns <= TW_MAX_DELAY_NS);
		if (!is_valid)
			(void)tw__bad(-EINVAL, "retry.allow", "delay_ns");
		tw__inside_end(&inside);
		tw__limiter_lock(l);
		job->flags &= (uint16_t)~TW__JOB_ASKED;
	}
	if (job->state != TW__JOB_ASKING)
		return false;
	if (!is_valid) {
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->error = -EINVAL; /* tw__bad tells the hook above */
	}
	return retry(l, job, wants && is_valid, (uint64_t)delay_ns);
}

/* ------------------------------------------------- the next step of a job */

static void finish(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	bool is_last = --l->unfinished == 0;
	job->state = TW__JOB_FINISHED;
	if (is_last)
		tw__idle_reached(l);
	tw__job_look_for_end(l, job);
	if (is_last && teller == TW__TICK)
		l->tells_idle = true;
	else if (is_last)
		tw__tell_idle(l);
}

/* False: the thread must not call, and has left the job to the executor. */
static bool calls(struct tw_limiter *l, struct tw__job *job, bool may)
{
	if (may)
		return true;
	job->flags |= TW__JOB_BUSY;
	tw__line_append(&l->tells, tw__in_line_link(&job->place));
	return false;
}

void tw__job_go_on(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (job->flags & TW__JOB_BUSY)
		return;
	if (tw_unlikely(job->flags & TW__JOB_STOP_DUE)) {
		if (!calls(l, job, teller != TW__TICK))
			return;
		call(l, job, STOP);
	}
	if (job->state == TW__JOB_ENDED && decide(l, job))
		return;
	if (tw_unlikely(job->state == TW__JOB_ASKING)) {
		if (job->flags & TW__JOB_ASKED || !calls(l, job, teller == TW__EXECUTOR) ||
		    ask(l, job))
			return;
	}
	/* it is BUSY if it has timed out while retry.allow was asked */
	if (job->flags & (TW__JOB_STARTING | TW__JOB_BUSY))
		return;
	if (job->state == TW__JOB_SETTLED) {
		if (job->done || l->config.event) {
			if (!calls(l, job, teller != TW__TICK))
				return;
			call(l, job, DONE);
		}
		job->state = TW__JOB_TOLD;
		tw__job_wake(job);
	}
	if (job->state != TW__JOB_TOLD || job->took || job->flags & TW__JOB_ASKED)
		return; /* the thread that ends the attempt, or retry.allow, goes on */
	if (job->options->task.release) {
		if (!calls(l, job, teller != TW__TICK))
			return;
		call(l, job, RELEASE);
	}
	finish(l, job, teller);
}

void tw__job_time(struct tw__due *due)
{
	struct tw__job *job = TW__OWNER(struct tw__job_options, due, due)->job;
	struct tw_limiter *l = due->limiter;
	bool is_due = tw__job_look(l, job, tw_service_now(l->service));
	tw__job_keep_time(job);
	if (job->state == TW__JOB_FINISHED)
		tw__job_look_for_end(l, job);
	else if (is_due)
		tw__job_go_on(l, job, TW__TICK);
}

void tw__tell_next(struct tw_limiter *l)
{
	if (l->tells.first) {
		struct tw__job *job = TW__OWNER(struct tw__job, place, tw__line_pop(&l->tells));
		job->flags &= (uint16_t)~TW__JOB_BUSY;
		tw__job_go_on(l, job, TW__EXECUTOR);
	} else if (l->tells_idle) {
		l->tells_idle = false;
		tw__tell_idle(l);
	}
}

/* Runs on the executor. The unlock that comes next submits it again. */
void tw__limiter_tell(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object.work, work);
	tw__limiter_lock(l);
	l->tell_out = false;
	tw__tell_next(l);
	tw__limiter_leave(l, 1);
}

/* ------------------------------------------------------------------- runner */

/* The first in line begins an attempt. */
static struct tw__job *begin(struct tw_limiter *l, uint64_t now_ns)
{
	struct tw__job *job = l->line.first;
	struct tw__job_options *o = job->options;
	tw__job_leave_line(l, job, now_ns);
	tw__histogram_add(&l->counters.queue, now_ns > job->since_ns ? now_ns - job->since_ns : 0,
			  1);
	job->took = (uint32_t)tw__job_needs(l, job);
	l->permits.out += job->took;
	l->permits.attempts++;
	job->state = TW__JOB_RUNNING;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP;
	job->flags |= TW__JOB_IN_FN | (l->config.event ? TW__JOB_STARTING : 0);
	job->attempts++;
	job->since_ns = now_ns;
	job->value = NULL;
	if (tw_unlikely(!tw__job_is_plain(job))) {
		o->until_ns = tw__instant_after(now_ns, o->task.attempt_timeout_ns);
		tw__job_keep_time(job);
	}
	return job;
}

/* The attempt has left the line, and its function is called next. The lock is free. */
NOT_INLINED static void start(struct tw_limiter *l, struct tw__job *job,
			      const struct tw_job_run *see, bool has_token)
{
	if (l->config.event)
		tw__tell_event(l, job,
			       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_STARTED,
							  .attempt = see->attempt,
							  .job = tw__job_handle(job),
							  .id = see->id});
	tw__limiter_lock(l);
	job->flags &= (uint16_t)~TW__JOB_STARTING;
	if (has_token)
		tw__rate_begin(l);
	tw__job_go_on(l, job, TW__TICK); /* it may have timed out during the event */
	tw__limiter_leave(l, 0);
}

/* The function has returned. */
static void returned(struct tw_limiter *l, struct tw__job *job, int r, void *value, uint64_t now_ns)
{
	job->flags &= (uint16_t)~TW__JOB_IN_FN;
	if (job->flags & TW__JOB_COMPLETED) { /* what it returns may be a second end */
		l->counters.refused_completions += r != TW_JOB_PENDING;
		tw__attempt_end(l, job, job->error, job->value, now_ns);
		return;
	}
	if (job->flags & TW__JOB_ASYNC && r == TW_JOB_PENDING)
		return;
	if (r > 0 || r < -4095)
		r = -EINVAL; /* the result, which `done` tells */
	job->flags |= TW__JOB_STOPPED;
	tw__job_look(l, job, now_ns);
	tw__attempt_end(l, job, r, value, now_ns);
}

/*
 * Makes one attempt, and calls what follows. The lock is given up meanwhile. True: `run` was
 * submitted for the next job since the function has returned.
 */
static bool run_first(struct tw_limiter *l, uint64_t *now_ns)
{
	struct tw__job *job = begin(l, *now_ns);
	struct tw_job_run see = {
	    .limiter = l, .job = tw__attempt_handle(job), .id = job->id, .attempt = job->attempts};
	struct tw__inside inside;
	bool has_token = l->rate.most != 0;
	l->rate.out += has_token;
	tw__limiter_leave(l, 0);
	if (tw_unlikely(has_token || l->config.event))
		start(l, job, &see, has_token);
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(job->fn), job->arg, job->name,
			 job->context);
	int r = job->fn(job->arg, &see);
	tw__inside_end(&inside);
	*now_ns = tw_service_now(l->service);
	tw__object_lock(&l->object);
	if (!l->line.first || l->line.first->priority < 0)
		tw__inbox_look(l, UINT_MAX); /* else no job there, of priority 0, is next */
	bool was_out = l->run_out;
	returned(l, job, r, see.value, *now_ns);
	tw__job_go_on(l, job, TW__EXECUTOR);
	return l->run_out && !was_out;
}

/*
 * After a slice the runner goes to the end of the executor's queue. The number of jobs ends a slice
 * by a clock that stands still.
 */
void tw__limiter_run(struct tw__work *work)
{
	enum { JOBS_IN_A_ROW = 64, SLICE_NS = 5000000 };
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, run, work);
	uint64_t now_ns = tw_service_now(l->service), end_ns = now_ns + SLICE_NS;
	tw__limiter_lock(l);
	tw__object_use(&l->object);
	l->run_out = false;
	for (int left = JOBS_IN_A_ROW; left && now_ns < end_ns; left--) {
		struct tw__job *first = l->line.first;
		if (first && !tw__job_is_plain(first) && tw__job_look(l, first, now_ns)) {
			/* its time has passed, and the tick thread has not looked yet */
			tw__job_go_on(l, first, TW__EXECUTOR);
			continue;
		}
		if (!first)
			tw__inbox_look(l, UINT_MAX);
		if (!tw__limiter_may_start(l) || run_first(l, &now_ns))
			break;
	}
	tw__limiter_leave(l, 1);
}
