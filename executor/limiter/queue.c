/*
 * How jobs come into the queue and leave it; permits, and the runners that bring them together.
 *
 * Bounded wait. Only the first job in the queue starts, and only when all its permits are free.
 * Jobs that come, from the inbox or back from a retry, go to the end of their priority. So a job
 * that takes many permits waits for those before it, and for no more.
 */

#include "executor/limiter/queue.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/job_queue.h"
#include "executor/limiter/rate.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/*
 * A runner's slice: then it goes to the end of the executor's queue, so that others there have
 * their turn. The number of jobs is for short ones, and for clocks that stand still while jobs run.
 */
enum { JOBS_IN_A_ROW = 64, EXPIRED_IN_A_ROW = 16 };
#define SLICE_NS UINT64_C(5000000)

/* ----------------------------------------------------------- coming and going */

void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->state = TW_JOB_STATE_QUEUED;
	job->since_ns = now_ns;
	if (job->options)
		job->options->until_ns = job->options->queue_timeout_ns
					     ? now_ns + job->options->queue_timeout_ns
					     : UINT64_MAX;
	tw__job_queue_add(&l->queue, job);
}

void tw__pending_less(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	l->pending--;
	tw__bell_ring(&l->ends.room);
}

void tw__job_dequeue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	tw__job_queue_remove(&l->queue, job);
	if (now_ns > job->since_ns)
		job->queued_ns += now_ns - job->since_ns;
	tw__pending_less(l);
}

/* ----------------------------------------------------------------- runners */

static void limiter_run(struct tw__work *work);

int tw__runner_reserve(struct tw_limiter *l, uint64_t wanted)
{
	TW_ASSERT_LOCKED(&l->lock);
	while (l->permits.runners < l->permits.limit && l->permits.runners < wanted) {
		struct tw__runner *runner = malloc(sizeof *runner);
		if (!runner)
			return -ENOMEM;
		tw__work_init(&runner->work, l->service, l->base.executor, limiter_run);
		runner->work.is_job = !(l->config.flags & TW_LIMITER_NONBLOCKING);
		runner->limiter = l;
		runner->next = l->permits.free_runners;
		l->permits.free_runners = runner;
		runner->other = l->permits.first_runner;
		l->permits.first_runner = runner;
		l->permits.runners++;
	}
	return 0;
}

uint64_t tw__startable(struct tw_limiter *l, uint64_t now_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (l->ended || l->paused || l->permits.running >= l->permits.limit)
		return 0;
	uint64_t permits = l->permits.limit - l->permits.running,
		 tokens = tw__rate_tokens(l, now_ns);
	permits -=
	    l->queue.extra < permits ? l->queue.extra : permits; /* at least this many jobs */
	return permits < tokens ? permits : tokens;
}

/*
 * Whether one runner more may find a job that fits. Those that search take one permit each, or
 * more: then it finds none, and returns. The first queued job must fit, or runners would be sent
 * without end.
 */
static bool has_permits(struct tw_limiter *l)
{
	const struct tw__job *first =
	    tw_likely(!l->queue.extra) ? NULL : tw__job_queue_first(&l->queue);
	uint64_t needed = first ? tw__job_needs(l, first) : 1;
	/* planted: permit_less */
	return l->permits.running + l->permits.searching < l->permits.limit + 1 - needed;
}

static bool may_start(struct tw_limiter *l, uint64_t now_ns)
{
	return !l->ended && !l->paused && has_permits(l) && l->queue.count > l->permits.searching &&
	       tw__rate_allows(l, l->permits.searching, now_ns);
}

void tw__dispatch(struct tw_limiter *l, uint64_t now_ns, struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (tw_unlikely(l->ends.room.waiters) &&
	    tw__startable(l, now_ns) > l->pending - l->times.retrying)
		tw__bell_ring(&l->ends.room);
	while (may_start(l, now_ns)) {
		struct tw__runner *runner = l->permits.free_runners;
		if (!runner)
			return; /* one that runs will look when it is through */
		l->permits.free_runners = runner->next;
		runner->next = deferred->runners;
		deferred->runners = runner;
		l->permits.searching++;
		l->permits.runners_out++;
	}
}

static void take_permits(struct tw_limiter *l, struct tw__job *job)
{
	l->permits.running++;
	if (tw_likely(!job->options))
		return;
	uint64_t extra = tw__job_needs(l, job) - 1;
	l->permits.running += extra;
	l->permits.extra += extra;
	job->options->extra = (uint32_t)extra;
}

/* The first queued job becomes a running one; NULL: there is none, or nothing may start. */
static struct tw__job *pick(struct tw_limiter *l, uint64_t now_ns)
{
	struct tw__job *job = tw__job_queue_first(&l->queue);
	if (!job) {
		/* one that came since the lock was taken then needs no other runner */
		tw__inbox_look(l);
		job = tw__job_queue_first(&l->queue);
	}
	if (!job || l->ended || l->paused ||
	    l->permits.running + tw__job_needs(l, job) > l->permits.limit ||
	    !tw__rate_allows(l, 0, now_ns))
		return NULL;
	/* a reading of before its coming */
	uint64_t stay_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	tw__job_dequeue(l, job, now_ns);
	l->rate.out += l->rate.tokens != NULL;
	tw__histogram_add(&l->counters.queue, stay_ns, 1);
	take_permits(l, job);
	job->state = TW_JOB_STATE_RUNNING;
	job->flags = (uint16_t)((job->flags & (TW__JOB_IS_ASYNC | TW__JOB_KEEP | TW__JOB_CANCEL)) |
				TW__JOB_INSIDE | TW__JOB_IN_FN);
	job->attempts++;
	job->since_ns = now_ns;
	job->value = NULL;
	if (job->options) {
		uint64_t timeout_ns = job->options->attempt_timeout_ns;
		job->options->until_ns = timeout_ns ? now_ns + timeout_ns : UINT64_MAX;
		job->flags |= l->config.event ? TW__JOB_STARTING : 0;
		tw__job_keep_time(l, job);
	}
	return job;
}

