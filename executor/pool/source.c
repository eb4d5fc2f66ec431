/*
 * Sources: how services hand over to a pool that they may share. Each service has a ring of its own
 * with one producer, its driver. So no driver ever waits for another. A source outlives its
 * service, and is reused for the next one.
 */

#include <string.h>

#include "executor/pool/close.h"
#include "executor/pool/grow.h"
#include "executor/pool/jobs.h"
#include "executor/pool/source.h"
#include "executor/pool/wake.h"

/* ------------------------------------------------------------------- workers */

bool tw__sources_empty(tw_pool *pool)
{
	/* POOL2 */
	for (struct tw__source *s = tw_load_seq_cst(&pool->sources); s; s = s->next)
		if (tw__batch_ring_count(&s->ring) > 0)
			return false;
	return true;
}

tw_batch *tw__sources_take(tw_pool *pool)
{
	tw_batch *batch = NULL;
	/* POOL2 */
	for (struct tw__source *s = tw_load_seq_cst(&pool->sources); s && !batch; s = s->next)
		batch = tw__batch_ring_pop(&s->ring); /* POOL1 */
	return batch;
}

/* ------------------------------------------------------------------ services */

static int source_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct tw__source *source = (struct tw__source *)self;
	if (tw_unlikely(tw__batch_is_work(batch))) /* a group's completion */
		return tw_pool_executor(source->pool)
		    ->ops->submit(tw_pool_executor(source->pool), batch, n);
	if (!tw__batch_ring_push(&source->ring, batch)) /* POOL1, POOL2 */
		return -EAGAIN;
	tw__pool_call_for_help(source->pool);
	return 0;
}

static const struct tw_executor_ops source_ops = {sizeof source_ops, source_submit};

static struct tw__source *source_new(tw_pool *pool)
{
	struct tw__source *source = aligned_alloc(TW__CACHE_LINE, sizeof *source);
	_Atomic(tw_batch *) *cells = calloc(TW__BATCH_RING_SIZE, sizeof *cells);
	if (!source || !cells) {
		free(source);
		free(cells);
		return NULL;
	}
	memset(source, 0, sizeof *source);
	source->executor.ops = &source_ops;
	source->pool = pool;
	source->ring.cells = cells;
	source->next = tw_load_relaxed(&pool->sources);
	/* Pairs with the workers' loads: it is complete. POOL2 */
	tw_store_seq_cst(&pool->sources, source);
	return source;
}

int tw__pool_join(struct tw__source **out, tw_pool *pool)
{
	int r = tw__pool_check(pool);
	if (r)
		return r;
	pthread_mutex_lock(&pool->lock);
	struct tw__source *source = tw_load_relaxed(&pool->sources);
	while (source && tw_load_relaxed(&source->in_use))
		source = source->next;
	if (pool->users.closed)
		r = -ESHUTDOWN;
	else if (!source && !(source = source_new(pool)))
		r = -ENOMEM;
	if (!r) {
		tw_store_relaxed(&source->in_use, true);
		pool->users.users++;
		*out = source;
	}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

void tw__pool_leave(struct tw__source *source)
{
	if (!source)
		return;
	tw_pool *pool = source->pool;
	pthread_mutex_lock(&pool->lock);
	tw_store_relaxed(&source->in_use, false);
	pool->users.users--;
	bool owned = pool->owned; /* after the unlock another thread may free a shared pool */
	pthread_mutex_unlock(&pool->lock);
	if (owned)
		tw_pool_destroy(pool);
}

void tw__pool_leave_forked(struct tw__source *source)
{
	if (!source)
		return;
	source->pool->users.users--;
	if (source->pool->owned)
		tw__pool_free(source->pool);
}

tw_executor *tw__shared_executor(tw_executor *executor)
{
	return executor->ops == &source_ops
		   ? tw_pool_executor(((struct tw__source *)executor)->pool)
		   : executor;
}

unsigned tw__executor_capacity(tw_executor *executor)
{
	tw_pool *pool = tw__pool_of(tw__shared_executor(executor));
	return pool ? pool->max_workers : 0;
}

/* -------------------------------------------------------------------- holders */

int tw__pool_hold(tw_pool *pool)
{
	int r = tw__pool_check(pool);
	if (r)
		return r;
	pthread_mutex_lock(&pool->lock);
	bool closed = pool->users.closed;
	pool->users.holders += !closed;
	pthread_mutex_unlock(&pool->lock);
	return closed ? -ESHUTDOWN : 0;
}

void tw__pool_let_go(tw_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->users.holders--;
	pthread_mutex_unlock(&pool->lock);
}

void tw__source_look(void *source, struct tw_service_liveness *out)
{
	tw_pool *pool = ((struct tw__source *)source)->pool;
	unsigned running = 0;
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++)
		running += tw_load_relaxed(&pool->workers[i].runs) & 1;
	/* a pool of one worker has a limit of no jobs, and is at it also while it is idle */
	bool jobs_wait =
	    running > 0 && tw__jobs_at_limit(pool) && !tw__work_queue_empty(&pool->jobs.queue);
	out->pool_max_workers = pool->max_workers;
	out->pool_at_max = jobs_wait || (running == pool->max_workers && tw__pool_runs_wait(pool));
}
