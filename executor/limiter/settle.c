/*
 * How attempts and jobs of a limiter end, and which callbacks are called for it.
 */
#include <string.h>

#include "executor/limiter/settle.h"
#include "executor/limiter/idle.h"
#include "executor/limiter/retry.h"

enum { GONE_AT_ONCE = 16 };

/* ------------------------------------------------------------------ results */

void tw__result_of(const struct tw__job *job, struct tw_job_result *out)
{
	*out = (struct tw_job_result){.id = job->id,
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
		free(results);
}

/*
 * Results that were passed on are their listeners' until these have returned; a new collection
 * begins.
 */
int tw__results_reserve(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	struct tw__results *old = l->results;
	bool fresh = !old || old->delivered;
	size_t needed = (fresh ? 0 : old->n) + (size_t)(l->counters.added - l->ends.settled) + 1;
	if (!fresh && needed <= old->room)
		return 0;
	size_t room = needed < 16 ? 16 : 2 * needed;
	struct tw__results *results = malloc(sizeof *results + room * sizeof *results->items);
	if (!results)
		return -ENOMEM;
	*results = (struct tw__results){.refs = 1, .room = room};
	if (!fresh) {
		results->n = old->n;
		memcpy(results->items, old->items, old->n * sizeof *old->items);
	}
	tw__results_put(old);
	l->results = results;
	return 0;
}

/* ------------------------------------------------------------------ the end */

static void count(struct tw_limiter *l, enum tw_job_status status)
{
	l->ends.settled++;
	l->counters.ended[status]++;
}

/* One is through with everything. */
void tw__job_finish(struct tw_limiter *l, struct tw__job *job,
		    struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->flags |= TW__JOB_FINISHED;
	if (--l->ends.unfinished == 0) {
		tw__idle_reached(l);
		deferred->idle = true;
	}
	/* else after the listeners */
	if (l->ends.unfinished == l->pending && !deferred->idle)
		tw__bell_ring(&l->ends.quiet);
	tw__job_look_for_end(l, job);
}

static void put_gone(struct tw_limiter *l)
{
	struct tw__job *job = l->ends.gone;
	for (struct tw__job *next; job; job = next) {
		next = job->next;
		tw__node_put(&l->nodes, &job->node);
	}
	l->ends.gone = NULL;
	l->ends.gone_n = 0;
}

void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (!(job->flags & TW__JOB_FINISHED) || job->holds || job->state == TW_JOB_STATE_GONE)
		return;
	l->times.timed -= job->options != NULL;
	free(job->options);
	job->options = NULL;
	if (job->flags & TW__JOB_KEEP || job->waiters)
		return;
	job->state = TW_JOB_STATE_GONE;
	job->next = l->ends.gone;
	l->ends.gone = job;
	if (++l->ends.gone_n == GONE_AT_ONCE || !l->ends.unfinished)
		put_gone(l);
}

void tw__job_look_for_release(struct tw_limiter *l, struct tw__job *job,
			      struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (job->flags & (TW__JOB_INSIDE | TW__JOB_STOPPING | TW__JOB_RELEASED) ||
	    !(job->flags & TW__JOB_TOLD) || (job->options && job->options->asking))
		return;
	job->flags |= TW__JOB_RELEASED;
	if (job->context || (job->options && job->options->release))
		tw__defer_job(deferred, job);
	else
		tw__job_finish(l, job, deferred);
}

static void wake_waiters(struct tw__job *job)
{
	if (tw_likely(!job->waiters))
		return;
	tw_store_release(&job->bell, 1);
	tw__futex_wake(&job->bell, INT32_MAX);
}

void tw__job_told(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->flags |= TW__JOB_TOLD;
	wake_waiters(job);
	tw__job_look_for_release(l, job, deferred);
}