/* ---------------------------------------------------------------- attempts */

static int limiter_call(struct tw_limiter *l, struct tw__job *job, struct tw_job_run *see,
			uint64_t now_ns)
{
	struct tw__limiter_call frame;
	tw__limiter_call_begin(&frame, l, job);
	if (tw_unlikely(l->config.event != NULL)) {
		tw__limiter_call_event(&frame,
				       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_STARTED,
								  .attempt = see->attempt,
								  .job = tw__job_handle(job),
								  .id = see->id});
		if (job->options)
			tw__attempt_started(l, job);
		now_ns = 0;
	}
	if (tw_unlikely(l->config.rate_starts))
		tw__rate_begin(l);
	tw__limiter_call_show(&frame, TW__NAMED_BY(job->fn), job->arg, now_ns);
	int r = job->fn(job->arg, see);
	tw__limiter_call_end(&frame);
	return r;
}

static bool is_error(int error)
{
	return error < 0 && error >= -4095;
}

/*
 * Jobs at the head of the queue whose time there has passed settle, and do not start: the driver
 * may look later than this. Returns the number; there may be more.
 */
static unsigned limiter_expire(struct tw_limiter *l, uint64_t now_ns,
			       struct tw__limiter_deferred *deferred)
{
	unsigned n = 0;
	struct tw__job *job;
	for (; n < EXPIRED_IN_A_ROW && (job = tw__job_queue_first(&l->queue)) &&
	       tw__job_is_due(job, now_ns);
	     n++)
		tw__stay_is_over_time(l, job, now_ns, deferred);
	return n;
}

/* The function has returned. The lock is held. */
static void returned(struct tw_limiter *l, struct tw__job *job, int r, const struct tw_job_run *see,
		     uint64_t now_ns, struct tw__limiter_deferred *deferred)
{
	bool async = job->flags & TW__JOB_IS_ASYNC, completed = job->flags & TW__JOB_COMPLETED;
	job->flags &= (uint16_t)~TW__JOB_IN_FN;
	if (async && r == TW_JOB_PENDING && !completed)
		return;
	if (!completed)
		tw__attempt_look(l, job, now_ns, deferred);
	if (completed) {
		/* a second end of one attempt */
		l->counters.refused_completions += r != TW_JOB_PENDING;
		tw__attempt_end(l, job, job->error, job->value, now_ns, deferred);
		return;
	}
	if (r != 0 && !is_error(r))
		r = -EINVAL; /* the job's result; told to `done` */
	tw__attempt_end(l, job, r, see->value, now_ns, deferred);
}

/* One job. Called with the lock, returns with it. */
static void run_one(struct tw_limiter *l, struct tw__job *job, uint64_t *now_ns,
		    struct tw__limiter_deferred *deferred)
{
	struct tw_job_run see = {
	    .limiter = l, .job = tw__attempt_handle(job), .id = job->id, .attempt = job->attempts};
	tw__dispatch(l, *now_ns, deferred);
	tw__limiter_unlock(l, deferred);
	int r = limiter_call(l, job, &see, *now_ns);
	*now_ns = tw_service_now(l->service);
	tw__limiter_lock_lazily(l, deferred);
	returned(l, job, r, &see, *now_ns, deferred);
}

static void runner_return(struct tw_limiter *l, struct tw__runner *runner)
{
	runner->next = l->permits.free_runners;
	l->permits.free_runners = runner;
	l->permits.runners_out--;
}

/*
 * User's code is to be called, for any length of time: the runner returns, to be sent anew for
 * whatever may start now or meanwhile, and this thread does the telling (on the driving thread
 * nothing else can run: there it stays). False: it has gone; the lock is free.
 */
static bool tell_first(struct tw_limiter *l, struct tw__runner *runner, uint64_t *now_ns,
		       struct tw__limiter_deferred *deferred)
{
	if (!tw__deferred_calls(deferred))
		return true;
	bool goes = l->base.executor != &tw__inline_executor;
	if (goes)
		runner_return(l, runner);
	tw__dispatch(l, *now_ns, deferred);
	tw__limiter_unlock(l, deferred);
	if (goes)
		return false;
	*now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, deferred);
	return true;
}

/* Work in the executor's hands. */
static void limiter_run(struct tw__work *work)
{
	struct tw__runner *runner = (struct tw__runner *)(void *)work;
	struct tw_limiter *l = runner->limiter;
	struct tw__limiter_deferred deferred;
	struct tw__job *job;
	uint64_t now_ns = tw_service_now(l->service), end_ns = now_ns + SLICE_NS;
	tw__limiter_lock(l, &deferred);
	l->permits.searching--;
	for (int left = JOBS_IN_A_ROW; left && now_ns < end_ns; left--) {
		if (tw_likely(!limiter_expire(l, now_ns, &deferred))) {
			if (!(job = pick(l, now_ns)))
				break;
			run_one(l, job, &now_ns, &deferred);
		}
		if (!tell_first(l, runner, &now_ns, &deferred))
			return;
	}
	runner_return(l, runner);
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
}
