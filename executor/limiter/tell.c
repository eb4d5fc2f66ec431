/* All user code: attempts, callbacks, listeners and events. Calls settle.c for what follows. */
#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* Not in the way of jobs without callbacks (tw__job_go_on). */
#define NOT_INLINED __attribute__((noinline))

static void leave_to_call(struct tw_limiter *l)
{
	l->calls++;
	tw__limiter_leave(l, 0);
}

/* The user's function is called between these. The lock is held before and after. */

static void go_out(struct tw_limiter *l, struct tw__inside *inside, struct tw__job *job, tw_fn *fn,
		   uint16_t flag)
{
	job->flags |= flag;
	leave_to_call(l);
	tw__inside_begin(inside, &l->object, job, fn, job->arg, job->name, job->context);
}

static void come_back(struct tw_limiter *l, struct tw__inside *inside, struct tw__job *job,
		      uint16_t flag)
{
	tw__inside_end(inside);
	tw__limiter_lock(l);
	job->flags &= (uint16_t)~flag;
}

/* Without the lock. */
static void tell_event(struct tw_limiter *l, const struct tw__job *job,
		       const struct tw_limiter_event *event)
{
	struct tw__inside inside;
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(l->config.event),
			 l->config.event_arg, NULL, NULL);
	l->config.event(l->config.event_arg, event);
	tw__inside_end(&inside);
}

/* ---------------------------------------------------------------------- idle */

/*
 * One thread at a time calls listeners, in order, also those that are added meanwhile: so listeners
 * that add listeners use no more stack. After CALLS_IN_A_ROW calls the executor goes on.
 */
enum { CALLS_IN_A_ROW = 64 };

void tw__listener_is_due(struct tw_limiter *l, struct tw__listener *listener)
{
	listener->results = l->results;
	if (l->results)
		l->results->refs++;
	tw__line_append(&l->idles.due, tw__in_line_link(&listener->place));
}

static void call_listener(struct tw_limiter *l, struct tw__listener *listener)
{
	struct tw__inside inside;
	struct tw__results *results = listener->results;
	leave_to_call(l);
	tw__inside_begin(&inside, &l->object, NULL, TW__NAMED_BY(listener->fn), listener->arg, NULL,
			 listener->context);
	listener->fn(listener->arg, results ? results->items : NULL, results ? results->n : 0);
	tw__inside_end(&inside);
	tw__free(listener);
	tw__limiter_lock(l);
	tw__results_put(results);
}

void tw__tell_idle(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	if (i->telling)
		return;
	i->telling = true;
	for (unsigned left = CALLS_IN_A_ROW; left && (i->event_due || i->due.first); left--) {
		if (i->event_due) {
			i->event_due = false;
			leave_to_call(l);
			tell_event(l, NULL,
				   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE});
			tw__limiter_lock(l);
		} else {
			call_listener(l, tw__listener_of(tw__line_pop(&i->due)));
		}
	}
	i->telling = false;
	if (i->event_due || i->due.first)
		l->tells_idle = true;
	else
		i->told = i->reached;
	tw__object_ring(&l->object);
}

static void idle_reached(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	i->reached++;
	i->event_due = l->config.event != NULL;
	if (l->results)
		l->results->delivered = true;
	while (i->waiting.first)
		tw__listener_is_due(l, tw__listener_of(tw__line_pop(&i->waiting)));
}

/* --------------------------------------------------------------- the job's own */

NOT_INLINED static void call_stop(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__inside inside;
	tw_job_stop_fn *stop = job->options->stop;
	tw_job attempt = tw__attempt_handle(job);
	enum tw_job_status why =
	    job->flags & TW__JOB_OVERDUE ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED;
	job->flags &= (uint16_t)~TW__JOB_STOP_DUE;
	go_out(l, &inside, job, TW__NAMED_BY(stop), TW__JOB_BUSY);
	stop(job->arg, attempt, why);
	come_back(l, &inside, job, TW__JOB_BUSY);
}

NOT_INLINED static void call_done(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__inside inside;
	struct tw_job_result result;
	tw__result_of(job, &result);
	go_out(l, &inside, job, job->done ? TW__NAMED_BY(job->done) : TW__NAMED_BY(l->config.event),
	       TW__JOB_BUSY);
	if (l->config.event)
		tell_event(l, job,
			   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_SETTLED,
						      .job = tw__job_handle(job),
						      .id = job->id,
						      .result = &result});
	if (job->done)
		job->done(job->arg, &result);
	come_back(l, &inside, job, TW__JOB_BUSY);
}

NOT_INLINED static void call_release(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__inside inside;
	tw_job_release_fn *release = job->options->release;
	go_out(l, &inside, job, TW__NAMED_BY(release), TW__JOB_BUSY);
	release(job->arg);
	come_back(l, &inside, job, TW__JOB_BUSY);
}

