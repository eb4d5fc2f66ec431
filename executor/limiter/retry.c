/*
 * The limiter's times: a heap of the jobs that keep one, by instant, and one timer of the service,
 * for the first of them and for the rate's next token.
 *
 * armed_ns says when the driver looks:
 *   an instant   the timer is armed, or its callback waits for the lock
 *   0            the driver is looking; or it looks in its next tick, as the service has no timer
 *   UINT64_MAX   nothing is awaited
 * A look arms the timer when it ends. Until then nobody else does. The timer may come too early: it
 * stays when the first job leaves. It is cancelled when the last one leaves.
 */

#include "executor/limiter/retry.h"
#include "wheel/timer/schedule.h"
#include "wheel/timer/timing.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* -------------------------------------------------------------------- retries */

/*
 * Retries of a limiter: whether a failed attempt is followed by another, and after which delay.
 *
 * The policy has the first say (struct tw_retry: count, times, jitter), then the job's predicate.
 * tell.c calls the predicate, which is user code.
 *
 * Full jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	return o && job->attempts <= o->retry.count && !l->ended && !(job->flags & TW__JOB_CANCEL);
}

/* The shortest delay that may be drawn. A predicate may choose any. */
static uint64_t least_delay(const struct tw__job_options *o)
{
	if (o->retry.allow)
		return 0;
	return o->retry.jitter == TW_RETRY_JITTER_FULL ? 0 : o->delay_ns;
}

bool tw__job_can_wait(const struct tw__job *job, uint64_t now_ns, uint64_t delay_ns)
{
	uint64_t at_ns = now_ns + delay_ns;
	return at_ns <= job->options->retry_deadline_ns && at_ns < job->options->total_until_ns;
}

bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns)
{
	return tw__job_has_retries(l, job) &&
	       tw__job_can_wait(job, now_ns, least_delay(job->options));
}

/* The delay of the retry after this one. */
static uint64_t grown_delay(const struct tw_retry *retry, uint64_t delay_ns)
{
	unsigned __int128 next = (unsigned __int128)delay_ns * retry->factor_x100 / 100;
	return next < retry->cap_ns ? (uint64_t)next : retry->cap_ns;
}

uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	struct tw__job_options *o = job->options;
	uint64_t delay_ns = o->delay_ns;
	o->delay_ns = grown_delay(&o->retry, delay_ns);
	bool draws = delay_ns && o->retry.jitter == TW_RETRY_JITTER_FULL;
	return draws ? tw__random_upto(&l->random, delay_ns) : delay_ns;
}

void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->state = TW_JOB_STATE_RETRYING;
	job->options->has_timed_out = job->flags & TW__JOB_OVERDUE;
	job->flags &= TW__JOB_IS_ASYNC | TW__JOB_KEEP;
	job->options->until_ns = at_ns;
	job->previous = NULL;
	job->next = l->times.first_retrying;
	if (job->next)
		job->next->previous = job;
	l->times.first_retrying = job;
	l->times.retrying++;
	l->counters.retried++;
	l->pending++;
	tw__job_keep_time(l, job);
}

static void leave_retrying(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	*(job->previous ? &job->previous->next : &l->times.first_retrying) = job->next;
	if (job->next)
		job->next->previous = job->previous;
	l->times.retrying--;
}

void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job)
{
	leave_retrying(l, job);
	tw__pending_less(l);
}

/* ------------------------------------------------------------------- timer */

static void on_time(void *arg);

void tw__times_arm(struct tw_limiter *l, uint64_t at_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	struct tw__times *times = &l->times;
	bool is_set = times->armed_ns != UINT64_MAX;
	if (at_ns >= times->armed_ns || tw__beyond_range(l->service, at_ns))
		return;
	times->armed_ns = at_ns;
	/* a timer that can be neither moved nor cancelled has fired, and looks at everything */
	if (is_set && (tw_reset_at(l->service, times->timer, at_ns) == 0 ||
		       tw_cancel(l->service, times->timer) != TW_CANCELLED))
		return;
	if (tw_likely(!tw__base_schedule(l->service, at_ns, on_time, l, &times->timer)))
		return;
	times->armed_ns = 0;
	tw__work_submit_later(&times->retry);
}

void tw__times_disarm(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (!l->times.heap.count && l->rate.awaited_ns == UINT64_MAX &&
	    tw_cancel(l->service, l->times.timer) == TW_CANCELLED)
		l->times.armed_ns = UINT64_MAX;
}

/* Of an attempt that was completed: it has failed, and another may follow. */
static bool will_retry(const struct tw__job *job)
{
	return (job->error || job->flags & TW__JOB_OVERDUE) &&
	       job->attempts <= job->options->retry.count && !(job->flags & TW__JOB_CANCEL);
}

/* The next instant at which something is to be done about the job. */
static uint64_t due_of(const struct tw__job *job)
{
	const struct tw__job_options *o = job->options;
	if (job->state == TW_JOB_STATE_SETTLED)
		return UINT64_MAX;
	if (job->flags & TW__JOB_ENDED)
		return o->total_until_ns;
	if (job->flags & TW__JOB_COMPLETED) /* its function has but to return */
		return will_retry(job) ? o->total_until_ns : UINT64_MAX;
	uint64_t due_ns = o->until_ns < o->total_until_ns ? o->until_ns : o->total_until_ns;
	bool is_retry_in_line = job->state == TW_JOB_STATE_QUEUED && job->attempts > 0;
	return is_retry_in_line && o->retry_deadline_ns < due_ns ? o->retry_deadline_ns + 1
								 : due_ns;
}

void tw__job_forget_time(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (!job->options || !tw__heap_has(&job->options->due))
		return;
	tw__heap_remove(&l->times.heap, &job->options->due);
	tw__times_disarm(l);
}

