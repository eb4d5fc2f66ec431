/* Jobs of a limiter from outside, once they are submitted: complete, cancel, wait, ask. */

#include "executor/limiter/inbox.h"
#include "executor/limiter/job_queue.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* --------------------------------------------------------------------- find */

/* The job of a handle, or NULL. The lock is held: it stays what it is. */
static struct tw__job *limiter_find(struct tw_limiter *l, tw_job handle)
{
	struct tw__node *node = tw__node_find(&l->nodes, handle.id);
	struct tw__job *job = (struct tw__job *)(void *)node;
	return job && job->id && job->state != TW_JOB_STATE_GONE ? job : NULL;
}

static bool names_attempt(const struct tw__job *job, tw_job handle)
{
	return handle.attempt == 0 || handle.attempt == job->attempts;
}

/* ----------------------------------------------------------------- complete */

/* The lock is held. */
static int limiter_complete(struct tw_limiter *l, tw_job handle, int error, void *value,
			    struct tw__limiter_deferred *deferred)
{
	struct tw__job *job = limiter_find(l, handle);
	if (job && !(job->flags & TW__JOB_IS_ASYNC))
		return -EINVAL; /* tw_job_complete tells */
	if (!job || !(job->flags & TW__JOB_INSIDE) || job->flags & TW__JOB_COMPLETED ||
	    !names_attempt(job, handle))
		return -EALREADY;
	uint64_t now_ns = tw_service_now(l->service);
	tw__attempt_look(l, job, now_ns, deferred);
	bool is_settled = job->state == TW_JOB_STATE_SETTLED;
	bool late = is_settled || job->flags & TW__JOB_OVERDUE;
	job->flags |= TW__JOB_COMPLETED;
	if (!is_settled) {
		job->error = error;
		job->value = value;
	}
	if (!(job->flags & TW__JOB_IN_FN)) {
		tw__attempt_end(l, job, error, value, now_ns, deferred);
		tw__dispatch(l, now_ns, deferred);
	}
	return late ? TW_JOB_LATE : 0;
}

int tw_job_complete(tw_limiter *l, tw_job job, int error, void *value)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (!r && (error > 0 || error < -4095))
		r = tw__bad(-EINVAL, __func__, "error");
	if (r)
		return r;
	tw__limiter_lock(l, &deferred);
	r = limiter_complete(l, job, error, value, &deferred);
	l->counters.refused_completions += r < 0;
	tw__limiter_unlock(l, &deferred);
	return r == -EINVAL ? tw__invalid("the job is synchronous: set TW_LIMITER_TASK_ASYNC") : r;
}

/* ------------------------------------------------------------------- cancel */

/* The lock is held. */
static int limiter_cancel(struct tw_limiter *l, struct tw__job *job,
			  struct tw__limiter_deferred *deferred)
{
	switch (job->state) {
	case TW_JOB_STATE_QUEUED: {
		uint64_t now_ns = tw_service_now(l->service);
		tw__job_dequeue(l, job, now_ns);
		tw__dispatch(l, now_ns, deferred); /* those behind it may fit */
		break;
	}
	case TW_JOB_STATE_RETRYING:
		tw__retrying_leave(l, job);
		break;
	case TW_JOB_STATE_RUNNING:
		job->flags |= TW__JOB_CANCEL;
		if (job->flags & TW__JOB_INSIDE)
			tw__job_stop(l, job, deferred);
		return TW_RUNNING;
	default:
		return TW_GONE;
	}
	tw__settle(l, job, TW_JOB_STATUS_CANCELLED, -ECANCELED, deferred);
	return TW_CANCELLED;
}

int tw_job_cancel(tw_limiter *l, tw_job handle)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	tw__limiter_lock(l, &deferred);
	struct tw__job *job = limiter_find(l, handle);
	int outcome = job ? limiter_cancel(l, job, &deferred) : TW_GONE;
	tw__limiter_unlock(l, &deferred);
	return outcome;
}

/* ----------------------------------------------------------------- priority */

/* The job is queued. It goes behind the others of the priority. */
static void move_in_queue(struct tw_limiter *l, struct tw__job *job, int16_t priority,
			  struct tw__limiter_deferred *deferred)
{
	uint64_t now_ns = tw_service_now(l->service);
	tw__job_queue_remove(&l->queue, job);
	if (now_ns > job->since_ns)
		job->queued_ns += now_ns - job->since_ns;
	job->since_ns = now_ns;
	job->priority = priority;
	tw__job_queue_add(&l->queue, job);
	tw__dispatch(l, now_ns, deferred);
}

