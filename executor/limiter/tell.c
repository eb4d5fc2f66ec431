/* The user code of jobs and of the limiter, and the runner. Calls settle.c for what follows. */
#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* Keeps out of the way of jobs without callbacks (tw__job_go_on). */
#define NOT_INLINED __attribute__((noinline))

/* ------------------------------------------------------------------ callbacks */

/* Calls `event`, if there is one, without the lock. job: what it is about, or NULL. */
NOT_INLINED static void tell_event(struct tw_limiter *l, const struct tw__job *job,
				   enum tw_limiter_event_kind kind, uint64_t delay_ns,
				   const struct tw_job_result *result)
{
	struct tw_limiter_event event = {.kind = kind, .delay_ns = delay_ns, .result = result};
	struct tw__inside inside;
	bool stays = kind != TW_LIMITER_EVENT_RETRIED; /* the job, meanwhile */
	if (!l->config.event)
		return;
	if (job) {
		event.job = tw__job_handle(job);
		event.id = job->id;
		event.attempt = kind == TW_LIMITER_EVENT_SETTLED ? 0 : job->attempts;
	}
	tw__limiter_leave(l, 0);
	tw__inside_begin(&inside, &l->object, stays ? job : NULL, TW__NAMED_BY(l->config.event),
			 l->config.event_arg, NULL, NULL);
	l->config.event(l->config.event_arg, &event);
	tw__inside_end(&inside);
	tw__limiter_lock(l);
}

enum step { STOP, ASK, DONE, RELEASE };

/*
 * Calls one of the job's functions, without the lock. The job is BUSY, so it stays. Returns what
 * retry.allow returns, which may change *delay_ns; below 0: to one that is not valid.
 */
