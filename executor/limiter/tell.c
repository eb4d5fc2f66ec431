/*
 * What a limiter tells its users: everything that is user code, or may call it, called with the
 * lock free.
 *
 * Most threads do this themselves when they give up the lock. The driver does not: it keeps the
 * times of jobs, and must run no user code. It leaves the callbacks of a job to a piece of work on
 * the executor, one for each job, so that a callback which blocks holds up those of its own job
 * only. The executor has room for it: it holds more runs than there are permits.
 *
 * Model: test/model/retry.pml.
 */

#include "executor/limiter/tell.h"
#include "executor/limiter/idle.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/settle.h"

/* -------------------------------------------------------------- user's code */

static _Thread_local struct tw__limiter_call *innermost;

/* What this thread will do when the user code that it is in has returned; innermost first. */
struct to_do {
	const struct tw__limiter_deferred *deferred;
	struct to_do *outer;
};

static _Thread_local struct to_do *to_do;

void tw__limiter_call_begin(struct tw__limiter_call *call, struct tw_limiter *l,
			    const struct tw__job *job)
{
	call->limiter = l;
	call->job = job;
	call->outer = innermost;
	innermost = call;
	call->shown = NULL;
	call->former = tw__context_enter(job ? job->context : NULL);
}

void tw__limiter_call_show(struct tw__limiter_call *call, tw_fn *fn, void *arg, uint64_t since_ns)
{
	tw__user_end(call->shown);
	const char *name = call->job ? call->job->name : NULL;
	call->shown = tw__user_begin(call->limiter->service, fn, arg, name, since_ns);
}

void tw__limiter_call_event(struct tw__limiter_call *call, const struct tw_limiter_event *event)
{
	const struct tw_limiter_config *config = &call->limiter->config;
	tw__limiter_call_show(call, TW__NAMED_BY(config->event), config->event_arg, 0);
	config->event(config->event_arg, event);
}

void tw__limiter_call_end(struct tw__limiter_call *call)
{
	tw__context_leave(call->former);
	tw__user_end(call->shown);
	innermost = call->outer;
}

void tw__limiter_leave(struct tw_limiter *l, const struct tw__job *job, tw_fn *hook,
		       struct tw__limiter_call *call)
{
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(call, l, job);
	tw__limiter_call_show(call, hook, job->arg, 0);
}

void tw__limiter_return(struct tw_limiter *l, struct tw__limiter_call *call)
{
	tw__limiter_call_end(call);
	tw__limiter_relock(l);
}

void tw__limiter_tell_event(struct tw_limiter *l, const struct tw_limiter_event *event)
{
	struct tw__limiter_call call;
	if (!l->config.event)
		return;
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, NULL);
	tw__limiter_call_event(&call, event);
	tw__limiter_return(l, &call);
}

bool tw__limiter_is_inside(const struct tw_limiter *l, const struct tw__job *job)
{
	for (const struct tw__limiter_call *call = innermost; call; call = call->outer)
		if (call->limiter == l && (!job || call->job == job))
			return true;
	return false;
}

bool tw__job_waits_for_caller(const struct tw__job *job)
{
	for (const struct to_do *list = to_do; list; list = list->outer)
		for (const struct tw__job *next = list->deferred->first_job; next;
		     next = next->next)
			if (next == job)
				return true;
	return false;
}

/* -------------------------------------------------------- to be done on the executor */

enum { TELL_JOB = 1, TELL_IDLE = 2 };

static void limiter_tell(struct tw__work *work)
{
	struct tw__job_options *o = TW__OWNER(struct tw__job_options, tell, work);
	struct tw__job *job = o->job;
	struct tw_limiter *l = o->limiter;
	struct tw__limiter_deferred deferred;
	tw__limiter_lock(l, &deferred);
	uint32_t what = work->spare;
	if (what & TELL_JOB)
		tw__defer_job(&deferred, job);
	deferred.idle = what & TELL_IDLE;
	job->holds--;
	l->out.tellers--;
	o->telling.next->previous = o->telling.previous;
	o->telling.previous->next = o->telling.next;
	tw__job_look_for_end(l, job);
	tw__limiter_unlock(l, &deferred);
}

/* Work that the caller submits, with the lock free. The job has options, and no such work out. */
static struct tw__work *tell_out(struct tw_limiter *l, struct tw__job *job, uint32_t what)
{
	struct tw__work *work = &job->options->tell;
	tw__work_init(work, l->service, l->base.executor, limiter_tell);
	work->spare = (uint16_t)what;
	job->holds++; /* the work is part of the options */
	l->out.tellers++;
	job->options->telling = (struct tw__links){&l->out.telling, l->out.telling.previous};
	l->out.telling.previous->next = &job->options->telling;
	l->out.telling.previous = &job->options->telling;
	return work;
}

