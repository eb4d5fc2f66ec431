/* The public functions of jobs. Calls lock.c, settle.c and tell.c. */
#include <string.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* -------------------------------------------------------------------- submit */

static int task_check(struct tw_limiter_task *task)
{
	const char *bad = NULL, *beyond = NULL;
	struct tw_retry *retry = &task->retry;
	const uint32_t flags =
	    TW_LIMITER_TASK_ASYNC | TW_LIMITER_TASK_KEEP | TW_LIMITER_TASK_WAIT_UNTIL;
	if (!task->permits)
		task->permits = 1;
	if (!retry->factor_x100)
		retry->factor_x100 = 100;
	if (!retry->cap_ns)
		retry->cap_ns = TW_MAX_DELAY_NS;
	tw__need(&bad, task->fn, "fn");
	tw__need(&bad, !(task->flags & ~flags), "flags");
	tw__need(&bad, task->priority >= INT16_MIN && task->priority <= INT16_MAX, "priority");
	tw__need(&bad, !task->reserved, "reserved");
	tw__need(&bad, retry->count <= 1u << 30, "retry.count");
	tw__need(&bad, retry->factor_x100 >= 100 && retry->factor_x100 <= 100000,
		 "retry.factor_x100");
	tw__need(&bad, retry->jitter <= TW_RETRY_JITTER_FULL, "retry.jitter");
	tw__need(&bad, !retry->reserved, "retry.reserved");
	tw__need(&beyond, task->queue_timeout_ns <= TW_MAX_DELAY_NS, "queue_timeout_ns");
	tw__need(&beyond, task->attempt_timeout_ns <= TW_MAX_DELAY_NS, "attempt_timeout_ns");
	tw__need(&beyond, task->timeout_ns <= TW_MAX_DELAY_NS, "timeout_ns");
	tw__need(&beyond, retry->delay_ns <= TW_MAX_DELAY_NS, "retry.delay_ns");
	tw__need(&beyond, retry->cap_ns <= TW_MAX_DELAY_NS, "retry.cap_ns");
	tw__need(&beyond, retry->deadline_ns <= TW_MAX_DELAY_NS, "retry.deadline_ns");
	return tw__bad_member(bad ? -EINVAL : -ERANGE, "tw_limiter_submit_task", "tw_limiter_task",
			      bad ? bad : beyond);
}

struct tw__job_options tw__plain_options = {
    .total_until_ns = UINT64_MAX, .retry_until_ns = UINT64_MAX, .task.permits = 1};

static bool is_plain(const struct tw_limiter_task *task)
{
	return !task->queue_timeout_ns && !task->attempt_timeout_ns && !task->timeout_ns &&
	       !task->retry.count && task->permits == 1 && !task->stop && !task->release;
}

/* Makes a job that nobody else knows yet. */
static int make(struct tw_limiter *l, const struct tw_limiter_task *task, uint64_t now_ns,
		struct tw__job **out)
{
	struct tw__node *node;
	int r = tw__node_get(&l->nodes, &l->object, &node);
	if (r)
		return r;
	struct tw__job *job = *out = (struct tw__job *)(void *)node;
	/* the head belongs to the table of nodes */
	memset((char *)job + sizeof job->node, 0, sizeof *job - sizeof job->node);
	job->fn = task->fn;
	job->arg = task->arg;
	job->done = task->done;
	job->context = tw__context_capture();
	job->name = task->name;
	job->since_ns = now_ns;
	job->flags = (uint16_t)(task->flags & (TW__JOB_ASYNC | TW__JOB_KEEP));
	job->priority = (int16_t)task->priority;
	job->options = &tw__plain_options;
	if (tw_likely(is_plain(task)))
		return 0;
	struct tw__job_options *o = job->options = tw__alloc(sizeof *o);
	if (!o) {
		tw__node_put(&l->nodes, node);
		return -ENOMEM;
	}
	uint64_t retry_ns = task->retry.deadline_ns;
	*o = (struct tw__job_options){
	    .job = job,
	    .due = {.limiter = l, .ring = tw__job_time},
	    .total_until_ns = tw__instant_after(now_ns, task->timeout_ns),
	    .retry_until_ns = tw__instant_after(now_ns, retry_ns ? retry_ns + 1 : 0),
	    .delay_ns = tw__lesser(task->retry.delay_ns, task->retry.cap_ns),
	    .task = *task};
	return 0;
}

/* Tells whether the limiter takes this job, apart from memory. */
static int admit(struct tw_limiter *l, const struct tw__job *job)
{
	uint32_t permits = job->options->task.permits;
	if (tw_load_relaxed(&l->object.closed))
		return -ESHUTDOWN;
	if (permits > l->permits.limit)
		return -EINVAL; /* submit tells the misuse hook, after the unlock */
	if (l->paused && l->config.flags & TW_LIMITER_PAUSED_REFUSES)
		return -EBUSY;
	bool fits = l->permits.out + l->line.count + l->line.extra + permits <= l->permits.limit;
	return tw__limiter_has_room(l) && (l->config.max_pending || fits) ? 0 : -EAGAIN;
}

