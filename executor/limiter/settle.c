/* How attempts and jobs end: the only place that settles. Calls lock.c and idle.c, no user code. */
#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* -------------------------------------------------------------------- times */

/* UINT64_MAX: never. */
static uint64_t due_ns(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	uint64_t next_ns = tw__lesser(o->until_ns, o->total_until_ns);
	if (job->state >= TW__JOB_SETTLED)
		return UINT64_MAX;
	bool is_retry_in_line = job->state == TW__JOB_QUEUED && job->attempts > 0;
	return is_retry_in_line && o->retry_deadline_ns < next_ns ? o->retry_deadline_ns + 1
								  : next_ns;
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

bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns,
		       uint64_t delay_ns)
{
	const struct tw__job_options *o = job->options;
	uint64_t at_ns = now_ns + delay_ns;
	return job->attempts <= o->task.retry.count && !l->ended &&
	       !(job->flags & TW__JOB_CANCELLED) && at_ns <= o->retry_deadline_ns &&
	       at_ns < o->total_until_ns;
}

bool tw__job_may_want_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	const struct tw_retry *retry = &job->options->task.retry;
	bool chooses = retry->allow || retry->jitter == TW_RETRY_JITTER_FULL;
	return tw__job_may_retry(l, job, now_ns, chooses ? 0 : job->options->delay_ns);
}

void tw__job_stop(struct tw__job *job)
{
	if (job->options->task.stop && !(job->flags & TW__JOB_STOPPED))
		job->flags |= TW__JOB_STOP_DUE;
	job->flags |= TW__JOB_STOPPED;
}

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value,
		     uint64_t now_ns)
{
	TW_ASSERT_TINY_LOCKED(&l->object.lock);
	uint64_t run_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	l->permits.out -= job->took;
	l->permits.attempts--;
	job->took = 0;
	tw__histogram_add(&l->counters.run, run_ns, 1);
	if (job->state >= TW__JOB_SETTLED) {
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

static void attempt_is_over(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	bool settles = !tw__job_may_want_retry(l, job, now_ns);
	job->flags |= TW__JOB_OVERDUE;
	job->options->until_ns = UINT64_MAX;
	tw__job_stop(job);
	if (!settles)
		return;
	if (now_ns > job->since_ns)
		job->run_ns += now_ns - job->since_ns;
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
		break;
	case TW__JOB_RUNNING:
		attempt_is_over(l, job, now_ns);
		break;
	case TW__JOB_ENDED:
		tw__settle_by_result(l, job, now_ns);
		break;
	case TW__JOB_QUEUED:
	case TW__JOB_DELAYED:
		tw__job_leave_line(l, job, now_ns);
		if (!is_total && job->state == TW__JOB_DELAYED) {
			tw__job_enqueue(l, job, now_ns);
			break;
		}
		if (!is_total && o->until_ns > now_ns) { /* the deadline of retries has passed */
			tw__settle_by_result(l, job, now_ns);
			break;
		}
		/* fall through */
	default: /* ASKING, also of a cancelled job: tw_job_wait need not wait for retry.allow */
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	}
	return true;
}
