/*
 * User code: the attempts of jobs, and what a limiter tells its users. All of it is called with the
 * lock free. Calls settle.c for what follows when it has returned.
 */
#include "executor/limiter/line.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* -------------------------------------------------------------------- events */

static void tell_event(struct tw_limiter *l, const struct tw__job *job,
		       const struct tw_limiter_event *event)
{
	struct tw__inside inside;
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(l->config.event),
			 l->config.event_arg, NULL, NULL);
	l->config.event(l->config.event_arg, event);
	tw__inside_end(&inside);
}

/* The job may time out meanwhile; then the executor tells of it afterwards. */
static void tell_started(struct tw_limiter *l, struct tw__job *job, const struct tw_job_run *see)
{
	tell_event(l, job,
		   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_STARTED,
					      .attempt = see->attempt,
					      .job = tw__job_handle(job),
					      .id = see->id});
	if (!tw__job_is_own(job))
		return;
	tw__limiter_lock(l, NULL);
	job->flags &= (uint16_t)~TW__JOB_STARTING;
	tw__job_go_on(l, job);
	tw__limiter_leave(l, 0);
}

/* ---------------------------------------------------------------------- jobs */

/* retry.allow has returned. A timeout may have settled the job: then the answer is ignored. */
static void answered(struct tw_limiter *l, struct tw__job *job, bool wanted, bool bad,
		     uint64_t delay_ns)
{
	job->flags &= (uint16_t)~TW__JOB_ASKED;
	if (job->state != TW__JOB_ASKING)
		return;
	if (bad) {
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->result.error = -EINVAL; /* told by tell_job */
	}
	tw__retry_answered(l, job, wanted && !bad, delay_ns);
}

/* Calls the job's function that is due. What the call needs is read before: the job may go on. */
static void tell_job(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	struct tw__job_options *o = job->options;
	enum tw__job_todo todo = (enum tw__job_todo)job->todo;
	const struct tw_job_result result = job->result;
	const tw_job handle = tw__job_handle(job), attempt = tw__attempt_handle(job);
	const bool overdue = job->flags & TW__JOB_OVERDUE;
	tw_fn *const names[] = {[TW__TODO_STOP] = TW__NAMED_BY(o->stop),
				[TW__TODO_ASK] = TW__NAMED_BY(o->retry.allow),
				[TW__TODO_DONE] = TW__NAMED_BY(job->done),
				[TW__TODO_RELEASE] = TW__NAMED_BY(o->release)};
	struct tw__inside inside;
	int64_t delay_ns = 0;
	bool wanted = false;
	if (todo == TW__TODO_ASK) {
		job->todo = TW__TODO_NOTHING;
		delay_ns = (int64_t)tw__job_draw_delay(l, job);
		if (!tw__job_may_retry(l, job, 0)) { /* any more */
			tw__retry_answered(l, job, false, 0);
			return;
		}
		job->flags |= TW__JOB_ASKED;
	}
	tw__limiter_leave(l, 0);
	if (todo == TW__TODO_DONE && l->config.event)
		tell_event(l, job,
			   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_SETTLED,
						      .job = handle,
						      .id = result.id,
						      .result = &result});
	tw__inside_begin(&inside, &l->object, job, names[todo], job->arg, job->name, job->context);
	if (todo == TW__TODO_STOP)
		o->stop(job->arg, attempt,
			overdue ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED);
	else if (todo == TW__TODO_ASK)
		wanted = o->retry.allow(job->arg, handle, result.error, result.attempts, &delay_ns);
	else if (todo == TW__TODO_RELEASE)
		o->release(job->arg);
	else if (job->done)
		job->done(job->arg, &result);
	bool bad = wanted && (delay_ns < 0 || (uint64_t)delay_ns > TW_MAX_DELAY_NS);
	if (bad)
		(void)tw__bad(-EINVAL, "retry.allow", "delay_ns");
	tw__inside_end(&inside);
	tw__limiter_lock(l, tells);
	if (todo != TW__TODO_ASK)
		job->todo = TW__TODO_NOTHING;
	if (todo == TW__TODO_DONE)
		job->flags |= TW__JOB_TOLD;
	if (todo == TW__TODO_RELEASE)
		o->release = NULL;
	if (todo == TW__TODO_ASK)
		answered(l, job, wanted, bad, (uint64_t)delay_ns);
	tw__job_go_on(l, job);
}

