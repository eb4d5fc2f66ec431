/*
 * How attempts and jobs end: the only place that settles. Calls line.c, and leaves user code that
 * is due in a list.
 */
#include <string.h>

#include "executor/limiter/line.h"
#include "executor/limiter/settle.h"
#include "wheel/timer/timing.h"

/* ------------------------------------------------------------------ results */

void tw__results_put(struct tw__results *results)
{
	if (results && --results->refs == 0)
		free(results);
}

/*
 * Results that were passed on are their listeners' until these have returned; a new collection
 * begins.
 */
int tw__results_reserve(struct tw_limiter *l)
{
	struct tw__results *old = l->results;
	size_t n = old && !old->delivered ? old->n : 0;
	size_t needed = n + (size_t)l->unfinished + 1;
	if (old && !old->delivered && needed <= old->room)
		return 0;
	size_t room = needed < 16 ? 16 : 2 * needed;
	struct tw__results *results = malloc(sizeof *results + room * sizeof *results->items);
	if (!results)
		return -ENOMEM;
	*results = (struct tw__results){.refs = 1, .room = room, .n = n};
	if (n)
		memcpy(results->items, old->items, n * sizeof *old->items);
	tw__results_put(old);
	l->results = results;
	return 0;
}

void tw__idle_reached(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	i->reached++;
	if (l->results)
		l->results->delivered = true;
	while (i->waiting.first) {
		struct tw__listener *listener = tw__listener_of(tw__line_pop(&i->waiting));
		listener->results = l->results;
		if (l->results)
			l->results->refs++;
		tw__line_append(&i->due, tw__in_line_link(&listener->place));
	}
	l->mine->idle = true;
}

/* -------------------------------------------------------------------- times */

/* The next instant at which something is to be done about the job; UINT64_MAX: none. */
static uint64_t due_ns(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	uint64_t next_ns = o->until_ns < o->total_until_ns ? o->until_ns : o->total_until_ns;
	if (job->state == TW__JOB_SETTLED)
		return UINT64_MAX;
	bool is_retry_in_line = job->state == TW__JOB_QUEUED && job->result.attempts > 0;
	return is_retry_in_line && o->retry_deadline_ns < next_ns ? o->retry_deadline_ns + 1
								  : next_ns;
}

bool tw__job_is_due(struct tw_limiter *l, const struct tw__job *job)
{
	return tw__job_is_own(job) && due_ns(job) <= tw__limiter_now(l);
}

void tw__job_keep_time(struct tw__job *job)
{
	if (tw_unlikely(tw__job_is_own(job)))
		tw__due_set(&job->options->due, due_ns(job));
}

/* --------------------------------------------------------------------- lines */

void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job)
{
	job->state = TW__JOB_QUEUED;
	job->since_ns = tw__limiter_now(l);
	if (tw__job_is_own(job))
		job->options->until_ns =
		    tw__instant_after(job->since_ns, job->options->queue_timeout_ns);
	tw__job_line_add(&l->line, job);
}

void tw__job_leave_line(struct tw_limiter *l, struct tw__job *job)
{
	tw__job_line_remove(tw__line_of(l, job), job);
	if (job->state == TW__JOB_QUEUED)
		job->result.queued_ns += tw__job_since(l, job);
}

/* ------------------------------------------------------------------ the end */

/* Its address names the thread. */
static _Thread_local char this_thread;

/* Puts the job into the list: `todo` is due. */
static void tell(struct tw_limiter *l, struct tw__tells *tells, struct tw__job *job,
		 enum tw__job_todo todo)
{
	TW_ASSERT(job->todo == TW__TODO_NOTHING);
	job->todo = (uint8_t)todo;
	job->teller = tells == &l->tells ? NULL : &this_thread;
	*(tells->first ? &tells->last->next : &tells->first) = job;
	tells->last = job;
	job->next = NULL;
}

bool tw__job_is_mine(const struct tw__job *job)
{
	return job->teller == &this_thread;
}

static void wake_waiters(struct tw__job *job)
{
	if (tw_likely(!job->waiters))
		return;
	tw_store_release(&job->bell, 1);
	tw__futex_wake(&job->bell, INT32_MAX);
}

