/* Jobs of a limiter from outside, once they are submitted: complete, cancel, wait, ask. */
#include "executor/limiter/lock.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* The job of a handle, or NULL. The lock is held: it stays what it is. */
static struct tw__job *find(struct tw_limiter *l, tw_job handle)
{
	struct tw__job *job =
	    (struct tw__job *)(void *)tw__node_find(&l->nodes, &l->object, handle.id);
	return job && job->id && job->state != TW__JOB_GONE ? job : NULL;
}

/* ----------------------------------------------------------------- complete */

/* The lock is held. */
static int complete(struct tw_limiter *l, tw_job handle, int error, void *value)
{
	struct tw__job *job = find(l, handle);
	if (job && !(job->flags & TW__JOB_ASYNC))
		return -EINVAL; /* tw_job_complete tells */
	if (!job || !(job->flags & TW__JOB_INSIDE) || job->flags & TW__JOB_COMPLETED ||
	    (handle.attempt && handle.attempt != job->attempts))
		return -EALREADY;
	uint64_t now_ns = tw_service_now(l->service);
	tw__attempt_look(l, job, now_ns);
	bool is_settled = job->state == TW__JOB_SETTLED;
	bool late = is_settled || job->flags & TW__JOB_OVERDUE;
	if (!is_settled) {
		job->error = error;
		job->value = value;
	}
	if (job->flags & TW__JOB_IN_FN)
		tw__attempt_completed(l, job);
	else
		tw__attempt_end(l, job, error, value, now_ns);
	return late ? TW_JOB_LATE : 0;
}

int tw_job_complete(tw_limiter *l, tw_job job, int error, void *value)
{
	struct tw__tells tells = TW__NOTHING_TO_TELL(tells);
	int r = TW__OBJECT_CHECK(l, "limiter");
	if (!r && (error > 0 || error < -4095))
		r = tw__bad(-EINVAL, __func__, "error");
	if (r)
		return r;
	tw__limiter_lock(l, &tells);
	r = complete(l, job, error, value);
	l->counters.refused_completions += r < 0;
	tw__limiter_unlock(l, 0);
	return r == -EINVAL ? tw__invalid("the job is synchronous: set TW_LIMITER_TASK_ASYNC") : r;
}

/* ------------------------------------------------------------------- cancel */

int tw_job_cancel(tw_limiter *l, tw_job handle)
{
	struct tw__tells tells = TW__NOTHING_TO_TELL(tells);
	int r = TW__OBJECT_CHECK(l, "limiter");
	if (r)
		return r;
	tw__limiter_lock(l, &tells);
	struct tw__job *job = find(l, handle);
	if (!job || job->state == TW__JOB_SETTLED) {
		r = TW_GONE;
	} else if (job->state == TW__JOB_QUEUED || job->state == TW__JOB_DELAYED) {
		tw__job_leave_line(l, job, tw_service_now(l->service));
		tw__settle(l, job, TW_JOB_STATUS_CANCELLED, -ECANCELED);
		r = TW_CANCELLED;
	} else {
		job->flags |= TW__JOB_CANCELLED;
		if (job->flags & TW__JOB_INSIDE)
			tw__job_stop(l, job);
		r = TW_RUNNING;
	}
	tw__limiter_unlock(l, 0);
	return r;
}

bool tw_job_is_cancelled(tw_limiter *l, tw_job handle)
{
	if (TW__OBJECT_CHECK(l, "limiter"))
		return false;
	tw__limiter_lock(l, NULL);
	struct tw__job *job = find(l, handle);
	bool is =
	    job &&
	    (job->flags & TW__JOB_CANCELLED ||
	     (job->flags & TW__JOB_INSIDE &&
	      (job->flags & TW__JOB_OVERDUE || tw__job_is_due(job, tw_service_now(l->service)))));
	tw__object_unlock(&l->object);
	return is;
}

/* ----------------------------------------------------------------- priority */