static bool call_allow(struct tw_limiter *l, struct tw__job *job, uint64_t *delay_ns)
{
	struct tw__inside inside;
	tw_retry_fn *allow = job->options->retry.allow;
	int64_t chosen_ns = (int64_t)*delay_ns;
	int error = job->error; /* before a timeout changes it */
	uint32_t attempt = job->attempts;
	go_out(l, &inside, job, TW__NAMED_BY(allow), TW__JOB_ASKED);
	bool wants = allow(job->arg, tw__job_handle(job), error, attempt, &chosen_ns);
	bool is_valid = !wants || (chosen_ns >= 0 && (uint64_t)chosen_ns <= TW_MAX_DELAY_NS);
	if (!is_valid)
		(void)tw__bad(-EINVAL, "retry.allow", "delay_ns");
	come_back(l, &inside, job, TW__JOB_ASKED);
	*delay_ns = (uint64_t)chosen_ns;
	if (!is_valid && job->state == TW__JOB_ASKING) {
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->error = -EINVAL; /* told above */
	}
	return wants && is_valid;
}

/* ------------------------------------------------- the next step of a job */

/* The job waits for its retry, or ended since. False: it has settled instead. */
NOT_INLINED static bool retry(struct tw_limiter *l, struct tw__job *job, bool wanted,
			      uint64_t delay_ns)
{
	if (!tw__retry_answered(l, job, wanted, delay_ns))
		return false;
	struct tw_limiter_event event = {.kind = TW_LIMITER_EVENT_RETRIED,
					 .attempt = job->attempts,
					 .job = tw__job_handle(job),
					 .id = job->id,
					 .delay_ns = delay_ns};
	if (l->config.event) {
		leave_to_call(l);
		tell_event(l, NULL, &event);
		tw__limiter_lock(l);
	}
	return true;
}

/* True: as retry. False: the job has settled, or is ASKING. */
static bool decide(struct tw_limiter *l, struct tw__job *job)
{
	if (tw_likely(!tw__attempt_decide(l, job)))
		return false;
	if (!job->options->retry.allow)
		return retry(l, job, true, tw__job_draw_delay(l, job));
	job->state = TW__JOB_ASKING;
	job->options->until_ns = UINT64_MAX;
	tw__job_keep_time(job);
	return false;
}

/* The answer is ignored if a timeout has settled the job meanwhile. Returns as retry. */
NOT_INLINED static bool ask(struct tw_limiter *l, struct tw__job *job)
{
	uint64_t delay_ns = tw__job_draw_delay(l, job);
	bool wants = tw__job_has_retries(l, job) && call_allow(l, job, &delay_ns);
	return job->state == TW__JOB_ASKING && retry(l, job, wants, delay_ns);
}

static void finish(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	bool is_last = --l->unfinished == 0;
	job->flags |= TW__JOB_FINISHED;
	if (is_last)
		idle_reached(l);
	tw__job_look_for_end(l, job);
	if (!is_last)
		return;
	if (teller == TW__TICK)
		l->tells_idle = true;
	else
		tw__tell_idle(l);
}

static void leave_to_executor(struct tw_limiter *l, struct tw__job *job)
{
	job->flags |= TW__JOB_BUSY;
	tw__line_append(&l->tells, tw__in_line_link(&job->place));
}

void tw__job_go_on(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (job->flags & (TW__JOB_BUSY | TW__JOB_FINISHED))
		return;
	if (tw_unlikely(job->flags & TW__JOB_STOP_DUE)) {
		if (teller == TW__TICK) {
			leave_to_executor(l, job);
			return;
		}
		call_stop(l, job);
	}
	if (job->state == TW__JOB_ENDED && decide(l, job))
		return;
	if (tw_unlikely(job->state == TW__JOB_ASKING)) {
		if (job->flags & TW__JOB_ASKED)
			return;
		if (teller != TW__EXECUTOR) {
			leave_to_executor(l, job);
			return;
		}
		if (ask(l, job))
			return;
	}
	/* BUSY: it has timed out while retry.allow was asked */
	if (job->state != TW__JOB_SETTLED || job->flags & (TW__JOB_STARTING | TW__JOB_BUSY))
		return;
	if (!(job->flags & TW__JOB_TOLD)) {
		if (job->done || l->config.event) {
			if (teller == TW__TICK) {
				leave_to_executor(l, job);
				return;
			}
			call_done(l, job);
		}
		job->flags |= TW__JOB_TOLD;
		tw__job_wake(job);
	}
	if (job->flags & (TW__JOB_INSIDE | TW__JOB_ASKED))
		return; /* who ends that goes on */
	if (job->options->release) {
		if (teller == TW__TICK) {
			leave_to_executor(l, job);
			return;
		}
		call_release(l, job);
	}
	finish(l, job, teller);
}