void tw__job_note_settled(struct tw_limiter *l, struct tw__job *job,
			  struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	bool is_to_do = job->options && (job->options->asking == TW__ASKING_DUE ||
					 job->options->asking == TW__ASKING_SENT);
	if (is_to_do || job->flags & (TW__JOB_STOPPING | TW__JOB_STARTING))
		return;
	if (job->done || l->config.event)
		tw__defer_job(deferred, job);
	else
		tw__job_told(l, job, deferred);
}

void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error,
		struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->state = TW_JOB_STATE_SETTLED;
	job->status = (uint8_t)status;
	job->error = error;
	if (status != TW_JOB_STATUS_SUCCEEDED && status != TW_JOB_STATUS_FAILED && !job->attempts)
		job->value = NULL;
	tw__job_forget_time(l, job);
	count(l, status);
	if (l->config.flags & TW_LIMITER_COLLECT)
		tw__result_of(job, &l->results->items[l->results->n++]);
	if (status == TW_JOB_STATUS_TIMED_OUT)
		wake_waiters(job);
	if (job->flags & TW__JOB_INSIDE)
		l->permits.late++; /* reported by the thread that calls `stop` */
	else
		tw__job_note_settled(l, job, deferred);
}

void tw__job_stop(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	bool tells = job->options && job->options->stop && !(job->flags & TW__JOB_STOPPED);
	job->flags |= TW__JOB_STOPPED;
	if (tells) {
		job->flags |= TW__JOB_STOPPING;
		tw__defer_job(deferred, job);
	} else if (job->state == TW_JOB_STATE_SETTLED) {
		tw__job_note_settled(l, job, deferred);
	}
}

/* ----------------------------------------------------------------- attempts */

/* What follows on the attempt's end has to wait; no longer than the job's total timeout. */
static void hold_up(struct tw_limiter *l, struct tw__job *job)
{
	job->flags |= TW__JOB_ENDED;
	l->ends.between++;
	tw__job_keep_time(l, job);
}

void tw__attempt_go_on(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->flags &= (uint16_t)~TW__JOB_ENDED;
	l->ends.between--;
}

/*
 * The attempt has ended, nothing holds up what follows. `job->error` and `job->value` are its own.
 */
void tw__attempt_decide(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
			struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	bool overdue = job->flags & TW__JOB_OVERDUE;
	if (overdue) {
		job->error = -ETIMEDOUT; /* its result is ignored */
		job->value = NULL;
	}
	if (job->error == 0) {
		tw__settle(l, job, TW_JOB_STATUS_SUCCEEDED, 0, deferred);
	} else if (job->flags & TW__JOB_CANCEL) {
		tw__settle(l, job, TW_JOB_STATUS_CANCELLED, job->error, deferred);
	} else if (tw__job_may_retry(l, job, now_ns)) {
		hold_up(l, job);
		job->options->asking = TW__ASKING_DUE;
		tw__defer_job(deferred, job);
	} else if (overdue || tw__job_is_past(job, now_ns)) {
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT, deferred);
	} else {
		tw__settle(l, job, TW_JOB_STATUS_FAILED, job->error, deferred);
	}
}

static void give_permits_back(struct tw_limiter *l, const struct tw__job *job)
{
	l->permits.running--;
	if (tw_likely(!job->options))
		return;
	l->permits.running -= job->options->extra;
	l->permits.extra -= job->options->extra;
}

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value,
		     uint64_t now_ns, struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	uint64_t run_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	job->flags &= (uint16_t)~TW__JOB_INSIDE;
	give_permits_back(l, job);
	tw__histogram_add(&l->counters.run, run_ns, 1);
	if (job->state == TW_JOB_STATE_SETTLED) {
		l->permits.late--;
		tw__job_look_for_release(l, job, deferred);
		return;
	}
	job->run_ns += run_ns;
	job->error = error;
	job->value = value;
	if (job->flags & TW__JOB_STOPPING)
		hold_up(l, job);
	else
		tw__attempt_decide(l, job, now_ns, deferred);
}
