/* How attempts and jobs end: the only place that settles. Calls lock.c, and no user code. */
#include <string.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"
#include "wheel/timer/schedule.h"

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
		tw__free(results);
}

/* Results that were delivered stay with their listeners. */
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

/* ------------------------------------------------------------------ the end */

void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	if (!(job->flags & TW__JOB_FINISHED) || job->options->due.is_out)
		return;
	if (tw__job_is_own(job))
		tw__free(job->options);
	job->options = &tw__plain_options;
	if (job->flags & TW__JOB_KEEP || job->waiters)
		return;
	job->state = TW__JOB_GONE;
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
	TW_ASSERT(job->state != TW__JOB_SETTLED && job->state != TW__JOB_GONE);
	job->state = TW__JOB_SETTLED;
	job->status = (uint8_t)status;
	job->error = error;
	tw__job_keep_time(job);
	l->counters.settled++;
	l->counters.ended[status]++;
	l->permits.late += (job->flags & TW__JOB_INSIDE) != 0;
	if (l->config.flags & TW_LIMITER_COLLECT)
		tw__result_of(job, &l->results->items[l->results->n++]);
	if (status == TW_JOB_STATUS_TIMED_OUT)
		tw__job_wake(job);
}

/* ------------------------------------------------------------------ retries */

/*
 * The policy decides first (struct tw_retry: count, times, jitter), then retry.allow.
 *
 * Full jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job)
{
	return job->attempts <= job->options->retry.count && !l->ended &&
	       !(job->flags & TW__JOB_CANCELLED);
}

static bool can_wait(const struct tw__job *job, uint64_t now_ns, uint64_t delay_ns)
{
	uint64_t at_ns = now_ns + delay_ns;
	return at_ns <= job->options->retry_deadline_ns && at_ns < job->options->total_until_ns;
}

static bool may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	const struct tw__job_options *o = job->options;
	bool chooses = o->retry.allow || o->retry.jitter == TW_RETRY_JITTER_FULL;
	return tw__job_has_retries(l, job) && can_wait(job, now_ns, chooses ? 0 : o->delay_ns);
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

static void settle_by_result(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
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

bool tw__retry_answered(struct tw_limiter *l, struct tw__job *job, bool wanted, uint64_t delay_ns)
{
	uint64_t now_ns = tw_service_now(l->service);
	if (!wanted || !tw__job_has_retries(l, job) || !can_wait(job, now_ns, delay_ns)) {
		settle_by_result(l, job, now_ns);
		return false;
	}
	job->state = TW__JOB_DELAYED;
	job->flags &= TW__JOB_ASYNC | TW__JOB_KEEP | TW__JOB_OVERDUE;
	job->options->until_ns = now_ns + delay_ns;
	tw__job_line_add(&l->delayed, job);
	l->counters.retried++;
	tw__job_keep_time(job);
	return true;
}

/* ----------------------------------------------------------------- attempts */

bool tw__attempt_decide(struct tw_limiter *l, struct tw__job *job)
{
	uint64_t now_ns = job->error ? tw_service_now(l->service) : 0;
	if (job->error && may_retry(l, job, now_ns))
		return true;
	settle_by_result(l, job, now_ns);
	return false;
}

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value,
		     uint64_t now_ns)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	uint64_t run_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	job->flags &= (uint16_t)~TW__JOB_INSIDE;
	l->permits.out -= job->took;
	l->permits.attempts--;
	tw__histogram_add(&l->counters.run, run_ns, 1);
	if (job->state == TW__JOB_SETTLED) {
		l->permits.late--;
		return;
	}
	bool overdue = job->flags & TW__JOB_OVERDUE; /* its result is ignored */
	job->run_ns += run_ns;
	job->error = overdue ? -ETIMEDOUT : error;
	job->value = overdue ? NULL : value;
	job->state = TW__JOB_ENDED;
	if (tw_likely(!(job->flags & (TW__JOB_BUSY | TW__JOB_STOP_DUE))))
		return;
	job->options->until_ns = UINT64_MAX; /* until `stop` has returned */
	tw__job_keep_time(job);
}

void tw__job_stop(struct tw__job *job)
{
	if (job->options->stop && !(job->flags & TW__JOB_STOPPED))
		job->flags |= TW__JOB_STOP_DUE;
	job->flags |= TW__JOB_STOPPED;
}

/* --------------------------------------------------------------------- times */

/* UINT64_MAX: never. */
static uint64_t due_ns(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	uint64_t next_ns = o->until_ns < o->total_until_ns ? o->until_ns : o->total_until_ns;
	if (job->state == TW__JOB_SETTLED)
		return UINT64_MAX;
	bool is_retry_in_line = job->state == TW__JOB_QUEUED && job->attempts > 0;
	return is_retry_in_line && o->retry_deadline_ns < next_ns ? o->retry_deadline_ns + 1
								  : next_ns;
}

bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns)
{
	return tw__job_is_own(job) && due_ns(job) <= now_ns;
}

void tw__job_keep_time(struct tw__job *job)
{
	if (tw_unlikely(tw__job_is_own(job)))
		tw__due_set(&job->options->due, due_ns(job));
}

void tw__stay_is_over(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	const struct tw__job_options *o = job->options;
	bool timed_out = o->until_ns <= now_ns || o->total_until_ns <= now_ns;
	tw__job_leave_line(l, job, now_ns);
	if (timed_out)
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	else /* the deadline of retries has passed */
		settle_by_result(l, job, now_ns);
}

static void attempt_is_over(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	struct tw__job_options *o = job->options;
	bool settles = o->total_until_ns <= now_ns || !may_retry(l, job, now_ns);
	job->flags |= TW__JOB_OVERDUE;
	o->until_ns = UINT64_MAX;
	tw__job_stop(job);
	if (!settles)
		return;
	if (now_ns > job->since_ns)
		job->run_ns += now_ns - job->since_ns;
	tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	if (!tw__job_is_due(job, now_ns))
		return;
	job->flags |= TW__JOB_STOPPED; /* no `stop` is called for what has ended */
	attempt_is_over(l, job, now_ns);
}

void tw__attempt_completed(struct tw_limiter *l, struct tw__job *job)
{
	job->flags |= TW__JOB_COMPLETED | TW__JOB_STOPPED;
	if (!tw__job_is_own(job) || job->state == TW__JOB_SETTLED)
		return;
	bool failed = job->error || job->flags & TW__JOB_OVERDUE;
	job->options->until_ns = UINT64_MAX;
	if (!failed || !tw__job_has_retries(l, job))
		job->options->total_until_ns = UINT64_MAX;
	tw__job_keep_time(job);
}

void tw__time_has_come(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	bool is_delayed = job->state == TW__JOB_DELAYED;
	if (job->state == TW__JOB_COMING) {
		tw__object_ring(&l->object);
	} else if (job->state == TW__JOB_QUEUED) {
		tw__stay_is_over(l, job, now_ns);
	} else if (job->state == TW__JOB_RUNNING) {
		attempt_is_over(l, job, now_ns);
	} else if (job->state == TW__JOB_ENDED) {
		settle_by_result(l, job, now_ns);
	} else { /* ASKING: also if it was cancelled, since the user's code may run on */
		if (is_delayed)
			tw__job_leave_line(l, job, now_ns);
		if (is_delayed && job->options->total_until_ns > now_ns)
			tw__job_enqueue(l, job, now_ns);
		else
			tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	}
}
