/*
 * How attempts and jobs end, which is the only place that settles, and what their ends bring:
 * results and idle. Calls lock.c, and no user code.
 */
#include <string.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* -------------------------------------------------------------------- times */

bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns,
		       uint64_t delay_ns)
{
	const struct tw__job_options *o = job->options;
	return job->attempts <= o->task.retry.count && !l->ended &&
	       !(job->flags & TW__JOB_CANCELLED) &&
	       now_ns + delay_ns < tw__lesser(o->retry_until_ns, o->total_until_ns);
}

bool tw__job_may_want_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	const struct tw_retry *retry = &job->options->task.retry;
	bool chooses = retry->allow || retry->jitter == TW_RETRY_JITTER_FULL;
	return tw__job_may_retry(l, job, now_ns, chooses ? 0 : job->options->delay_ns);
}

/* UINT64_MAX: never. */
static uint64_t due_ns(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	uint64_t next_ns = UINT64_MAX;
	if (job->state >= TW__JOB_SETTLED)
		return UINT64_MAX;
	if (job->state == TW__JOB_DELAYED)
		next_ns = job->since_ns;
	if (job->state == TW__JOB_QUEUED)
		next_ns = tw__lesser(tw__instant_after(job->since_ns, o->task.queue_timeout_ns),
				     job->attempts ? o->retry_until_ns : UINT64_MAX);
	if (job->state == TW__JOB_RUNNING && job->flags & TW__JOB_COMPLETED) {
		/* nothing stops the function any more, and only a retry can come too late */
		if (!job->error || !tw__job_may_retry(o->due.limiter, job, 0, 0))
			return UINT64_MAX;
	} else if (job->state == TW__JOB_RUNNING && !(job->flags & TW__JOB_OVERDUE)) {
		next_ns = tw__instant_after(job->since_ns, o->task.attempt_timeout_ns);
	}
	return tw__lesser(next_ns, o->total_until_ns);
}

bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns)
{
	return !tw__job_is_plain(job) && due_ns(job) <= now_ns;
}

void tw__job_keep_time(struct tw__job *job)
{
	if (tw_unlikely(!tw__job_is_plain(job)))
		tw__due_set(&job->options->due, due_ns(job));
}

/* ------------------------------------------------------------------ results */

struct tw_job_result tw__result_of(const struct tw__job *job)
{
	return (struct tw_job_result){.id = job->id,
				      .status = (enum tw_job_status)job->status,
				      .error = job->error,
				      .value = job->value,
				      .attempts = job->attempts,
				      .queued_ns = job->queued_ns,
				      .run_ns = job->run_ns};
}

void tw__results_put(struct tw__results *results)
{
	if (results && --results->refs == 0)
		tw__free(results);
}

/* Results that were delivered belong to their listeners. */
int tw__results_reserve(struct tw_limiter *l)
{
	struct tw__results *old = l->results;
	size_t n = old && !old->delivered ? old->n : 0;
	size_t needed = n + (size_t)(l->counters.added - l->counters.settled) + 1;
	if (old && !old->delivered && needed <= old->room)
		return 0;
	size_t room = needed < 16 ? 16 : 2 * needed;
	struct tw__results *results = tw__alloc(sizeof *results + room * sizeof *results->items);
	if (!results)
		return -ENOMEM;
	*results = (struct tw__results){.refs = 1, .room = room, .n = n};
	if (n)
		memcpy(results->items, old->items, n * sizeof *old->items);
	tw__results_put(old);
	l->results = results;
	return 0;
}

/* ---------------------------------------------------------------------- idle */

void tw__idle_reached(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	i->reached++;
	if (l->results)
		l->results->delivered = true;
	for (tw__link link = i->waiting.first; link; link = *tw__link_at(link)) {
		tw__listener_of(link)->results = l->results;
		if (l->results)
			l->results->refs++;
	}
	tw__line_move(&i->waiting, &i->due);
	if (!i->telling && !i->event_due && !i->due.first) { /* nothing is to be called */
		i->told = i->reached;
		tw__object_ring(&l->object);
	}
}

/* ------------------------------------------------------------------ the end */

