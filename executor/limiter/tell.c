/*
 * User code: the attempts of jobs, and what a limiter tells its users. All of it is called with the
 * lock free. Calls settle.c for what follows when it has returned.
 */
#include "executor/limiter/tell.h"
#include "mpsc/base/reserve.h"
#include "executor/limiter/lock.h"
#include "executor/limiter/settle.h"

/* This thread is in the function between these. The lock is held before and after. */

static void go_out(struct tw_limiter *l, struct tw__inside *inside, struct tw__job *job, tw_fn *fn)
{
	tw__limiter_leave(l, 0);
	tw__inside_begin(inside, &l->object, job, fn, job->arg, job->name, job->context);
}

static void come_back(struct tw_limiter *l, struct tw__inside *inside, struct tw__tells *tells)
{
	tw__inside_end(inside);
	tw__limiter_lock(l, tells);
}

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
	if (job->state == TW__JOB_SETTLED)
		tw__job_tell_when_free(l, job);
	tw__limiter_leave(l, 0);
}

/* ----------------------------------------------------------------- callbacks */

static void call_stop(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	struct tw__inside inside;
	tw_job_stop_fn *stop = job->options->stop;
	tw_job attempt = tw__attempt_handle(job);
	enum tw_job_status why =
	    job->flags & TW__JOB_OVERDUE ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED;
	go_out(l, &inside, job, TW__NAMED_BY(stop));
	stop(job->arg, attempt, why);
	come_back(l, &inside, tells);
	job->todo = TW__TODO_NOTHING;
	if (job->state == TW__JOB_SETTLED)
		tw__job_tell_when_free(l, job);
	else if (job->state == TW__JOB_ENDED)
		tw__attempt_decide(l, job, tw_service_now(l->service));
}

/* Whether the job's predicate wants the retry. It may choose another delay. */
static bool wants_retry(struct tw_limiter *l, struct tw__job *job, uint64_t *delay_ns,
			struct tw__tells *tells)
{
	struct tw__inside inside;
	tw_retry_fn *allow = job->options->retry.allow;
	int64_t chosen_ns = (int64_t)*delay_ns;
	int error = job->error; /* a timeout may change it */
	uint32_t attempt = job->attempts;
	go_out(l, &inside, job, TW__NAMED_BY(allow));
	bool wants = allow(job->arg, tw__job_handle(job), error, attempt, &chosen_ns);
	bool is_valid = !wants || (chosen_ns >= 0 && (uint64_t)chosen_ns <= TW_MAX_DELAY_NS);
	if (!is_valid)
		(void)tw__bad(-EINVAL, "retry.allow", "delay_ns");
	come_back(l, &inside, tells);
	*delay_ns = (uint64_t)chosen_ns;
	if (!is_valid && job->state == TW__JOB_ASKING) {
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->error = -EINVAL; /* told above */
	}
	return wants && is_valid;
}

/* A timeout may settle the job meanwhile: then the answer is ignored. */
static void call_allow(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	uint64_t delay_ns = tw__job_draw_delay(l, job);
	job->todo = TW__TODO_NOTHING;
	job->flags |= TW__JOB_ASKED;
	bool wants = tw__job_has_retries(l, job) && wants_retry(l, job, &delay_ns, tells);
	job->flags &= (uint16_t)~TW__JOB_ASKED;
	if (job->state == TW__JOB_ASKING)
		tw__retry_answered(l, job, wants, delay_ns);
	else
		tw__job_look_for_release(l, job);
}

static void call_done(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	struct tw__inside inside;
	struct tw_job_result result;
	tw__result_of(job, &result);
	go_out(l, &inside, job,
	       job->done ? TW__NAMED_BY(job->done) : TW__NAMED_BY(l->config.event));
	if (l->config.event)
		tell_event(l, job,
			   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_SETTLED,
						      .job = tw__job_handle(job),
						      .id = job->id,
						      .result = &result});
	if (job->done)
		job->done(job->arg, &result);
	come_back(l, &inside, tells);
	job->todo = TW__TODO_NOTHING;
	tw__job_told(l, job);
}

static void call_release(struct tw_limiter *l, struct tw__job *job, struct tw__tells *tells)
{
	struct tw__inside inside;
	tw_job_release_fn *release = job->options->release;
	go_out(l, &inside, job, TW__NAMED_BY(release));
	release(job->arg);
	come_back(l, &inside, tells);
	job->todo = TW__TODO_NOTHING;
	tw__job_finish(l, job);
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
	tw__free(listener);
	come_back(l, &inside, tells);
	tw__results_put(results);
}

static void tell_idle(struct tw_limiter *l, struct tw__tells *tells)
{
	struct tw__idles *i = &l->idles;
	if (i->telling)
		return; /* the thread that tells goes on with these */
	i->telling = true;
	for (unsigned calls = 0; calls < CALLS_IN_A_ROW; calls++) {
		if (i->event_due) {
			i->event_due = false;
			tw__limiter_leave(l, 0);
			tell_event(l, NULL,
				   &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE});
			tw__limiter_lock(l, tells);
		} else if (i->due.first) {
			call_listener(l, tw__listener_of(tw__line_pop(&i->due)), tells);
		} else {
			i->told = i->reached;
			break;
		}
	}
	i->telling = false;
	l->tells.idle |= i->event_due || i->due.first;
	tw__object_ring(&l->object);
}

/* ---------------------------------------------------------------------- tell */

static struct tw__job *take_first(struct tw__tells *tells)
{
	struct tw__job *job = TW__OWNER(struct tw__job, place, tw__line_pop(&tells->jobs));
	job->teller = NULL;
	return job;
}