/* It goes behind the others of the priority. The lock is held. */
static int set_priority(struct tw_limiter *l, struct tw__job *job, int16_t priority)
{
	if (!job || job->state == TW__JOB_SETTLED)
		return TW_GONE;
	if (job->priority == priority)
		return 0;
	uint64_t now_ns = tw_service_now(l->service);
	bool is_queued = job->state == TW__JOB_QUEUED, is_delayed = job->state == TW__JOB_DELAYED;
	if (is_queued || is_delayed)
		tw__job_leave_line(l, job, now_ns);
	job->priority = priority;
	if (is_queued) {
		job->since_ns = now_ns;
		tw__job_line_add(&l->line, job);
	} else if (is_delayed) {
		tw__job_line_add(&l->delayed, job);
	}
	return 0;
}

int tw_job_set_priority(tw_limiter *l, tw_job handle, int32_t priority)
{
	int r = TW__OBJECT_CHECK(l, "limiter");
	if (!r && (priority < INT16_MIN || priority > INT16_MAX))
		r = tw__bad(-EINVAL, __func__, "priority");
	if (r)
		return r;
	tw__limiter_lock(l, NULL);
	r = set_priority(l, find(l, handle), (int16_t)priority);
	tw__limiter_leave(l, 0);
	return r;
}

/* --------------------------------------------------------------- wait, and ask */

/*
 * Told of, and not kept, or no longer: there is no result to ask for, even if the limiter is not
 * yet done with the job.
 */
static bool has_no_result(const struct tw__job *job)
{
	return job->flags & TW__JOB_TOLD && !(job->flags & TW__JOB_KEEP);
}

/* The job stays while this thread waits. The lock is given up meanwhile. */
static int await_answer(struct tw_limiter *l, struct tw__job *job, uint64_t deadline_ns)
{
	bool in_time = true;
	job->waiters++;
	while (!tw__job_answers(job) && in_time) {
		tw__object_unlock(&l->object);
		in_time = tw__futex_wait(&job->bell, 0, deadline_ns);
		tw__limiter_lock(l, NULL);
	}
	job->waiters--;
	return tw__job_answers(job) ? 0 : -ETIMEDOUT;
}

int tw_job_wait(tw_limiter *l, tw_job handle, uint64_t timeout_ns, struct tw_job_result *out)
{
	int r = TW__OBJECT_CHECK(l, "limiter");
	if (r)
		return r;
	uint64_t deadline_ns = timeout_ns ? tw__deadline_in(timeout_ns) : 0;
	tw__limiter_lock(l, NULL);
	struct tw__job *job = find(l, handle);
	bool waits = job && !tw__job_answers(job);
	tw__object_use(&l->object);
	if (!job || has_no_result(job))
		r = TW_GONE;
	else if (waits &&
		 (tw__inside_object(&l->object, job) || (timeout_ns && tw__job_is_mine(job))))
		r = -EDEADLK;
	else if (waits)
		r = timeout_ns ? await_answer(l, job, deadline_ns) : -ETIMEDOUT;
	if (r == 0) {
		if (out)
			tw__result_of(job, out);
		job->flags &= (uint16_t)~TW__JOB_KEEP;
	}
	if (job)
		tw__job_look_for_end(l, job);
	tw__limiter_leave(l, 1);
	return r == -EDEADLK ? tw__waits_inside(__func__) : r;
}

int tw_job_state(tw_limiter *l, tw_job handle)
{
	static const int states[] = {
	    [TW__JOB_GONE] = TW_JOB_STATE_GONE,        [TW__JOB_COMING] = TW_JOB_STATE_QUEUED,
	    [TW__JOB_QUEUED] = TW_JOB_STATE_QUEUED,    [TW__JOB_RUNNING] = TW_JOB_STATE_RUNNING,
	    [TW__JOB_ENDED] = TW_JOB_STATE_RUNNING,    [TW__JOB_ASKING] = TW_JOB_STATE_RETRYING,
	    [TW__JOB_DELAYED] = TW_JOB_STATE_RETRYING, [TW__JOB_SETTLED] = TW_JOB_STATE_SETTLED};
	int r = TW__OBJECT_CHECK(l, "limiter");
	if (r)
		return r;
	tw__limiter_lock(l, NULL);
	struct tw__job *job = find(l, handle);
	bool is_over = !job || (has_no_result(job) && !(job->flags & TW__JOB_INSIDE));
	r = is_over ? TW_JOB_STATE_GONE : states[job->state];
	tw__object_unlock(&l->object);
	return r;
}