void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (job->state != TW__JOB_FINISHED || job->options->due.is_out)
		return;
	if (!tw__job_is_plain(job))
		tw__free(job->options);
	job->options = &tw__plain_options;
	if (job->flags & TW__JOB_KEEP || job->waiters)
		return;
	tw__node_put_later(&l->nodes, &l->gone, &job->node);
	if (!l->unfinished)
		tw__node_put_batch(&l->nodes, &l->gone);
}

void tw__job_wake(struct tw__job *job)
{
	if (tw_likely(!job->waiters))
		return;
	tw_store_release(&job->bell, 1);
	tw__futex_wake(&job->bell, INT32_MAX);
}

void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	TW_ASSERT(job->state < TW__JOB_SETTLED);
	job->state = TW__JOB_SETTLED;
	job->status = (uint8_t)status;
	job->error = error;
	tw__job_keep_time(job);
	l->counters.settled++;
	l->counters.ended[status]++;
	l->permits.late += job->took > 0;
	if (l->config.flags & TW_LIMITER_COLLECT)
		l->results->items[l->results->n++] = tw__result_of(job);
	if (status == TW_JOB_STATUS_TIMED_OUT)
		tw__job_wake(job);
}

void tw__settle_by_result(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	if (job->error == 0)
		tw__settle(l, job, TW_JOB_STATUS_SUCCEEDED, 0);
	else if (job->flags & TW__JOB_CANCELLED)
		tw__settle(l, job, TW_JOB_STATUS_CANCELLED, job->error);
	else if (job->flags & TW__JOB_OVERDUE || job->options->total_until_ns <= now_ns)
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	else
		tw__settle(l, job, TW_JOB_STATUS_FAILED, job->error);
}

/* ----------------------------------------------------------------- attempts */

void tw__job_stop(struct tw__job *job)
{
	if (job->options->task.stop && !(job->flags & TW__JOB_STOPPED))
		job->flags |= TW__JOB_STOP_DUE;
	job->flags |= TW__JOB_STOPPED;
}

bool tw__attempt_answer(struct tw_limiter *l, struct tw__job *job, int error, void *value,
			uint64_t now_ns)
{
	job->flags |= TW__JOB_STOPPED;
	tw__job_look(l, job, now_ns);
	if (job->state >= TW__JOB_SETTLED)
		return false;
	bool overdue = job->flags & TW__JOB_OVERDUE;
	job->error = overdue ? -ETIMEDOUT : error;
	job->value = overdue ? NULL : value;
	return !overdue;
}

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	uint64_t run_ns = tw__elapsed(job->since_ns, now_ns);
	l->permits.out -= job->took;
	l->permits.attempts--;
	job->took = 0;
	tw__histogram_add(&l->counters.run, run_ns, 1);
	if (job->state >= TW__JOB_SETTLED) {
		l->permits.late--;
		return;
	}
	job->run_ns += run_ns;
	job->state = TW__JOB_ENDED;
}

static void attempt_is_over(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	bool settles = !tw__job_may_want_retry(l, job, now_ns);
	job->flags |= TW__JOB_OVERDUE;
	tw__job_stop(job);
	if (!settles)
		return;
	job->run_ns += tw__elapsed(job->since_ns, now_ns);
	tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

bool tw__job_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	const struct tw__job_options *o = job->options;
	bool is_total = o->total_until_ns <= now_ns;
	if (!tw__job_is_due(job, now_ns))
		return false;
	switch (job->state) {
	case TW__JOB_COMING:
		tw__object_ring(&l->object);
		return true;
	case TW__JOB_RUNNING:
		attempt_is_over(l, job, now_ns);
		return true;
	case TW__JOB_ENDED:
		tw__settle_by_result(l, job, now_ns);
		return true;
	case TW__JOB_DELAYED:
		tw__job_leave_line(l, job, now_ns);
		if (!is_total) {
			tw__job_enqueue(l, job, now_ns);
			return true;
		}
		break;
	default:
		tw__job_leave_line(l, job, now_ns);
		if (!is_total && job->attempts && o->retry_until_ns <= now_ns) {
			tw__settle_by_result(l, job, now_ns);
			return true;
		}
	}
	tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	return true;
}
