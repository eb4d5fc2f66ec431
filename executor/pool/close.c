/*
 * The pool's end.
 *
 * Submit against close: a bit in the ring's tail says closed (task_ring.h, RING3). Close sets the
 * bit. Then it waits until each submitter that has a position has filled it. From then on the ring
 * only empties.
 *
 * Pairing table (of waking: wake.c)
 *   POOLEND1  bringing: add relaxed, then the push, whose run comes after it and leads to close;
 *       sub release after the last wake-up -> load acquire (close). Without it the pool is freed
 *       while the submitter still reads it.
 *   POOLEND2  record.bringing: the same with a store relaxed before the push, and a store-release
 *       after -> load acquire.
 */
#include "executor/pool/close.h"

#include "executor/pool/bringing.h"
#include "wheel/core/context.h"
#include "wheel/core/frame.h"
#include "executor/pool/grow.h"
#include "executor/pool/wake.h"
#include "mpsc/base/cancel.h"
#include "mpsc/base/process.h"

void tw__pool_stop(tw_pool *pool)
{
	tw_store_seq_cst(&pool->stopping, 1);
	tw__pool_wake_all(pool);
	tw__starter_stop(pool);
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_relaxed(&worker->state) == TW__WORKER_NONE)
			continue;
		pthread_join(worker->thread, NULL);
		tw_store_relaxed(&worker->state, TW__WORKER_NONE); /* statistics still read it */
	}
}

static void pool_drop_tasks(tw_pool *pool, tw_pool_dropped_fn *told, void *told_arg)
{
	struct tw__pool_task task;
	struct tw__within within;
	tw__within_begin(&within, pool);
	while (tw__task_ring_pop(&pool->tasks, &task)) {
		if (!task.fn) {
			/*
			 * A batch of a service with another executor: the service offers the runs
			 * again, and is refused.
			 */
			for (uint32_t n = tw__batch_chunk(task.arg)->count; n > 0; n--)
				tw_run_return(task.arg);
			continue;
		}
		tw_add_relaxed(&pool->counters.dropped, 1);
		if (told)
			told(told_arg, task.fn, task.arg);
	}
	tw__within_end(&within);
}

/* No thread submits any more; those that waited for room have returned. */
static void shut_door(tw_pool *pool)
{
	tw__task_ring_close(&pool->tasks);
	tw_add_seq_cst(&pool->room, 1);
	tw__futex_wake(&pool->room, INT_MAX);
	while (tw_load_acquire(&pool->waiting_for_room))
		sched_yield();
}

/* 1: this call is the first one, and closes. */
static int begin_close(tw_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	int r = pool->users.users || pool->users.holders ? -EBUSY : !pool->users.closed;
	if (r == 1)
		pool->users.closed = true;
	pthread_mutex_unlock(&pool->lock);
	return r;
}

static int close_pool(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told,
		      void *told_arg, const char *call)
{
	TW__UNCANCELLED;
	int r = TW__ORIGIN_CHECK(call, pool, "pool");
	if (!r && (unsigned)mode > TW_CLOSE_DRAIN)
		r = tw__bad(-EINVAL, call, "mode");
	if (r)
		return r;
	if (tw__pool_is_worker(pool) || tw__is_within(pool))
		return tw__waits_inside(call);
	r = begin_close(pool);
	if (r < 0)
		return r;
	if (r == 0) {
		while (!tw_load_acquire(&pool->ended))
			tw__futex_wait(&pool->ended, 0, UINT64_MAX);
		return 0;
	}
	shut_door(pool);
	if (mode == TW_CLOSE_DROP)
		pool_drop_tasks(pool, told, told_arg);
	tw__pool_stop(pool);
	tw__pool_await_bringers(pool);
	tw_store_release(&pool->ended, 1); /* pairs with a second close */
	tw__futex_wake(&pool->ended, INT_MAX);
	return 0;
}

void tw__pool_free(tw_pool *pool)
{
	for (struct tw__source *s = tw_load_relaxed(&pool->sources), *next; s; s = next) {
		next = s->next;
		free(s->ring.cells);
		free(s);
	}
	if (tw__pool_is_worker(pool)) /* of the parent: this is a forked child */
		tw__this_worker = NULL;
	pthread_mutex_destroy(&pool->lock);
	free(pool->workers);
	free(pool->tasks.cells);
	free(pool);
	tw__unload_drop();
}

int tw_pool_close(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told, void *told_arg)
{
	return close_pool(pool, mode, told, told_arg, "tw_pool_close");
}

static int pool_end(tw_pool *pool)
{
	int r = close_pool(pool, TW_CLOSE_DRAIN, NULL, NULL, "tw_pool_destroy");
	if (r == 0)
		tw__pool_free(pool);
	return r;
}

/* Services and layers look at their pool when they end, in a child too. */
static int pool_end_forked(tw_pool *pool)
{
	if (pool->users.users || pool->users.holders)
		return -EBUSY;
	tw__pool_free(pool);
	return 0;
}

int tw_pool_destroy(tw_pool *pool)
{
	return TW__ORIGIN_DESTROY(pool, pool_end_forked, pool_end);
}