/* The next step of the list. It may append more. */
static void tell_next(struct tw_limiter *l, struct tw__tells *tells)
{
	struct tw__job *job;
	if (tells->retried.kind) {
		struct tw_limiter_event event = tells->retried;
		tells->retried.kind = 0;
		tw__limiter_leave(l, 0);
		tell_event(l, NULL, &event);
		tw__limiter_lock(l, tells);
	} else if (!tells->jobs.first) {
		tells->idle = false;
		tell_idle(l, tells);
	} else if ((job = take_first(tells))->todo == TW__TODO_STOP) {
		call_stop(l, job, tells);
	} else if (job->todo == TW__TODO_ASK) {
		call_allow(l, job, tells);
	} else if (job->todo == TW__TODO_DONE) {
		call_done(l, job, tells);
	} else {
		call_release(l, job, tells);
	}
}

/*
 * The loop ends: a job comes into the list four times at most, and tell_idle is bounded. What
 * starts meanwhile is the executor's.
 */
void tw__limiter_unlock(struct tw_limiter *l, uint32_t n)
{
	struct tw__tells *tells = l->mine;
	if (tw_unlikely(tw__tells_any(tells))) {
		tw__object_use(&l->object); /* what is called may be all that was left */
		n++;
	}
	while (tw_unlikely(tw__tells_any(tells)))
		tell_next(l, tells);
	tw__limiter_leave(l, n);
}

/* On the executor: one step, and what follows. Others take the next one meanwhile. */
void tw__limiter_tell(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object.work, work);
	struct tw__tells tells = TW__NOTHING_TO_TELL(tells);
	tw__limiter_lock(l, &tells);
	l->tell_out = false;
	if (l->tells.jobs.first) {
		struct tw__job *job = take_first(&l->tells);
		enum tw__job_todo todo = (enum tw__job_todo)job->todo;
		job->todo = TW__TODO_NOTHING;
		tw__tell(l, &tells, job, todo);
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
static struct tw__job *pick(struct tw_limiter *l, uint64_t now_ns)
{
	struct tw__job *job;
	unsigned expired = 0;
	while (expired < EXPIRED_IN_A_ROW && (job = l->line.first) && tw__job_is_due(job, now_ns)) {
		tw__stay_is_over(l, job, now_ns); /* the tick thread may look later */
		expired++;
	}
	if (!l->line.first)
		tw__inbox_look(l); /* one that came needs no other runner then */
	if (expired || !tw__limiter_may_start(l))
		return NULL;
	job = l->line.first;
	uint64_t stay_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	tw__job_leave_line(l, job, now_ns);
	tw__histogram_add(&l->counters.queue, stay_ns, 1);
	job->took = (uint32_t)tw__job_needs(l, job);
	l->permits.out += job->took;
	l->permits.attempts++;
	l->rate.out += l->rate.starts_ns != NULL;
	job->state = TW__JOB_RUNNING;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP;
	job->flags |= TW__JOB_INSIDE | TW__JOB_IN_FN;
	job->attempts++;
	job->since_ns = now_ns;
	job->value = NULL;
	if (tw__job_is_own(job)) {
		struct tw__job_options *o = job->options;
		o->until_ns = tw__instant_after(now_ns, o->attempt_timeout_ns);
		job->flags |= l->config.event ? TW__JOB_STARTING : 0;
		tw__job_keep_time(job);
	}
	return job;
}

static bool is_error(int error)
{
	return error < 0 && error >= -4095;
}

/* The function has returned. */
static void returned(struct tw_limiter *l, struct tw__job *job, int r, void *value, uint64_t now_ns)
{
	bool completed = job->flags & TW__JOB_COMPLETED;
	job->flags &= (uint16_t)~TW__JOB_IN_FN;
	if (completed) { /* what it returns may be a second end of the attempt */
		l->counters.refused_completions += r != TW_JOB_PENDING;
		tw__attempt_end(l, job, job->error, job->value, now_ns);
		return;
	}
	if (job->flags & TW__JOB_ASYNC && r == TW_JOB_PENDING)
		return;
	if (r != 0 && !is_error(r))
		r = -EINVAL; /* the job's result; told to `done` */
	tw__attempt_look(l, job, now_ns);
	tw__attempt_end(l, job, r, value, now_ns);
}

/* One attempt. The lock is given up meanwhile. */
static void run_one(struct tw_limiter *l, struct tw__job *job, uint64_t *now_ns,
		    struct tw__tells *tells)
{
	struct tw_job_run see = {
	    .limiter = l, .job = tw__attempt_handle(job), .id = job->id, .attempt = job->attempts};
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
	*now_ns = tw_service_now(l->service);
	tw__object_lock(&l->object);
	l->mine = tells;
	if (!l->line.first || l->line.first->priority < 0)
		tw__inbox_look(
		    l); /* else what is there is not next: it came later, with priority 0 */
	returned(l, job, r, see.value, *now_ns);
}

void tw__limiter_run(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, run, work);
	struct tw__tells tells = TW__NOTHING_TO_TELL(tells);
	struct tw__job *job;
	uint64_t now_ns = tw_service_now(l->service), end_ns = now_ns + SLICE_NS;
	tw__limiter_lock(l, &tells);
	l->run_out = false;
	for (int left = JOBS_IN_A_ROW; left && now_ns < end_ns && !tw__tells_any(&tells); left--) {
		if (!(job = pick(l, now_ns)))
			break;
		run_one(l, job, &now_ns, &tells);
	}
	tw__limiter_unlock(l, 0);
}