void tw__job_keep_time(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	struct tw__heap_item *item = &job->options->due;
	uint64_t at_ns = due_of(job);
	if (at_ns > INT64_MAX) { /* none, or no clock gets there */
		tw__job_forget_time(l, job);
		return;
	}
	if (tw__heap_has(item)) {
		tw__heap_rekey(&l->times.heap, item, (int64_t)at_ns);
	} else {
		tw__heap_item_init(item, job->id);
		tw__heap_push_reserved(&l->times.heap, item, (int64_t)at_ns);
	}
	tw__times_arm(l, at_ns);
}

/* -------------------------------------------------------------------- firing */

static void attempt_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
				 struct tw__limiter_deferred *deferred)
{
	struct tw__job_options *o = job->options;
	if (due_of(job) == UINT64_MAX)
		return;
	if (job->flags & TW__JOB_COMPLETED)
		job->flags |= TW__JOB_STOPPED; /* the attempt has ended: `stop` is not called */
	bool wholly = o->total_until_ns <= now_ns;
	if (wholly || (o->until_ns <= now_ns && !tw__job_may_retry(l, job, now_ns))) {
		/* not so if it began after this reading of the clock */
		if (now_ns > job->since_ns)
			/* for the result; the time that follows does not count */
			job->run_ns += now_ns - job->since_ns;
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT, deferred);
	} else if (o->until_ns > now_ns) {
		return;
	}
	job->flags |= TW__JOB_OVERDUE;
	o->until_ns = UINT64_MAX;
	tw__job_stop(l, job, deferred);
}

bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns)
{
	return tw_unlikely(job->options != NULL) && due_of(job) <= now_ns;
}

void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
		      struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (tw_likely(!job->options) || due_of(job) > now_ns)
		return;
	job->flags |= TW__JOB_STOPPED; /* no `stop` is called for what has ended */
	attempt_is_over_time(l, job, now_ns, deferred);
}

void tw__stay_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
			   struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	const struct tw__job_options *o = job->options;
	bool has_timed_out =
	    o->until_ns <= now_ns || o->total_until_ns <= now_ns || o->has_timed_out;
	tw__job_dequeue(l, job, now_ns);
	if (has_timed_out)
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT, deferred);
	else /* the deadline of retries has passed */
		tw__settle(l, job, TW_JOB_STATUS_FAILED, job->error, deferred);
}

/* The job is between two attempts: `stop` or retry.allow has not returned. */
static void between_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
				 struct tw__limiter_deferred *deferred)
{
	if (due_of(job) > now_ns)
		return;
	tw__attempt_go_on(l, job);
	if (job->options->asking) /* also if it was cancelled: the user's code may run on */
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT, deferred);
	else
		tw__attempt_decide(l, job, now_ns, deferred);
}

static void wait_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
			      struct tw__limiter_deferred *deferred)
{
	if (due_of(job) > now_ns)
		return;
	if (job->state == TW_JOB_STATE_QUEUED) {
		tw__stay_is_over_time(l, job, now_ns, deferred);
	} else if (job->options->total_until_ns <= now_ns) {
		tw__retrying_leave(l, job);
		tw__settle(l, job, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT, deferred);
	} else {
		leave_retrying(l, job);
		tw__job_enqueue(l, job, now_ns);
	}
}

/* NULL: none is due. */
static struct tw__job *first_due(const struct tw_limiter *l, uint64_t now_ns)
{
	const struct tw__heap *heap = &l->times.heap;
	if (!heap->count || (uint64_t)tw__heap_first_key(heap) > now_ns)
		return NULL;
	return TW__OWNER(struct tw__job_options, due, tw__heap_peek(heap))->job;
}

/*
 * Acts on the job's time that has passed, and enters its next time into the heap. The lock is held,
 * and released meanwhile.
 */
static void look_at(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	struct tw__limiter_deferred deferred = {0};
	job->holds++; /* its options stay */
	if (job->flags & TW__JOB_ENDED)
		between_is_over_time(l, job, now_ns, &deferred);
	else if (job->state == TW_JOB_STATE_RUNNING)
		attempt_is_over_time(l, job, now_ns, &deferred);
	else
		wait_is_over_time(l, job, now_ns, &deferred);
	if (job->state != TW_JOB_STATE_SETTLED)
		tw__job_keep_time(l, job);
	struct tw__work *later = tw__tell_later(l, job, &deferred);
	job->holds--;
	tw__job_look_for_end(l, job);
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
	if (later)
		tw__work_submit(later);
	tw__limiter_relock(l);
}

/* On the driver. A job that is due again comes in a later look. */
static void on_time(void *arg)
{
	struct tw_limiter *l = arg;
	struct tw__limiter_deferred deferred;
	struct tw__job *job;
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, &deferred);
	l->times.armed_ns = 0;
	for (uint32_t n = l->times.heap.count; n && (job = first_due(l, now_ns)); n--) {
		look_at(l, job, now_ns);
		now_ns = tw_service_now(l->service);
	}
	l->times.armed_ns = UINT64_MAX;
	if (l->rate.awaited_ns <= now_ns)
		l->rate.awaited_ns = UINT64_MAX;
	tw__times_arm(l, l->rate.awaited_ns);
	if (l->times.heap.count)
		tw__times_arm(l, (uint64_t)tw__heap_first_key(&l->times.heap));
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
}

static void on_retry(struct tw__work *work)
{
	on_time(TW__OWNER(struct tw_limiter, times.retry, work));
}

void tw__times_init(struct tw_limiter *l)
{
	l->times.armed_ns = UINT64_MAX;
	l->rate.awaited_ns = UINT64_MAX;
	tw__work_init(&l->times.retry, l->service, &tw__inline_executor, on_retry);
}