/* ---------------------------------------------------------------------- idle */

/*
 * One thread tells at a time, in the order in which listeners came. What comes meanwhile, also from
 * a listener, is handled by that thread when the listener has returned: so listeners that listen
 * again pile up no stack. After CALLS_IN_A_ROW calls the executor goes on.
 */
enum { CALLS_IN_A_ROW = 64 };

static void call_listener(struct tw_limiter *l, struct tw__listener *listener,
			  struct tw__tells *tells)
{
	struct tw__inside inside;
	struct tw__results *results = listener->results;
	tw__limiter_leave(l, 0);
	tw__inside_begin(&inside, &l->object, NULL, TW__NAMED_BY(listener->fn), listener->arg, NULL,
			 listener->context);
	listener->fn(listener->arg, results ? results->items : NULL, results ? results->n : 0);
	tw__inside_end(&inside);
	free(listener);
	tw__limiter_lock(l, tells);
	tw__results_put(results);
}

/* Calls `event` for what may outlive its job. */
static void tell_plain_event(struct tw_limiter *l, struct tw_limiter_event event,
			     struct tw__tells *tells)
{
	tw__limiter_leave(l, 0);
	tell_event(l, NULL, &event);
	tw__limiter_lock(l, tells);
}

static void tell_idle(struct tw_limiter *l, struct tw__tells *tells)
{
	struct tw__idles *i = &l->idles;
	if (i->telling)
		return; /* the thread that tells goes on with these */
	i->telling = true;
	for (int left = CALLS_IN_A_ROW; left && (i->event_due || i->due.first); left--) {
		if (i->event_due) {
			i->event_due = false;
			tell_plain_event(
			    l, (struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE}, tells);
		} else {
			call_listener(l, tw__listener_of(tw__line_pop(&i->due)), tells);
		}
	}
	i->telling = false;
	if (i->event_due || i->due.first)
		l->tells.idle = true;
	else
		i->told = i->reached;
	tw__object_ring(&l->object);
}

/* ---------------------------------------------------------------------- tell */

static bool tells_any(const struct tw__tells *tells)
{
	return tells->first || tells->idle || tells->retried.kind;
}

static struct tw__job *take_first(struct tw__tells *tells)
{
	struct tw__job *job = tells->first;
	tells->first = job->next;
	job->teller = NULL;
	return job;
}

/* The next step of the list. It may append more. */
static void tell_next(struct tw_limiter *l, struct tw__tells *tells)
{
	if (tells->retried.kind) {
		struct tw_limiter_event event = tells->retried;
		tells->retried.kind = 0;
		tell_plain_event(l, event, tells);
	} else if (tells->first) {
		tell_job(l, take_first(tells), tells);
	} else {
		tells->idle = false;
		tell_idle(l, tells);
	}
}

/*
 * The loop ends: a job comes into the list four times at most, and tell_idle is bounded. What
 * starts meanwhile is the executor's.
 */
void tw__limiter_unlock(struct tw_limiter *l, uint32_t n)
{
	struct tw__tells *tells = l->mine;
	if (tw_unlikely(tells_any(tells))) {
		tw__object_use(&l->object); /* what is called may be all that was left */
		n++;
	}
	while (tw_unlikely(tells_any(tells)))
		tell_next(l, tells);
	tw__limiter_leave(l, n);
}

/* On the executor: one step, and what follows. Others take the next one meanwhile. */
void tw__limiter_tell(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object.work, work);
	struct tw__tells tells = {0};
	tw__limiter_lock(l, &tells);
	l->tell_out = false;
	if (l->tells.first) {
		tell_job(l, take_first(&l->tells), &tells);
	} else {
		tells.idle = l->tells.idle;
		l->tells.idle = false;
	}
	tw__limiter_unlock(l, 1);
}

