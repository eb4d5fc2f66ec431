/* Jobs of a limiter from outside, once they are submitted: complete, cancel, wait, ask. */
#include "executor/limiter/line.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* The job of a handle, or NULL. The lock is held: it stays what it is. */
static struct tw__job *find(struct tw_limiter *l, tw_job handle)
{
	struct tw__job *job =
	    (struct tw__job *)(void *)tw__node_find(&l->nodes, &l->object, handle.id);
	return job && job->result.id && job->state != TW__JOB_GONE ? job : NULL;
}

/* ----------------------------------------------------------------- complete */

/* The lock is held. */
static int complete(struct tw_limiter *l, tw_job handle, int error, void *value)
{
	struct tw__job *job = find(l, handle);
	if (job && !(job->flags & TW__JOB_ASYNC))
		return -EINVAL; /* tw_job_complete tells */
	if (!job || !(job->flags & TW__JOB_INSIDE) || job->flags & TW__JOB_COMPLETED ||
	    (handle.attempt && handle.attempt != job->result.attempts))
		return -EALREADY;
	job->flags |= TW__JOB_STOPPED; /* no `stop` is called for what has ended */
	tw__job_look(l, job);
	bool is_settled = job->state == TW__JOB_SETTLED;
	bool late = is_settled || job->flags & TW__JOB_OVERDUE;
	if (!is_settled) {
		job->result.error = error;
		job->result.value = value;
	}
	if (!(job->flags & TW__JOB_IN_FN)) {
		tw__attempt_end(l, job, error, value);
		return late ? TW_JOB_LATE : 0;
	}
	job->flags |= TW__JOB_COMPLETED; /* its function has but to return */
	if (tw__job_is_own(job) && !is_settled) {
		job->options->until_ns = UINT64_MAX;
		if (!(error || late) || !tw__job_may_retry(l, job, 0))
			job->options->total_until_ns = UINT64_MAX;
		tw__job_keep_time(job);
	}
	return late ? TW_JOB_LATE : 0;
}

int tw_job_complete(tw_limiter *l, tw_job job, int error, void *value)
{
	struct tw__tells tells = {0};
	int r = error > 0 || error < -4095 ? tw__bad(-EINVAL, __func__, "error")
					   : tw__limiter_enter(__func__, l, &tells);
	if (r)
		return r;
	r = complete(l, job, error, value);
	l->stats.refused_completions += r < 0;
	tw__limiter_unlock(l, 0);
	return r == -EINVAL ? tw__invalid("the job is synchronous: set TW_LIMITER_TASK_ASYNC") : r;
}

/* ------------------------------------------------------------------- cancel */

int tw_job_cancel(tw_limiter *l, tw_job handle)
{
	struct tw__tells tells = {0};
	int r = tw__limiter_enter(__func__, l, &tells);
	if (r)
		return r;
	struct tw__job *job = find(l, handle);
	if (!job || job->state == TW__JOB_SETTLED) {
		r = TW_GONE;
	} else if (tw__line_of(l, job)) {
		tw__job_leave_line(l, job);
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
	if (tw__limiter_enter(__func__, l, NULL))
		return false;
	struct tw__job *job = find(l, handle);
	bool is = job && (job->flags & TW__JOB_CANCELLED ||
			  (job->flags & TW__JOB_INSIDE &&
			   (job->flags & TW__JOB_OVERDUE || tw__job_is_due(l, job))));
	tw__object_unlock(&l->object);
	return is;
}

/* ----------------------------------------------------------------- priority */

int tw_job_set_priority(tw_limiter *l, tw_job handle, int32_t priority)
{
	int r = priority < INT16_MIN || priority > INT16_MAX
		    ? tw__bad(-EINVAL, __func__, "priority")
		    : tw__limiter_enter(__func__, l, NULL);
	if (r)
		return r;
	struct tw__job *job = find(l, handle);
	struct tw__job_line *line = job ? tw__line_of(l, job) : NULL;
	if (!job || job->state == TW__JOB_SETTLED)
		r = TW_GONE;
	else if (job->priority == priority)
		line = NULL;
	if (line)
		tw__job_line_remove(line, job);
	if (!r)
		job->priority = (int16_t)priority;
	if (line) /* behind the others of the priority */
		tw__job_line_add(line, job);
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

int tw_job_wait(tw_limiter *l, tw_job handle, uint64_t timeout_ns, struct tw_job_result *out)
{
	uint64_t deadline_ns = timeout_ns ? tw__deadline_in(timeout_ns) : 0;
	int r = tw__limiter_enter(__func__, l, NULL);
	if (r)
		return r;
	struct tw__job *job = find(l, handle);
	if (!job || has_no_result(job)) {
		tw__object_unlock(&l->object);
		return TW_GONE;
	}
	bool in_time = timeout_ns != 0, waits = !tw__job_answers(job);
	if (waits && (tw__inside_object(&l->object, job) || (in_time && tw__job_is_mine(job)))) {
		tw__object_unlock(&l->object);
		return tw__waits_inside(__func__);
	}
	tw__object_use(&l->object);
	job->waiters++; /* it stays */
	while (!tw__job_answers(job) && in_time) {
		tw__object_unlock(&l->object);
		in_time = tw__futex_wait(&job->bell, 0, deadline_ns);
		tw__limiter_lock(l, NULL);
	}
	job->waiters--;
	if (!tw__job_answers(job)) {
		r = -ETIMEDOUT;
	} else {
		if (out)
			*out = job->result;
		job->flags &= (uint16_t)~TW__JOB_KEEP;
	}
	tw__job_go_on(l, job);
	tw__limiter_leave(l, 1);
	return r;
}

int tw_job_state(tw_limiter *l, tw_job handle)
{
	static const int states[] = {
	    [TW__JOB_GONE] = TW_JOB_STATE_GONE,       [TW__JOB_COMING] = TW_JOB_STATE_QUEUED,
	    [TW__JOB_QUEUED] = TW_JOB_STATE_QUEUED,   [TW__JOB_RUNNING] = TW_JOB_STATE_RUNNING,
	    [TW__JOB_ASKING] = TW_JOB_STATE_RETRYING, [TW__JOB_DELAYED] = TW_JOB_STATE_RETRYING,
	    [TW__JOB_SETTLED] = TW_JOB_STATE_SETTLED};
	int r = tw__limiter_enter(__func__, l, NULL);
	if (r)
		return r;
	struct tw__job *job = find(l, handle);
	bool is_over = !job || (has_no_result(job) && !(job->flags & TW__JOB_INSIDE));
	r = is_over ? TW_JOB_STATE_GONE : states[job->state];
	tw__object_unlock(&l->object);
	return r;
}
