/* How jobs come to a limiter: what is asked of them, whether there is room. */

#include <string.h>

#include "executor/limiter/inbox.h"
#include "executor/limiter/job_queue.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/rate.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

#define LEAST_WAIT_NS UINT64_C(1000000)

/* -------------------------------------------------------------------- input */

static int limiter_task_check(struct tw_limiter_task *task)
{
	const char *bad = NULL, *beyond = NULL;
	struct tw_retry *retry = &task->retry;
	const uint32_t flags =
	    TW_LIMITER_TASK_ASYNC | TW_LIMITER_TASK_KEEP | TW_LIMITER_TASK_WAIT_UNTIL;
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

static bool wants_options(const struct tw_limiter_task *task)
{
	return task->queue_timeout_ns || task->attempt_timeout_ns || task->timeout_ns ||
	       task->retry.count || task->permits > 1 || task->stop || task->release;
}

static uint64_t from(uint64_t now_ns, uint64_t span_ns)
{
	return span_ns ? now_ns + span_ns : UINT64_MAX;
}

static struct tw__job_options *make_options(struct tw_limiter *l,
					    const struct tw_limiter_task *task, uint64_t now_ns)
{
	struct tw__job_options *o = malloc(sizeof *o);
	if (o)
		*o = (struct tw__job_options){
		    .limiter = l,
		    .queue_timeout_ns = task->queue_timeout_ns,
		    .attempt_timeout_ns = task->attempt_timeout_ns,
		    .until_ns = UINT64_MAX,
		    .total_until_ns = from(now_ns, task->timeout_ns),
		    .retry_deadline_ns = from(now_ns, task->retry.deadline_ns),
		    .retry = task->retry,
		    .delay_ns = task->retry.delay_ns < task->retry.cap_ns ? task->retry.delay_ns
									  : task->retry.cap_ns,
		    .permits = task->permits ? task->permits : 1,
		    .due.entry.index = TW__HEAP_NOWHERE,
		    .stop = task->stop,
		    .release = task->release};
	return o;
}

/* A node, filled in; not known to anybody yet. */
static int limiter_make(struct tw_limiter *l, const struct tw_limiter_task *task, uint64_t now_ns,
			struct tw__job **out)
{
	struct tw__job_options *options = NULL;
	struct tw__node *node;
	if (wants_options(task) && !(options = make_options(l, task, now_ns)))
		return -ENOMEM;
	int r = tw__node_get(&l->nodes, &node);
	if (r) {
		free(options);
		return r;
	}
	struct tw__job *job = *out = (struct tw__job *)(void *)node;
	/* the node's head is its table's */
	memset((char *)job + sizeof job->node, 0, sizeof *job - sizeof job->node);
	job->state = TW_JOB_STATE_GONE; /* until it is queued */
	job->fn = task->fn;
	job->arg = task->arg;
	job->done = task->done;
	job->context = tw__context_capture();
	job->name = task->name;
	if (options)
		options->job = job;
	job->options = options;
	job->flags = (uint16_t)((task->flags & TW_LIMITER_TASK_ASYNC ? TW__JOB_IS_ASYNC : 0) |
				(task->flags & TW_LIMITER_TASK_KEEP ? TW__JOB_KEEP : 0));
	job->priority = (int16_t)task->priority;
	return 0;
}

/* The lock is held. */
static void unmake(struct tw_limiter *l, struct tw__job *job)
{
	free(job->options);
	tw__node_put(&l->nodes, &job->node);
}

/* ------------------------------------------------------------------- accept */

/* Whether there are permits for all queued and for this job. */
static bool fits_behind_queue(const struct tw_limiter *l, const struct tw__job *job)
{
	uint64_t is_queued = l->queue.count + l->queue.extra;
	return l->permits.running + is_queued + tw__job_needs(l, job) <= l->permits.limit;
}

/*
 * Whether the limiter takes this job, apart from memory. Those queued that can start now do not
 * count as waiting.
 */
static int admit(struct tw_limiter *l, const struct tw__job *job)
{
	if (l->closed)
		return -ESHUTDOWN;
	if (tw_unlikely(job->options != NULL) && job->options->permits > l->permits.limit)
		return -EINVAL; /* told after the unlock */
	if (l->paused && l->config.flags & TW_LIMITER_PAUSED_REFUSES)
		return -EBUSY;
	if (tw_likely(l->pending < l->config.max_pending))
		return 0;
	uint64_t startable = tw__startable(l, l->rate.tokens ? tw_service_now(l->service) : 0),
		 is_queued = l->pending - l->times.retrying;
	uint64_t waiting = l->pending - (startable < is_queued ? startable : is_queued);
	bool no_queue = l->config.max_pending == 0;
	return (no_queue ? startable > is_queued && fits_behind_queue(l, job)
			 /* planted: room_for_one_more */
			 : waiting < l->config.max_pending)
		   ? 0
		   : -EAGAIN;
}

/*
 * When to look again, in real time: at the end of the wait, or when the job's total timeout may
 * have passed. The service's clock may stand still, so looks are 1 ms apart.
 */
static uint64_t look_at_ns(const struct tw_limiter *l, const struct tw__job *job,
			   uint64_t deadline_ns)
{
	if (!job->options || job->options->total_until_ns == UINT64_MAX)
		return deadline_ns;
	uint64_t now_ns = tw_service_now(l->service), total_ns = job->options->total_until_ns,
		 left_ns = total_ns > now_ns ? total_ns - now_ns : 0;
	uint64_t at_ns = tw__deadline_in(left_ns > LEAST_WAIT_NS ? left_ns : LEAST_WAIT_NS);
	return at_ns < deadline_ns ? at_ns : deadline_ns;
}

/*
 * For room. The lock is held, and given up while it waits. A job whose total timeout passes
 * meanwhile is taken, and times out in line.
 */
static int admit_waiting(struct tw_limiter *l, const struct tw__job *job, uint64_t deadline_ns)
{
	int r;
	bool in_time = true;
	while ((r = admit(l, job)) == -EAGAIN && in_time) {
		if (tw__job_is_past(job, tw_service_now(l->service)))
			return 0;
		if (l->rate.tokens)
			(void)tw__rate_has_token(l, l->pending - l->times.retrying,
						 tw_service_now(l->service)); /* it rings */
		uint64_t at_ns = look_at_ns(l, job, deadline_ns);
		in_time = tw__limiter_await(l, &l->ends.room, at_ns) || at_ns != deadline_ns;
	}
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

/* All that may fail is had before anything is changed. */
static int limiter_reserve(struct tw_limiter *l, const struct tw__job *job)
{
	if (tw__job_queue_reserve(&l->queue, job->priority) ||
	    tw__runner_reserve(l, l->ends.unfinished + 1))
		return -ENOMEM;
	if (job->options && tw__heap_reserve(&l->times.heap, (uint32_t)l->times.timed + 1))
		return -ENOMEM;
	return l->config.flags & TW_LIMITER_COLLECT ? tw__results_reserve(l) : 0;
}

/* The lock is held. */
static void accept_and_enter(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	tw__job_accept(l, job);
	tw__job_enqueue(l, job, now_ns);
	if (job->options)
		tw__job_keep_time(l, job);
}

static int limiter_submit(struct tw_limiter *l, const struct tw_limiter_task *task, tw_job *out)
{
	struct tw__job *job;
	struct tw__limiter_deferred deferred;
	uint64_t now_ns = tw_service_now(l->service);
	int r = limiter_make(l, task, now_ns, &job);
	if (r)
		return r;
	tw_job handle = tw__job_handle(job);
	job->since_ns = now_ns;
	bool is_plain = l->has_inbox && !job->options && job->priority == 0;
	if (is_plain && tw__inbox_leave(l, job, out)) /* which never refuses a job */
		return 0;
	tw__limiter_lock(l, &deferred);
	r = admit(l, job);
	if (r == -EAGAIN && task->wait_ns) {
		bool is_instant = task->flags & TW_LIMITER_TASK_WAIT_UNTIL;
		r = admit_waiting(l, job,
				  is_instant ? task->wait_ns : tw__deadline_in(task->wait_ns));
		now_ns = tw_service_now(l->service); /* it comes into the queue now */
	}
	if (!r && !(r = limiter_reserve(l, job))) {
		if (out)
			*out = handle;
		accept_and_enter(l, job, now_ns);
		tw__dispatch(l, now_ns, &deferred);
	}
	if (r)
		unmake(l, job);
	l->counters.rejected += r == -EAGAIN || r == -EBUSY || r == -ETIMEDOUT;
	tw__limiter_unlock(l, &deferred); /* the limiter may be gone */
	return r == -EINVAL
		   ? tw__bad_member(r, "tw_limiter_submit_task", "tw_limiter_task", "permits")
		   : r;
}

int tw_limiter_submit_task(tw_limiter *l, const struct tw_limiter_task *task, tw_job *out)
{
	struct tw_limiter_task known;
	int r = task ? TW__CHECK(l, "limiter") : tw__invalid("task is NULL");
	if (!r)
		r = TW__STRUCT_READ(tw_limiter_task, &known, done, task);
	if (!r)
		r = limiter_task_check(&known);
	return r ? r : limiter_submit(l, &known, out);
}

int tw_limiter_submit(tw_limiter *l, tw_job_fn *fn, void *arg, tw_job *out)
{
	struct tw_limiter_task task = {.size = sizeof task, .fn = fn, .arg = arg};
	if (!l || !fn)
		return tw__invalid("%s is NULL", l ? "fn" : "limiter");
	return tw_limiter_submit_task(l, &task, out);
}