/* Submits a job that needs the lock, which is held, and given up while the call waits for room. */
static int enter(struct tw_limiter *l, struct tw__job *job, const struct tw_limiter_task *task,
		 uint64_t now_ns, tw_job *out)
{
	int r;
	bool in_time = task->wait_ns > 0, is_instant = task->flags & TW_LIMITER_TASK_WAIT_UNTIL;
	uint64_t deadline_ns =
	    !in_time || is_instant ? task->wait_ns : tw__deadline_in(task->wait_ns);
	while ((r = admit(l, job)) == -EAGAIN && in_time) {
		if (job->options->total_until_ns <= now_ns) {
			r = 0; /* it times out in line */
			break;
		}
		tw__job_keep_time(job); /* its timer rings the limiter */
		l->room_sleepers++;
		l->object.users++;
		in_time = tw__object_await(&l->object, deadline_ns);
		l->object.users--; /* the limiter's creator is still one */
		l->room_sleepers--;
		tw__inbox_look(l, UINT_MAX);
		now_ns = tw_service_now(l->service);
	}
	if (r == -EAGAIN && task->wait_ns)
		r = -ETIMEDOUT;
	if (!r && l->config.flags & TW_LIMITER_COLLECT)
		r = tw__results_reserve(l);
	if (r) {
		l->counters.rejected += r == -EAGAIN || r == -EBUSY || r == -ETIMEDOUT;
		job->state = TW__JOB_FINISHED;
		job->flags = 0;
		tw__job_keep_time(job);
		tw__job_look_for_end(l, job); /* its timer may be on the way */
		return r;
	}
	if (out)
		*out = tw__job_handle(job);
	tw__job_accept(l, job, now_ns);
	tw__job_keep_time(job);
	return 0;
}

static int submit(struct tw_limiter *l, const struct tw_limiter_task *task, tw_job *out)
{
	struct tw__job *job;
	uint64_t now_ns = tw_service_now(l->service);
	int r = make(l, task, now_ns, &job);
	if (r)
		return r;
	bool needs_lock = !l->has_inbox || !tw__job_is_plain(job) || job->priority != 0;
	if (!needs_lock && !tw_load_relaxed(&l->object.closed)) {
		if (out)
			*out = tw__job_handle(job);
		enum tw__posted posted =
		    tw__object_post(&l->object, tw__in_line_link(&job->place), false);
		if (posted == TW__RAISED)
			tw__work_submit(&l->run);
		if (posted != TW__REFUSED)
			return 0;
	}
	tw__limiter_lock(l);
	r = enter(l, job, task, now_ns, out);
	tw__limiter_leave(l, 0); /* the limiter may be gone */
	return r == -EINVAL
		   ? tw__bad_member(r, "tw_limiter_submit_task", "tw_limiter_task", "permits")
		   : r;
}

int tw_limiter_submit_task(tw_limiter *l, const struct tw_limiter_task *task, tw_job *out)
{
	struct tw_limiter_task known;
	int r = task ? TW__OBJECT_CHECK(l, "limiter") : tw__invalid("task is NULL");
	if (!r)
		r = TW__STRUCT_READ(tw_limiter_task, &known, done, task);
	if (!r)
		r = task_check(&known);
	return r ? r : submit(l, &known, out);
}

int tw_limiter_submit(tw_limiter *l, tw_job_fn *fn, void *arg, tw_job *out)
{
	struct tw_limiter_task task = {.fn = fn, .arg = arg, .permits = 1};
	int r = fn ? TW__OBJECT_CHECK(l, "limiter") : tw__invalid("fn is NULL");
	return r ? r : submit(l, &task, out);
}

/* --------------------------------------------------- complete, cancel, priority */

/* As tw__limiter_enter, for the calls that follow. *out is the handle's job, or NULL. */
static int job_enter(const char *call, struct tw_limiter *l, tw_job handle, struct tw__job **out)
{
	int r = tw__limiter_enter(call, l);
	if (r)
		return r;
	struct tw__job *job =
	    (struct tw__job *)(void *)tw__node_find(&l->nodes, &l->object, handle.id);
	*out = job && job->id ? job : NULL;
	return 0;
}

static int complete(struct tw_limiter *l, struct tw__job *job, uint64_t attempt, int error,
		    void *value)
{
	if (job && !(job->flags & TW__JOB_ASYNC))
		return -EINVAL; /* tw_job_complete tells the misuse hook */
	if (!job || !job->took || job->flags & TW__JOB_COMPLETED ||
	    (attempt && attempt != job->attempts))
		return -EALREADY;
	uint64_t now_ns = tw_service_now(l->service);
	bool in_time = tw__attempt_answer(l, job, error, value, now_ns);
	if (job->flags & TW__JOB_IN_FN)
		job->flags |= TW__JOB_COMPLETED;
	else
		tw__attempt_end(l, job, now_ns);
	tw__job_go_on(l, job, TW__CALLER);
	return in_time ? 0 : TW_JOB_LATE;
}

