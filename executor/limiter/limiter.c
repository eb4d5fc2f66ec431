/*
 * The limiter as a whole: pause, close, waiting until it is idle.
 */

#include "wheel/timer/timing.h"
#include "executor/limiter/idle.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/life.h"
#include "executor/limiter/job_queue.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

/* Of a close: then others have the lock, the driver among them, which keeps times. */
enum { DROPPED_IN_A_ROW = 64 };

/* ------------------------------------------------------------------ waiting */

static bool is_idle(const struct tw_limiter *l)
{
	return l->ends.unfinished == 0 && !l->idles.telling && l->idles.count == l->idles.told;
}

/*
 * An idle that comes after the call's beginning, and whose listeners have returned, is enough,
 * though it may be over. One of before is not, even if its listeners are called only now: somebody
 * has submitted since. The lock is held, and given up while the call waits.
 */
static int await_idle(struct tw_limiter *l, uint64_t timeout_ns)
{
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	uint64_t before = l->ends.unfinished == 0 && l->idles.told != l->idles.count
			      ? l->idles.count - 1
			      : l->idles.count;
	bool in_time = timeout_ns != 0;
	while (!is_idle(l) && l->idles.told <= before && in_time)
		in_time = tw__limiter_await(l, &l->ends.quiet, deadline_ns);
	return is_idle(l) || l->idles.told > before ? 0 : -ETIMEDOUT;
}

static int await_unlocked(struct tw_limiter *l, uint64_t timeout_ns)
{
	tw__limiter_relock(l);
	int r = await_idle(l, timeout_ns);
	pthread_mutex_unlock(&l->lock);
	return r;
}

int tw_limiter_wait_idle(tw_limiter *l, uint64_t timeout_ns)
{
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	if (timeout_ns && tw__limiter_is_inside(l, NULL))
		return tw__waits_inside(__func__);
	return await_unlocked(l, timeout_ns);
}

/* -------------------------------------------------------------------- change */

int tw_limiter_set_paused(tw_limiter *l, bool paused)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, &deferred);
	l->paused = paused;
	if (paused && l->config.flags & TW_LIMITER_PAUSED_REFUSES)
		tw__bell_ring(&l->ends.room); /* those who wait for room are refused */
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
	return 0;
}

int tw_limiter_set_max_concurrency(tw_limiter *l, uint32_t max_concurrency)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (!r && !tw__limiter_holds(l->base.executor, max_concurrency, l->config.flags))
		r = tw__bad(-EINVAL, __func__, "max_concurrency");
	if (r)
		return r;
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, &deferred);
	uint64_t before = l->permits.limit;
	l->permits.limit = max_concurrency;
	r = tw__runner_reserve(l, l->ends.unfinished);
	if (r)
		l->permits.limit = before;
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
	return r;
}

/* -------------------------------------------------------------------- close */

/*
 * In the order in which they would have run; those that wait for a retry last. False: there are
 * more.
 */
static bool drop_some(struct tw_limiter *l, uint64_t now_ns, struct tw__limiter_deferred *deferred)
{
	struct tw__job *job;
	for (unsigned n = 0; n < DROPPED_IN_A_ROW; n++) {
		if ((job = tw__job_queue_first(&l->queue)))
			tw__job_dequeue(l, job, now_ns);
		else if ((job = l->times.first_retrying))
			tw__retrying_leave(l, job);
		else
			return true;
		tw__settle(l, job, TW_JOB_STATUS_DROPPED, -ESHUTDOWN, deferred);
	}
	return false;
}

/* The limiter stays until the call has counted itself off, although it gives up the lock. */
static void begin_close(struct tw_limiter *l)
{
	struct tw__limiter_deferred deferred;
	tw__limiter_lock(l, &deferred);
	l->out.calls++;
	l->closed = true;
	tw__bell_ring(&l->ends.room); /* those who wait for room are refused */
	tw__limiter_unlock(l, &deferred);
}

static void limiter_drop_all(struct tw_limiter *l)
{
	uint64_t now_ns = tw_service_now(l->service);
	struct tw__limiter_deferred deferred;
	for (bool all = false; !all;) {
		tw__limiter_lock(l, &deferred);
		l->ended = true;
		tw__tells_leave(l);
		all = drop_some(l, now_ns, &deferred);
		tw__limiter_unlock(l, &deferred);
	}
}

int tw_limiter_close(tw_limiter *l, enum tw_close_mode mode, uint64_t timeout_ns)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	if ((unsigned)mode > TW_CLOSE_DRAIN)
		return tw__bad(-EINVAL, __func__, "mode");
	if (timeout_ns && tw__limiter_is_inside(l, NULL))
		return tw__waits_inside(__func__);
	begin_close(l);
	r = mode == TW_CLOSE_DROP ? -ETIMEDOUT : await_unlocked(l, timeout_ns);
	if (r == -ETIMEDOUT) {
		limiter_drop_all(l);
		r = await_unlocked(l, mode == TW_CLOSE_DROP ? timeout_ns : 0);
	}
	tw__limiter_lock(l, &deferred);
	l->out.calls--;
	tw__limiter_unlock(l, &deferred);
	return r;
}

int tw_limiter_close_then(tw_limiter *l, enum tw_close_mode mode, tw_idle_fn *fn, void *arg)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	if (!fn)
		return tw__invalid("fn is NULL");
	if ((unsigned)mode > TW_CLOSE_DRAIN)
		return tw__bad(-EINVAL, __func__, "mode");
	struct tw__listener *listener = tw__listener_make(fn, arg);
	if (!listener)
		return -ENOMEM;
	begin_close(l);
	if (mode == TW_CLOSE_DROP)
		limiter_drop_all(l);
	tw__limiter_lock(l, &deferred);
	tw__listener_add(l, listener, &deferred);
	l->out.calls--;
	tw__limiter_unlock(l, &deferred);
	return 0;
}