NOT_INLINED static bool call(struct tw_limiter *l, struct tw__job *job, enum step step,
			     int64_t *delay_ns)
{
	const struct tw_limiter_task *task = &job->options->task;
	const struct tw_job_result result = tw__result_of(job);
	bool timed_out = job->flags & TW__JOB_OVERDUE, wants = false;
	tw_job attempt = tw__attempt_handle(job);
	struct tw__inside inside;
	tw_fn *const names[] = {TW__NAMED_BY(task->stop), TW__NAMED_BY(task->retry.allow),
				TW__NAMED_BY(job->done), TW__NAMED_BY(task->release)};
	job->flags = (uint16_t)((job->flags | TW__JOB_BUSY) & ~TW__JOB_STOP_DUE);
	if (step == DONE)
		tell_event(l, job, TW_LIMITER_EVENT_SETTLED, 0, &result);
	tw__limiter_leave(l, 0);
	tw__inside_begin(&inside, &l->object, job, names[step], job->arg, job->name, job->context);
	if (step == STOP)
		task->stop(job->arg, attempt,
			   timed_out ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED);
	if (step == ASK)
		wants = task->retry.allow(job->arg, tw__job_handle(job), result.error,
					  result.attempts, delay_ns);
	if (wants && (*delay_ns < 0 || (uint64_t)*delay_ns > TW_MAX_DELAY_NS))
		*delay_ns = tw__bad(-EINVAL, "retry.allow", "delay_ns");
	if (step == DONE && job->done)
		job->done(job->arg, &result);
	if (step == RELEASE)
		task->release(job->arg);
	tw__inside_end(&inside);
	tw__limiter_lock(l);
	job->flags &= (uint16_t)~TW__JOB_BUSY;
	return wants;
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

/* As decide. */
NOT_INLINED static bool retry(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	bool asks = job->options->task.retry.allow, wants = true;
	if (asks && !calls(l, job, teller == TW__EXECUTOR))
		return true;
	int64_t delay_ns = (int64_t)draw_delay(l, job);
	if (asks)
		wants = call(l, job, ASK, &delay_ns);
	if (job->state != TW__JOB_ENDED)
		return false; /* a timeout has settled it meanwhile: the answer is ignored */
	if (wants && delay_ns < 0) {
		wants = false;
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->error = -EINVAL; /* tw__bad tells the hook above */
	}
	uint64_t now_ns = tw_service_now(l->service);
	if (!wants || !tw__job_may_retry(l, job, now_ns, (uint64_t)delay_ns)) {
		tw__settle_by_result(l, job, now_ns);
		return false;
	}
	job->state = TW__JOB_DELAYED;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP | TW__JOB_OVERDUE;
	job->since_ns = now_ns + (uint64_t)delay_ns;
	tw__job_line_add(&l->delayed, job);
	l->counters.retried++;
	tw__job_keep_time(job);
	tell_event(l, job, TW_LIMITER_EVENT_RETRIED, (uint64_t)delay_ns, NULL);
	return true;
}

/* Decides what follows an attempt. False: the job has settled. True: it is not touched any more. */
static bool decide(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	uint64_t now_ns = job->error ? tw_service_now(l->service) : 0;
	if (tw_unlikely(job->error && tw__job_may_want_retry(l, job, now_ns)))
		return retry(l, job, teller);
	tw__settle_by_result(l, job, now_ns);
	return false;
}

/* ---------------------------------------------------------------------- idle */

/* Calls the event, or a listener, without the lock. */
static void tell_one(struct tw_limiter *l)
{
	struct tw__inside inside;
	if (l->idles.event_due) {
		l->idles.event_due = false;
		tell_event(l, NULL, TW_LIMITER_EVENT_IDLE, 0, NULL);
		return;
	}
	struct tw__listener *listener = tw__listener_of(tw__line_pop(&l->idles.due));
	struct tw__results *results = listener->results;
	tw__limiter_leave(l, 0);
	tw__inside_begin(&inside, &l->object, NULL, TW__NAMED_BY(listener->fn), listener->arg, NULL,
			 listener->context);
	listener->fn(listener->arg, results ? results->items : NULL, results ? results->n : 0);
	tw__inside_end(&inside);
	tw__free(listener);
	tw__limiter_lock(l);
	tw__results_put(results);
}

/*
 * One thread at a time calls listeners, in order, also those that are added meanwhile: so listeners
 * that add listeners use no more stack. After CALLS_IN_A_ROW calls the executor goes on.
 */
void tw__tell_idle(struct tw_limiter *l)
{
	enum { CALLS_IN_A_ROW = 64 };
	struct tw__idles *i = &l->idles;
	if (i->telling)
		return;
	i->telling = true;
	for (unsigned left = CALLS_IN_A_ROW; left && (i->event_due || i->due.first); left--)
		tell_one(l);
	i->telling = false;
	if (!i->event_due && !i->due.first)
		i->told = i->reached;
	tw__object_ring(&l->object);
}

/* ------------------------------------------------- the next step of a job */

static void finish(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	bool is_last = --l->unfinished == 0;
	job->state = TW__JOB_FINISHED;
	if (is_last) {
		l->idles.event_due = l->config.event != NULL;
		tw__idle_reached(l);
	}
	tw__job_look_for_end(l, job);
	if (is_last && teller != TW__TICK)
		tw__tell_idle(l);
}

void tw__job_go_on(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	bool may_call = teller != TW__TICK;
	if (job->flags & TW__JOB_BUSY)
		return;
	if (tw_unlikely(job->flags & TW__JOB_STOP_DUE)) {
		if (!calls(l, job, may_call))
			return;
		call(l, job, STOP, NULL);
	}
	if (job->state == TW__JOB_ENDED && decide(l, job, teller))
		return;
	if (job->state == TW__JOB_SETTLED) {
		if (job->done || l->config.event) {
			if (!calls(l, job, may_call))
				return;
			call(l, job, DONE, NULL);
		}
		job->state = TW__JOB_TOLD;
		tw__job_wake(job);
	}
	if (job->state != TW__JOB_TOLD || job->took)
		return; /* the thread that ends the attempt goes on */
	if (job->options->task.release) {
		if (!calls(l, job, may_call))
			return;
		call(l, job, RELEASE, NULL);
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
	} else if (tw__idle_is_due(l)) {
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
	tw__job_leave_line(l, job, now_ns);
	tw__histogram_add(&l->counters.queue, tw__elapsed(job->since_ns, now_ns), 1);
	job->took = (uint32_t)tw__job_needs(l, job);
	l->permits.out += job->took;
	l->permits.attempts++;
	job->state = TW__JOB_RUNNING;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP;
	job->flags |= TW__JOB_IN_FN;
	job->attempts++;
	job->since_ns = now_ns;
	job->value = NULL;
	tw__job_keep_time(job);
	return job;
}

/* The attempt has left the line, and its function is called after the event. */
NOT_INLINED static void tell_started(struct tw_limiter *l, struct tw__job *job)
{
	job->flags |= TW__JOB_BUSY;
	tell_event(l, job, TW_LIMITER_EVENT_STARTED, 0, NULL);
	job->flags &= (uint16_t)~TW__JOB_BUSY;
	tw__job_go_on(l, job, TW__TICK); /* it may have timed out meanwhile */
}

/* The function has returned. */
static void returned(struct tw_limiter *l, struct tw__job *job, int r, void *value, uint64_t now_ns)
{
	job->flags &= (uint16_t)~TW__JOB_IN_FN;
	if (job->flags & TW__JOB_COMPLETED) /* what it returns may be a second end */
		l->counters.refused_completions += r != TW_JOB_PENDING;
	else if (job->flags & TW__JOB_ASYNC && r == TW_JOB_PENDING)
		return;
	else /* -EINVAL: the result, which `done` tells */
		tw__attempt_answer(l, job, r > 0 || r < -4095 ? -EINVAL : r, value, now_ns);
	tw__attempt_end(l, job, now_ns);
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
	if (tw_unlikely(l->config.event != NULL))
		tell_started(l, job);
	if (tw_unlikely(has_token))
		tw__rate_begin(l);
	tw__limiter_leave(l, 0);
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