void tw__tells_leave(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	tw__base_leave_work(&l->base, &l->idles.work);
	for (struct tw__links *link = l->out.telling.next; link != &l->out.telling;
	     link = link->next)
		tw__base_leave_work(&l->base,
				    &TW__OWNER(struct tw__job_options, telling, link)->tell);
}

/* --------------------------------------------------- to be done without lock */

static void send_runners(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	struct tw__runner *runner = deferred->runners;
	deferred->runners = NULL;
	pthread_mutex_unlock(&l->lock);
	for (struct tw__runner *next; runner; runner = next) {
		next = runner->next;
		tw__work_submit(&runner->work);
	}
	tw__limiter_relock(l);
}

static void do_stop(struct tw_limiter *l, struct tw__job *job,
		    struct tw__limiter_deferred *deferred)
{
	struct tw__limiter_call call;
	enum tw_job_status why =
	    job->flags & TW__JOB_OVERDUE ? TW_JOB_STATUS_TIMED_OUT : TW_JOB_STATUS_CANCELLED;
	tw__limiter_leave(l, job, TW__NAMED_BY(job->options->stop), &call);
	job->options->stop(job->arg, tw__attempt_handle(job), why);
	tw__limiter_return(l, &call);
	job->flags &= (uint16_t)~TW__JOB_STOPPING;
	if (job->state == TW_JOB_STATE_SETTLED) {
		tw__job_note_settled(l, job, deferred);
	} else if (job->flags & TW__JOB_ENDED) {
		tw__attempt_go_on(l, job);
		tw__attempt_decide(l, job, tw_service_now(l->service), deferred);
	}
}

static void do_settled(struct tw_limiter *l, struct tw__job *job,
		       struct tw__limiter_deferred *deferred)
{
	struct tw__limiter_call call;
	struct tw_job_result result;
	tw__result_of(job, &result);
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, job);
	if (l->config.event)
		tw__limiter_call_event(&call,
				       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_SETTLED,
								  .job = tw__job_handle(job),
								  .id = job->id,
								  .result = &result});
	if (job->done) {
		tw__limiter_call_show(&call, TW__NAMED_BY(job->done), job->arg, 0);
		job->done(job->arg, &result);
	}
	tw__limiter_return(l, &call);
	tw__job_told(l, job, deferred);
}

/* Whether the job's predicate wants the retry. It may choose another delay. */
static bool limiter_ask(struct tw_limiter *l, struct tw__job *job, uint64_t *delay_ns)
{
	struct tw__limiter_call call;
	int64_t chosen_ns = (int64_t)*delay_ns;
	int error = job->error; /* a timeout may change it */
	uint32_t attempt = job->attempts;
	tw__limiter_leave(l, job, TW__NAMED_BY(job->options->retry.allow), &call);
	bool wants =
	    job->options->retry.allow(job->arg, tw__job_handle(job), error, attempt, &chosen_ns);
	bool is_valid = !wants || tw__delay_is_valid(chosen_ns);
	if (!is_valid)
		(void)tw__bad(-EINVAL, "retry.allow", "delay_ns");
	tw__limiter_return(l, &call);
	*delay_ns = (uint64_t)chosen_ns;
	if (!is_valid && job->state != TW_JOB_STATE_SETTLED) {
		job->flags &= (uint16_t)~TW__JOB_OVERDUE;
		job->error = -EINVAL; /* told above */
	}
	return wants && is_valid;
}

/* The retry that follows, or the end: not wanted, too late, cancelled, closed. */
static void retry_or_end(struct tw_limiter *l, struct tw__job *job, bool wanted, uint64_t delay_ns,
			 struct tw__limiter_deferred *deferred)
{
	uint64_t now_ns = tw_service_now(l->service);
	tw__attempt_go_on(l, job);
	if (wanted && tw__job_has_retries(l, job) && tw__job_can_wait(job, now_ns, delay_ns)) {
		tw__job_back_off(l, job, now_ns + delay_ns);
		/* the job goes on meanwhile, and may end */
		tw__limiter_tell_event(l,
				       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_RETRIED,
								  .attempt = job->attempts,
								  .job = tw__job_handle(job),
								  .id = job->id,
								  .delay_ns = delay_ns});
		return;
	}
	job->options->retry.count = 0;
	tw__attempt_decide(l, job, now_ns, deferred);
}

/* Nothing holds up a retry any more. Its predicate is for the executor to call. */
static void do_retry(struct tw_limiter *l, struct tw__job *job,
		     struct tw__limiter_deferred *deferred)
{
	struct tw__job_options *o = job->options;
	if (!o->retry.allow || !tw__job_has_retries(l, job)) {
		o->asking = TW__ASKING_NOT;
		retry_or_end(l, job, true, tw__job_draw_delay(l, job), deferred);
		return;
	}
	o->asking = TW__ASKING_SENT;
	struct tw__work *work = tell_out(l, job, TELL_JOB);
	pthread_mutex_unlock(&l->lock);
	tw__work_submit(work);
	tw__limiter_relock(l);
}