static void free_job(struct tw_limiter *l, struct tw__job *job)
{
	if (job->options->due.is_out)
		return;
	if (tw__job_is_own(job))
		free(job->options);
	job->options = &tw__plain_options;
	if (job->flags & TW__JOB_KEEP || job->waiters)
		return;
	job->state = TW__JOB_GONE;
	tw__node_put_later(&l->nodes, &l->gone, &job->node);
	if (!l->unfinished)
		tw__node_put_batch(&l->nodes, &l->gone);
}

/* It has settled. Whoever calls what is due comes here again. */
static void end_job(struct tw_limiter *l, struct tw__job *job)
{
	if (job->todo == TW__TODO_ASK)
		job->todo = TW__TODO_DONE; /* in the limiter's list */
	if (job->todo || job->flags & TW__JOB_STARTING)
		return;
	if (!(job->flags & TW__JOB_TOLD) && (job->done || l->config.event)) {
		tell(l, l->mine, job, TW__TODO_DONE);
		return;
	}
	job->flags |= TW__JOB_TOLD;
	wake_waiters(job);
	if (job->flags & (TW__JOB_INSIDE | TW__JOB_ASKED))
		return;
	if (job->options->release) {
		tell(l, l->mine, job, TW__TODO_RELEASE);
		return;
	}
	job->flags |= TW__JOB_FINISHED;
	if (--l->unfinished == 0) {
		l->idles.event_due = l->config.event != NULL;
		tw__idle_reached(l);
	}
}

static void decide(struct tw_limiter *l, struct tw__job *job);

void tw__job_go_on(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (job->state == TW__JOB_RUNNING) {
		if (!(job->flags & TW__JOB_INSIDE) && job->todo != TW__TODO_STOP)
			decide(l, job);
		return;
	}
	if (job->state != TW__JOB_SETTLED)
		return;
	if (!(job->flags & TW__JOB_FINISHED))
		end_job(l, job);
	if (job->flags & TW__JOB_FINISHED)
		free_job(l, job);
}

void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	TW_ASSERT(job->state != TW__JOB_SETTLED && job->state != TW__JOB_GONE);
	job->state = TW__JOB_SETTLED;
	job->result.status = status;
	job->result.error = error;
	tw__job_keep_time(job);
	l->ended_as[status]++;
	l->stats.late += (job->flags & TW__JOB_INSIDE) != 0;
	if (l->config.flags & TW_LIMITER_COLLECT)
		l->results->items[l->results->n++] = job->result;
	if (status == TW_JOB_STATUS_TIMED_OUT)
		wake_waiters(job);
	tw__job_go_on(l, job);
}

/* ------------------------------------------------------------------ retries */

/*
 * The policy has the first say (struct tw_retry: count, times, jitter), then the job's predicate.
 *
 * Full jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
bool tw__job_may_retry(struct tw_limiter *l, const struct tw__job *job, uint64_t delay_ns)
{
	const struct tw__job_options *o = job->options;
	if (job->result.attempts > o->retry.count || l->ended || job->flags & TW__JOB_CANCELLED)
		return false;
	uint64_t at_ns = tw__limiter_now(l) + delay_ns;
	return at_ns <= o->retry_deadline_ns && at_ns < o->total_until_ns;
}

uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__job_options *o = job->options;
	uint64_t delay_ns = o->delay_ns;
	unsigned __int128 next = (unsigned __int128)delay_ns * o->retry.factor_x100 / 100;
	o->delay_ns = next < o->retry.cap_ns ? (uint64_t)next : o->retry.cap_ns;
	bool draws = delay_ns && o->retry.jitter == TW_RETRY_JITTER_FULL;
	return draws ? tw__random_upto(&l->random, delay_ns) : delay_ns;
}

static void settle_by_result(struct tw_limiter *l, struct tw__job *job)
{
	int error = job->result.error;
	if (error == 0)
		tw__settle(l, job, TW_JOB_STATUS_SUCCEEDED, 0);
	else if (job->flags & TW__JOB_CANCELLED)
		tw__settle(l, job, TW_JOB_STATUS_CANCELLED, error);
	else if (job->flags & TW__JOB_OVERDUE || job->options->total_until_ns <= tw__limiter_now(l))
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	else
		tw__settle(l, job, TW_JOB_STATUS_FAILED, error);
}

void tw__retry_answered(struct tw_limiter *l, struct tw__job *job, bool wanted, uint64_t delay_ns)
{
	if (!wanted || !tw__job_may_retry(l, job, delay_ns)) {
		settle_by_result(l, job);
		return;
	}
	job->state = TW__JOB_DELAYED;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP | TW__JOB_OVERDUE;
	job->options->until_ns = tw__limiter_now(l) + delay_ns;
	tw__job_line_add(&l->delayed, job);
	l->stats.retried++;
	tw__job_keep_time(job);
	if (l->config.event) /* the job goes on meanwhile, and may end */
		l->mine->retried = (struct tw_limiter_event){.kind = TW_LIMITER_EVENT_RETRIED,
							     .attempt = job->result.attempts,
							     .job = tw__job_handle(job),
							     .id = job->result.id,
							     .delay_ns = delay_ns};
}