/* On the tick thread. */
void tw__job_time(struct tw__due *due)
{
	struct tw__job *job = TW__OWNER(struct tw__job_options, due, due)->job;
	struct tw_limiter *l = due->limiter;
	uint64_t now_ns = tw_service_now(l->service);
	bool is_due = tw__job_is_due(job, now_ns);
	if (is_due)
		tw__time_has_come(l, job, now_ns);
	due->is_out = false; /* not before: settling stops it */
	if (job->state != TW__JOB_SETTLED)
		tw__job_keep_time(job);
	if (job->flags & TW__JOB_FINISHED)
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

/* On the executor. The next hold of the lock submits it again. */
void tw__limiter_tell(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object.work, work);
	tw__limiter_lock(l);
	l->tell_out = false;
	tw__tell_next(l);
	tw__limiter_leave(l, 1);
}

/* ------------------------------------------------------------------- runner */

/*
 * A runner's slice: then it goes to the end of the executor's queue. The number is for clocks that
 * stand still.
 */
enum { JOBS_IN_A_ROW = 64 };
#define SLICE_NS UINT64_C(5000000)

/* The first in line begins an attempt. */
static struct tw__job *begin(struct tw_limiter *l, uint64_t now_ns)
{
	struct tw__job *job = l->line.first;
	uint64_t stay_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	tw__job_leave_line(l, job, now_ns);
	tw__histogram_add(&l->counters.queue, stay_ns, 1);
	job->took = (uint32_t)tw__job_needs(l, job);
	l->permits.out += job->took;
	l->permits.attempts++;
	job->state = TW__JOB_RUNNING;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP;
	job->flags |= TW__JOB_INSIDE | TW__JOB_IN_FN;
	job->attempts++;
	job->since_ns = now_ns;
	job->value = NULL;
	if (tw_unlikely(l->rate.most != 0)) {
		l->rate.out++;
		job->flags |= TW__JOB_TOKEN;
	}
	if (tw__job_is_own(job)) {
		struct tw__job_options *o = job->options;
		o->until_ns = tw__instant_after(now_ns, o->attempt_timeout_ns);
		job->flags |= l->config.event ? TW__JOB_STARTING : 0;
		tw__job_keep_time(job);
	}
	return job;
}

static void tell_started(struct tw_limiter *l, struct tw__job *job, const struct tw_job_run *see)
{
	tell_event(l, job,
		   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_STARTED,
					      .attempt = see->attempt,
					      .job = tw__job_handle(job),
					      .id = see->id});
	if (!tw__job_is_own(job))
		return;
	tw__limiter_lock(l);
	job->flags &= (uint16_t)~TW__JOB_STARTING;
	tw__job_go_on(l, job, TW__TICK);
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
		r = -EINVAL; /* the job's result; told to `done` */
	tw__attempt_look(l, job, now_ns);
	tw__attempt_end(l, job, r, value, now_ns);
}

/* One attempt, and what follows. The lock is given up. True: user code followed. */
static bool run_one(struct tw_limiter *l, struct tw__job *job, uint64_t *now_ns)
{
	struct tw_job_run see = {
	    .limiter = l, .job = tw__attempt_handle(job), .id = job->id, .attempt = job->attempts};
	struct tw__inside inside;
	bool has_token = job->flags & TW__JOB_TOKEN;
	tw__limiter_leave(l, 0);
	if (tw_unlikely(l->config.event != NULL))
		tell_started(l, job, &see);
	if (tw_unlikely(has_token))
		tw__rate_begin(l);
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(job->fn), job->arg, job->name,
			 job->context);
	int r = job->fn(job->arg, &see);
	tw__inside_end(&inside);
	*now_ns = tw_service_now(l->service);
	tw__object_lock(&l->object);
	if (!l->line.first || l->line.first->priority < 0)
		tw__inbox_look(l); /* else the inbox, of priority 0, is not next */
	uint32_t calls = l->calls;
	returned(l, job, r, see.value, *now_ns);
	tw__job_go_on(l, job, TW__EXECUTOR);
	return l->calls != calls;
}

void tw__limiter_run(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, run, work);
	uint64_t now_ns = tw_service_now(l->service), end_ns = now_ns + SLICE_NS;
	tw__limiter_lock(l);
	tw__object_use(&l->object);
	l->run_out = false;
	for (int left = JOBS_IN_A_ROW; left && now_ns < end_ns; left--) {
		struct tw__job *first = l->line.first;
		if (first && tw__job_is_due(first, now_ns)) { /* the tick thread may look later */
			tw__stay_is_over(l, first, now_ns);
			tw__job_go_on(l, first, TW__EXECUTOR);
			continue;
		}
		if (!first)
			tw__inbox_look(l);
		if (!tw__limiter_may_start(l))
			break;
		if (run_one(l, begin(l, now_ns), &now_ns) && l->run_out)
			break; /* another runner goes on since */
	}
	tw__limiter_leave(l, 1);
}
