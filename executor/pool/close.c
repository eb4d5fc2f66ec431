/*
 * The pool's end. A bit in the ring's tail, and `closed`, refuse all submits. Close waits for the
 * submitters that are on their way (parts.h, rule 5). From then on the queue only empties.
 */
#include "executor/pool/parts.h"
#include "mpsc/base/process.h"
#include "wheel/core/frame.h"

void tw__pool_stop(tw_pool *pool)
{
	tw__pool_call_all(pool);
	tw__starter_stop(pool);
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_relaxed(&worker->state) == TW__WORKER_NONE)
			continue;
		pthread_join(worker->thread, NULL);
		tw_store_relaxed(&worker->state, TW__WORKER_NONE); /* statistics still read it */
	}
}

/*
 * A batch is of a service with another executor: the service offers the runs again, and is refused.
 * Work keeps the pool from being closed.
 */
static void pool_drop(tw_pool *pool, tw_pool_dropped_fn *told, void *told_arg)
{
	struct tw__run frame = {.within = pool};
	struct tw__pool_task task;
	tw__frame_begin(&frame);
	while (tw__ring_pop(&pool->ring, &task)) {
		if (!task.fn) {
			tw_batch *batch = task.arg;
			for (uint64_t n = tw__batch_left(batch); n > 0; n--)
				tw_run_return(batch);
			continue;
		}
		tw_add_relaxed(&pool->counters.dropped, 1);
		if (told)
			told(told_arg, task.fn, task.arg);
	}
	tw__frame_end(&frame);
}

static void await_bringers(tw_pool *pool)
{
	while (tw_load_acquire(&pool->bringing)) /* BRINGING */
		sched_yield();
	/* QUEUE3 */
	for (struct tw__run_record *record = tw_load_acquire(&tw__run_records); record;
	     record = record->next)
		while (tw_load_acquire(&record->bringing) == pool) /* BRINGING */
			sched_yield();
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
	if (tw__is_worker_of(pool) || tw__is_within(pool))
		return tw__waits_inside(call);
	uint64_t end = 0;
	tw__tiny_lock(&pool->lock);
	bool busy = pool->users > 0, closes = !busy && !pool->closed;
	if (closes) {
		pool->closed = true;
		end = tw__ring_close(&pool->ring);
	}
	tw__tiny_unlock(&pool->lock);
	if (closes) {
		tw__pool_tell_room(pool);
		tw__ring_await(&pool->ring, end);
		await_bringers(pool); /* no thread submits any more */
		if (mode == TW_CLOSE_DROP)
			pool_drop(pool, told, told_arg);
		tw__pool_stop(pool);
		tw_store_release(&pool->ended, 1); /* pairs with a second close */
		tw__futex_wake(&pool->ended, INT_MAX);
	}
	while (!busy && !tw_load_acquire(&pool->ended))
		tw__futex_wait(&pool->ended, 0, UINT64_MAX);
	return busy ? -EBUSY : 0;
}

void tw__pool_free(tw_pool *pool)
{
	if (tw__is_worker_of(pool)) /* of the parent: this is a forked child */
		tw__this_worker = NULL;
	free(pool->workers);
	free(pool->ring.memory);
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
	if (pool->users)
		return -EBUSY;
	tw__pool_free(pool);
	return 0;
}

int tw_pool_destroy(tw_pool *pool)
{
	return TW__ORIGIN_DESTROY(pool, pool_end_forked, pool_end);
}