/* An attempt has ended, and its `stop` has returned. */
static void decide(struct tw_limiter *l, struct tw__job *job)
{
	if (tw_likely(!job->result.error) || !tw__job_may_retry(l, job, 0)) {
		settle_by_result(l, job);
	} else if (!job->options->retry.allow) {
		tw__retry_answered(l, job, true, tw__job_draw_delay(l, job));
	} else {
		job->state = TW__JOB_ASKING;
		tell(l, &l->tells, job, TW__TODO_ASK);
		tw__job_keep_time(job);
	}
}

/* ----------------------------------------------------------------- attempts */

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	uint64_t run_ns = tw__job_since(l, job);
	job->flags &= (uint16_t)~TW__JOB_INSIDE;
	l->stats.permits -= job->took;
	l->stats.running--;
	tw__histogram_add(&l->run_ns, run_ns, 1);
	if (job->state == TW__JOB_SETTLED) {
		l->stats.late--;
	} else {
		bool overdue = job->flags & TW__JOB_OVERDUE; /* its result is ignored */
		job->result.run_ns += run_ns;
		job->result.error = overdue ? -ETIMEDOUT : error;
		job->result.value = overdue ? NULL : value;
		if (tw__job_is_own(job))
			job->options->until_ns = UINT64_MAX;
	}
	tw__job_go_on(l, job);
}

void tw__job_stop(struct tw_limiter *l, struct tw__job *job)
{
	if (job->options->stop && !(job->flags & TW__JOB_STOPPED))
		tell(l, l->mine, job, TW__TODO_STOP);
	job->flags |= TW__JOB_STOPPED;
}

/* An attempt is past a time. It settles the job, unless a retry may follow. */
static void attempt_is_over(struct tw_limiter *l, struct tw__job *job)
{
	struct tw__job_options *o = job->options;
	bool chooses = o->retry.allow || o->retry.jitter == TW_RETRY_JITTER_FULL;
	bool goes_on = tw__job_may_retry(l, job, chooses ? 0 : o->delay_ns);
	job->flags |= TW__JOB_OVERDUE;
	o->until_ns = UINT64_MAX;
	tw__job_stop(l, job);
	if (goes_on)
		return;
	job->result.run_ns += tw__job_since(l, job); /* the time that follows does not count */
	tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

void tw__job_look(struct tw_limiter *l, struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	uint64_t now_ns;
	if (!tw__job_is_due(l, job))
		return;
	now_ns = tw__limiter_now(l);
	if (tw__line_of(l, job))
		tw__job_leave_line(l, job);
	if (job->state == TW__JOB_COMING)
		tw__object_ring(&l->object);
	else if (job->state == TW__JOB_RUNNING && job->flags & TW__JOB_INSIDE)
		attempt_is_over(l, job);
	else if (job->state == TW__JOB_RUNNING ||
		 (job->state == TW__JOB_QUEUED && o->until_ns > now_ns &&
		  o->total_until_ns > now_ns))
		settle_by_result(l, job); /* in line, the deadline of retries has passed */
	else if (job->state == TW__JOB_DELAYED && o->total_until_ns > now_ns)
		tw__job_enqueue(l, job);
	else /* ASKING: also if it was cancelled, since the user's code may run on */
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

/* What follows is the executor's to call. */
void tw__job_time(struct tw__due *due)
{
	struct tw__job *job = TW__OWNER(struct tw__job_options, due, due)->job;
	tw__job_look(due->limiter, job);
	due->is_out = false; /* not before: the job stays */
	if (job->state != TW__JOB_SETTLED)
		tw__job_keep_time(job);
	tw__job_go_on(due->limiter, job);
}