/* The lock is held. */
static int set_priority(struct tw_limiter *l, struct tw__job *job, int16_t priority,
			struct tw__limiter_deferred *deferred)
{
	if (!job || job->state == TW_JOB_STATE_SETTLED)
		return TW_GONE;
	if (job->priority == priority)
		return 0;
	if (tw__job_queue_reserve(&l->queue, priority))
		return -ENOMEM;
	if (job->state == TW_JOB_STATE_QUEUED)
		move_in_queue(l, job, priority, deferred);
	else
		job->priority = priority;
	return 0;
}

int tw_job_set_priority(tw_limiter *l, tw_job handle, int32_t priority)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (!r && (priority < INT16_MIN || priority > INT16_MAX))
		r = tw__bad(-EINVAL, __func__, "priority");
	if (r)
		return r;
	tw__limiter_lock(l, &deferred);
	r = set_priority(l, limiter_find(l, handle), (int16_t)priority, &deferred);
	tw__limiter_unlock(l, &deferred);
	return r;
}

bool tw_job_is_cancelled(tw_limiter *l, tw_job handle)
{
	if (TW__CHECK(l, "limiter"))
		return false;
	tw__limiter_relock(l);
	struct tw__job *job = limiter_find(l, handle);
	bool is = job && (job->flags & (TW__JOB_CANCEL | TW__JOB_OVERDUE) ||
			  (job->state == TW_JOB_STATE_RUNNING && job->options &&
			   tw__job_is_due(job, tw_service_now(l->service))));
	pthread_mutex_unlock(&l->lock);
	return is;
}

/* --------------------------------------------------------------- wait, and ask */

/*
 * Told of, and not kept, or no longer: there is no result to ask for, even if the limiter is not
 * yet done with the job. The lock is held.
 */
static bool has_no_result(const struct tw__job *job)
{
	return job->flags & TW__JOB_TOLD && !(job->flags & TW__JOB_KEEP);
}

/* The same, and its last attempt is over. */
static bool is_over(const struct tw__job *job)
{
	return has_no_result(job) && !(job->flags & TW__JOB_INSIDE);
}

/* The job cannot go while `waiters` counts this thread. The lock is given up meanwhile. */
static int await_answer(struct tw_limiter *l, struct tw__job *job, uint64_t deadline_ns)
{
	bool in_time = true;
	while (!tw__job_answers(job) && in_time) {
		pthread_mutex_unlock(&l->lock);
		in_time = tw__futex_wait(&job->bell, 0, deadline_ns);
		tw__limiter_relock(l);
	}
	return tw__job_answers(job) ? 0 : -ETIMEDOUT;
}

int tw_job_wait(tw_limiter *l, tw_job handle, uint64_t timeout_ns, struct tw_job_result *out)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	tw__limiter_lock(l, &deferred);
	struct tw__job *job = limiter_find(l, handle);
	r = !job || has_no_result(job) ? TW_GONE : 0;
	bool waits = !r && !tw__job_answers(job);
	if (waits &&
	    (tw__limiter_is_inside(l, job) || (timeout_ns && tw__job_waits_for_caller(job))))
		r = -EDEADLK;
	if (!r) {
		job->waiters++;
		l->out.calls++; /* it locks again, perhaps after all has ended */
		r = timeout_ns || !waits ? await_answer(l, job, deadline_ns) : -ETIMEDOUT;
		job->waiters--;
		l->out.calls--;
		if (!r && out)
			tw__result_of(job, out);
		if (!r)
			job->flags &= (uint16_t)~TW__JOB_KEEP;
		tw__job_look_for_end(l, job);
	}
	tw__limiter_unlock(l, &deferred);
	return r == -EDEADLK ? tw__waits_inside(__func__) : r;
}

int tw_job_state(tw_limiter *l, tw_job handle)
{
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	tw__limiter_relock(l);
	struct tw__job *job = limiter_find(l, handle);
	int state = !job || is_over(job) ? TW_JOB_STATE_GONE : job->state;
	if (state == TW_JOB_STATE_RUNNING && job->options && job->options->asking)
		state = TW_JOB_STATE_RETRYING;
	pthread_mutex_unlock(&l->lock);
	return state;
}