int tw_job_complete(tw_limiter *l, tw_job handle, int error, void *value)
{
	struct tw__job *job;
	if (error > 0 || error < -4095)
		return tw__bad(-EINVAL, __func__, "error");
	int r = job_enter(__func__, l, handle, &job);
	if (r)
		return r;
	r = complete(l, job, handle.attempt, error, value);
	l->counters.refused_completions += r < 0;
	tw__limiter_leave(l, 1);
	return r == -EINVAL ? tw__invalid("the job is synchronous: set TW_LIMITER_TASK_ASYNC") : r;
}

int tw_job_cancel(tw_limiter *l, tw_job handle)
{
	struct tw__job *job;
	int r = job_enter(__func__, l, handle, &job);
	if (r)
		return r;
	if (!job || job->state >= TW__JOB_SETTLED) {
		r = TW_GONE;
	} else if (job->state == TW__JOB_QUEUED || job->state == TW__JOB_DELAYED) {
		tw__job_leave_line(l, job, tw_service_now(l->service));
		tw__settle(l, job, TW_JOB_STATUS_CANCELLED, -ECANCELED);
		r = TW_CANCELLED;
	} else {
		job->flags |= TW__JOB_CANCELLED;
		if (job->took)
			tw__job_stop(job);
		r = TW_RUNNING;
	}
	if (r != TW_GONE)
		tw__job_go_on(l, job, TW__CALLER);
	tw__limiter_leave(l, 1);
	return r;
}

/* The job goes behind the others of that priority. */
static void set_priority(struct tw_limiter *l, struct tw__job *job, int16_t priority)
{
	struct tw__job_line *line = job->state == TW__JOB_DELAYED ? &l->delayed : &l->line;
	bool waits = job->state == TW__JOB_QUEUED || job->state == TW__JOB_DELAYED;
	if (waits)
		tw__job_line_remove(line, job);
	job->priority = priority;
	if (waits)
		tw__job_line_add(line, job);
}

int tw_job_set_priority(tw_limiter *l, tw_job handle, int32_t priority)
{
	struct tw__job *job;
	if (priority < INT16_MIN || priority > INT16_MAX)
		return tw__bad(-EINVAL, __func__, "priority");
	int r = job_enter(__func__, l, handle, &job);
	if (r)
		return r;
	if (!job || job->state >= TW__JOB_SETTLED)
		r = TW_GONE;
	else if (job->priority != priority)
		set_priority(l, job, (int16_t)priority);
	tw__limiter_leave(l, 1);
	return r;
}

/* --------------------------------------------------------------- wait, and ask */

/* `done` has returned, and the result is not kept, or a wait has taken it. */
static bool has_no_result(const struct tw__job *job)
{
	return job->state >= TW__JOB_TOLD && !(job->flags & TW__JOB_KEEP);
}

int tw_job_wait(tw_limiter *l, tw_job handle, uint64_t timeout_ns, struct tw_job_result *out)
{
	struct tw__job *job;
	uint64_t deadline_ns = timeout_ns ? tw__deadline_in(timeout_ns) : 0;
	int r = job_enter(__func__, l, handle, &job);
	if (r)
		return r;
	bool in_time = timeout_ns != 0, waits = job && !tw__job_answers(job);
	if (!job || has_no_result(job)) {
		r = TW_GONE;
	} else if (waits && (tw__inside_object(&l->object, job) ||
			     (in_time && tw__inside_object(&l->object, &l->line)))) { /* a close */
		r = -EDEADLK;
	} else {
		job->waiters++;
		for (; !tw__job_answers(job) && in_time; tw__limiter_lock(l)) {
			tw__object_unlock(&l->object);
			in_time = tw__futex_wait(&job->bell, 0, deadline_ns);
		}
		job->waiters--;
		r = tw__job_answers(job) ? 0 : -ETIMEDOUT;
	}
	if (r == 0) {
		if (out)
			*out = tw__result_of(job);
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
	    [TW__JOB_QUEUED] = TW_JOB_STATE_QUEUED,   [TW__JOB_RUNNING] = TW_JOB_STATE_RUNNING,
	    [TW__JOB_ENDED] = TW_JOB_STATE_RETRYING,  [TW__JOB_DELAYED] = TW_JOB_STATE_RETRYING,
	    [TW__JOB_SETTLED] = TW_JOB_STATE_SETTLED, [TW__JOB_TOLD] = TW_JOB_STATE_SETTLED,
	    [TW__JOB_FINISHED] = TW_JOB_STATE_SETTLED};
	struct tw__job *job;
	int r = job_enter(__func__, l, handle, &job);
	if (r)
		return r;
	r = !job || (has_no_result(job) && !job->took) ? TW_JOB_STATE_GONE : states[job->state];
	if (r == TW_JOB_STATE_RUNNING && (job->flags & (TW__JOB_CANCELLED | TW__JOB_OVERDUE) ||
					  tw__job_is_due(job, tw_service_now(l->service))))
		r = TW_JOB_STATE_STOPPING;
	tw__limiter_leave(l, 1);
	return r;
}