/* On the executor. A timeout may settle the job meanwhile: then the answer is ignored. */
static void do_ask(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_deferred *deferred)
{
	uint64_t delay_ns = tw__job_draw_delay(l, job);
	job->options->asking = TW__ASKING_RUNS;
	bool wanted = tw__job_has_retries(l, job) && limiter_ask(l, job, &delay_ns);
	job->options->asking = TW__ASKING_NOT;
	if (job->state == TW_JOB_STATE_SETTLED)
		tw__job_look_for_release(l, job, deferred);
	else
		retry_or_end(l, job, wanted, delay_ns, deferred);
}

/* The job has ended, and this thread has it to do, perhaps after a timeout has settled it. */
static void do_ended(struct tw_limiter *l, struct tw__job *job,
		     struct tw__limiter_deferred *deferred)
{
	bool asks = job->options->asking == TW__ASKING_SENT;
	if (job->state == TW_JOB_STATE_SETTLED) {
		job->options->asking = TW__ASKING_NOT;
		tw__job_note_settled(l, job, deferred);
	} else {
		(asks ? do_ask : do_retry)(l, job, deferred);
	}
}

static void do_release(struct tw_limiter *l, struct tw__job *job,
		       struct tw__limiter_deferred *deferred)
{
	struct tw__limiter_call call;
	tw_job_release_fn *release = job->options ? job->options->release : NULL;
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, job);
	if (release) {
		tw__limiter_call_show(&call, TW__NAMED_BY(release), job->arg, 0);
		release(job->arg);
	}
	tw__limiter_call_end(&call);
	job->context = NULL;
	tw__limiter_relock(l);
	tw__job_finish(l, job, deferred);
}

/* The next step of the first job in the list. It may be put there again. */
static void do_job(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	struct tw__job *job = deferred->first_job;
	int asking = job->options ? job->options->asking : TW__ASKING_NOT;
	deferred->first_job = job->next;
	if (job->flags & TW__JOB_STOPPING)
		do_stop(l, job, deferred);
	else if (asking == TW__ASKING_DUE || asking == TW__ASKING_SENT)
		do_ended(l, job, deferred);
	else if (!(job->flags & TW__JOB_TOLD))
		do_settled(l, job, deferred);
	else
		do_release(l, job, deferred);
}

/* One step. */
static void do_next(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	if (deferred->runners) {
		send_runners(l, deferred);
	} else if (deferred->first_job) {
		do_job(l, deferred);
	} else {
		deferred->idle = false;
		tw__idle_tell(l);
	}
}

void tw__limiter_lock(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	*deferred = (struct tw__limiter_deferred){0};
	tw__limiter_relock(l); /* planted: limiter_unlocked */
}

/*
 * What is in the inbox has priority 0, and came later than all that is queued: it need not be
 * taken over while there is such a job.
 */
void tw__limiter_lock_lazily(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	*deferred = (struct tw__limiter_deferred){0};
	pthread_mutex_lock(&l->lock);
	if (l->queue.count == l->queue.lows)
		tw__inbox_look(l);
}

/*
 * The loop ends. A step of a job defers the same job again, four times at most. tw__idle_tell is
 * bounded, and defers nothing. This thread starts runners only if it has found free permits. A
 * thread that gives permits back shuts the inbox and dispatches under one hold of the lock.
 */
void tw__limiter_unlock(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	tw__inbox_attend(l, deferred);
	while (tw_unlikely(deferred->runners || tw__deferred_calls(deferred))) {
		/*
		 * what is sent here may be all that was left, and over before this thread is back
		 */
		l->out.calls++;
		struct to_do list = {deferred, to_do};
		to_do = &list;
		do_next(l, deferred);
		to_do = list.outer;
		l->out.calls--;
		tw__inbox_attend(l, deferred);
	}
	if (tw_unlikely(l->out.destroying))
		tw__bell_ring(&l->ends.quiet);
	pthread_mutex_unlock(&l->lock);
}

/* ---------------------------------------------------------------- from the driver */

struct tw__work *tw__tell_later(struct tw_limiter *l, struct tw__job *job,
				struct tw__limiter_deferred *deferred)
{
	if (!tw__deferred_calls(deferred) || l->base.executor == &tw__inline_executor)
		return NULL;
	uint32_t what = (deferred->first_job ? TELL_JOB : 0u) | (deferred->idle ? TELL_IDLE : 0u);
	*deferred = (struct tw__limiter_deferred){.runners = deferred->runners};
	return tell_out(l, job, what);
}

void tw__attempt_started(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__limiter_deferred deferred = {0};
	struct tw__work *later = NULL;
	pthread_mutex_lock(&l->lock);
	job->flags &= (uint16_t)~TW__JOB_STARTING;
	if (job->state == TW_JOB_STATE_SETTLED) {
		tw__job_note_settled(l, job, &deferred);
		later = tw__tell_later(l, job, &deferred);
	}
	tw__limiter_unlock(l, &deferred);
	if (later)
		tw__work_submit(later);
}