/* ------------------------------------------------------------------- runner */

/*
 * A runner's slice: then it goes to the end of the executor's queue. The number of jobs is for
 * short ones, and for clocks that stand still while jobs run.
 */
enum { JOBS_IN_A_ROW = 64, EXPIRED_IN_A_ROW = 16 };
#define SLICE_NS UINT64_C(5000000)

/* The first in line begins an attempt. NULL: there is none, or it may not start, or has expired. */
static struct tw__job *pick(struct tw_limiter *l)
{
	struct tw__job *job;
	unsigned expired = 0;
	while (expired < EXPIRED_IN_A_ROW && (job = l->line.first) && tw__job_is_due(l, job)) {
		tw__job_look(l, job); /* the tick thread may look later */
		expired++;
	}
	if (expired || !tw__limiter_may_start(l))
		return NULL;
	job = l->line.first;
	tw__job_leave_line(l, job);
	tw__histogram_add(&l->queue_ns, tw__job_since(l, job), 1);
	job->took = (uint32_t)tw__job_needs(l, job);
	l->stats.permits += job->took;
	l->stats.running++;
	l->rate.out += l->rate.starts_ns != NULL;
	job->state = TW__JOB_RUNNING;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP;
	job->flags |= TW__JOB_INSIDE | TW__JOB_IN_FN;
	job->result.attempts++;
	job->result.value = NULL;
	job->since_ns = tw__limiter_now(l);
	if (tw__job_is_own(job)) {
		struct tw__job_options *o = job->options;
		o->until_ns = tw__instant_after(job->since_ns, o->attempt_timeout_ns);
		job->flags |= l->config.event ? TW__JOB_STARTING : 0;
		tw__job_keep_time(job);
	}
	return job;
}

/* The function has returned. */
static void returned(struct tw_limiter *l, struct tw__job *job, int r, void *value)
{
	job->flags &= (uint16_t)~TW__JOB_IN_FN;
	if (job->flags & TW__JOB_COMPLETED) {
		/* what it returns may be a second end of the attempt */
		l->stats.refused_completions += r != TW_JOB_PENDING;
		tw__attempt_end(l, job, job->result.error, job->result.value);
		return;
	}
	if (job->flags & TW__JOB_ASYNC && r == TW_JOB_PENDING)
		return;
	if (r > 0 || r < -4095)
		r = -EINVAL;           /* the job's result; told to `done` */
	job->flags |= TW__JOB_STOPPED; /* no `stop` is called for what has ended */
	tw__job_look(l, job);
	tw__attempt_end(l, job, r, value);
}

/* One attempt. The lock is given up meanwhile. */
static void run_one(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	struct tw_job_run see = {.limiter = l,
				 .job = tw__attempt_handle(job),
				 .id = job->result.id,
				 .attempt = job->result.attempts};
	struct tw__inside inside;
	tw__limiter_leave(l, 0);
	if (tw_unlikely(l->config.event != NULL))
		tell_started(l, job, &see);
	if (tw_unlikely(l->config.rate_starts))
		tw__rate_begin(l);
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(job->fn), job->arg, job->name,
			 job->context);
	int r = job->fn(job->arg, &see);
	tw__inside_end(&inside);
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, tells);
	l->now_ns = now_ns;
	returned(l, job, r, see.value);
}

void tw__limiter_run(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, run, work);
	struct tw__tells tells = {0};
	struct tw__job *job;
	tw__limiter_lock(l, &tells);
	l->run_out = false;
	uint64_t end_ns = tw__limiter_now(l) + SLICE_NS;
	for (int left = JOBS_IN_A_ROW;
	     left && tw__limiter_now(l) < end_ns && !tells_any(&tells) && (job = pick(l)); left--)
		run_one(l, job, &tells);
	tw__limiter_unlock(l, 1);
}
