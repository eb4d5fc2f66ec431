/*
 * Retries of a limiter: whether a failed attempt is followed by another, and after which delay.
 *
 * Three have a say, in this order: the attempt (enum tw_job_next), the policy (struct tw_retry:
 * count, times, jitter), and the job's predicate. tell.c calls the predicate, which is user code.
 *
 * The jitters are those of Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
 * 2015. With `decorrelated` the last drawn delay takes the place of the exponential one.
 */
#include "executor/limiter/backoff.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/retry.h"
#include "wheel/timer/timing.h"

bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	return o && job->attempts <= o->retry.count && !l->ended && !(job->flags & TW__JOB_CANCEL);
}

static uint64_t first_delay(const struct tw_retry *retry)
{
	return retry->delay_ns < retry->cap_ns ? retry->delay_ns : retry->cap_ns;
}

/* The shortest delay that may be drawn. A predicate may choose any. */
static uint64_t least_delay(const struct tw__job_options *o)
{
	if (o->retry.allow)
		return 0;
	if (o->next == TW_JOB_NEXT_DELAY)
		return o->next_delay_ns;
	switch (o->retry.jitter) {
	case TW_RETRY_JITTER_FULL:
		return 0;
	case TW_RETRY_JITTER_EQUAL:
		return o->delay_ns / 2;
	case TW_RETRY_JITTER_DECORRELATED:
		return first_delay(&o->retry);
	default:
		return o->delay_ns;
	}
}

bool tw__job_can_wait(const struct tw__job *job, uint64_t now_ns, uint64_t delay_ns)
{
	uint64_t at_ns = now_ns + delay_ns;
	return at_ns <= job->options->retry_deadline_ns && at_ns < job->options->total_until_ns;
}

bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	return tw__job_has_retries(l, job) && job->options->next != TW_JOB_NEXT_FAIL &&
	       tw__job_can_wait(job, now_ns, least_delay(job->options));
}

/* delay_ns * hundredths / 100, at most cap. */
static uint64_t limiter_grown(const struct tw_retry *retry, uint64_t delay_ns, uint32_t hundredths)
{
	unsigned __int128 next = (unsigned __int128)delay_ns * hundredths / 100;
	return next < retry->cap_ns ? (uint64_t)next : retry->cap_ns;
}

static uint64_t draw_between(struct tw_limiter *l, uint64_t from_ns, uint64_t to_ns)
{
	return from_ns + (to_ns > from_ns ? tw__random_upto(&l->random, to_ns - from_ns) : 0);
}

static uint64_t limiter_draw(struct tw_limiter *l, struct tw__job_options *o)
{
	uint64_t delay_ns = o->delay_ns;
	if (o->retry.jitter == TW_RETRY_JITTER_DECORRELATED)
		return o->delay_ns = draw_between(l, first_delay(&o->retry),
						  limiter_grown(&o->retry, delay_ns, 300));
	o->delay_ns = limiter_grown(&o->retry, delay_ns, o->retry.factor_x100);
	if (o->retry.jitter == TW_RETRY_JITTER_FULL)
		return draw_between(l, 0, delay_ns);
	if (o->retry.jitter == TW_RETRY_JITTER_EQUAL)
		return draw_between(l, delay_ns / 2, delay_ns);
	return delay_ns;
}

uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	struct tw__job_options *o = job->options;
	if (o->next == TW_JOB_NEXT_DELAY)
		return o->next_delay_ns;
	uint64_t delay_ns = draw_between(l, 0, o->retry.jitter_ns) + limiter_draw(l, o);
	return delay_ns < TW_MAX_DELAY_NS ? delay_ns : TW_MAX_DELAY_NS;
}

bool tw__budget_take(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (tw_likely(!l->budget.most))
		return true;
	bool has = l->budget.left >= 100;
	l->budget.left -= has ? 100 : 0;
	l->counters.over_budget += !has;
	return has;
}

void tw__budget_earn(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	uint64_t next = l->budget.left + l->config.budget_percent;
	l->budget.left = next < l->budget.most ? next : l->budget.most;
}

void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->state = TW_JOB_STATE_RETRYING;
	job->flags &= TW__JOB_IS_ASYNC | TW__JOB_KEEP;
	job->options->until_ns = at_ns;
	job->previous = NULL;
	job->next = l->times.first_retrying;
	if (job->next)
		job->next->previous = job;
	l->times.first_retrying = job;
	l->times.retrying++;
	l->counters.retried++;
	tw__pending_more(l);
	tw__job_keep_time(l, job);
}

void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job,
			struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	*(job->previous ? &job->previous->next : &l->times.first_retrying) = job->next;
	if (job->next)
		job->next->previous = job->previous;
	l->times.retrying--;
	if (deferred)
		tw__pending_less(l, deferred);
}
