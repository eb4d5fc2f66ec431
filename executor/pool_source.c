/*
 * Sources: how services hand over to a pool that they may share.
 *
 * Each service has a ring of its own with one producer, its driver, so that no driver ever waits for another's. When a service
 * leaves, its memory goes away; workers may still be about to look whether its last batch has runs left. So leave waits,
 * after the service has settled, until
 *   (1) no worker shows a batch of the service as open: whoever took it is about to withdraw it, as nothing in it is left;
 *   (2) each worker has been seen outside of a look at a batch of which it holds no run.
 * After (1) none of the service's batches can be found; after (2) none that was found before is looked at.
 *
 * Pairing table
 *   S1  looking: store-seq_cst 1, then load-seq_cst of open (worker) against store-seq_cst open := NULL (owner), then load-seq_cst of
 *       open and looking (leave): if the look missed the withdrawal, leave sees `looking` and waits.
 *   S2  looking: store-release 0 -> load-acquire (leave): all reads of the look came before.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "executor/pool.h"
#include "executor/pool_parts.h"

/* ------------------------------------------------------------------- workers */

bool tw__sources_empty(tw_pool *pool)
{
	for (struct tw__source *s = tw_load_acquire(&pool->sources); s; s = s->next)
		if (ck_ring_size(&s->ring) > 0)
			return false;
	return true;
}

tw_batch *tw__sources_take(tw_pool *pool)
{
	void *batch;
	for (struct tw__source *s = tw_load_acquire(&pool->sources); s; s = s->next)
		if (ck_ring_dequeue_spmc(&s->ring, s->slots, &batch)) /* E1 */
			return batch;
	return NULL;
}

/* ------------------------------------------------------------------ services */

static int source_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct tw__source *source = (struct tw__source *)self;
	(void)n;
	if (!ck_ring_enqueue_spmc(&source->ring, source->slots, batch)) /* E1 */
		return -EAGAIN;
	ck_pr_fence_memory(); /* E2 */
	tw__pool_call_for_help(source->pool);
	return 0;
}

static const struct tw_executor_ops source_ops = {sizeof source_ops, source_submit};

static struct tw__source *source_new(tw_pool *pool)
{
	struct tw__source *source = calloc(1, sizeof *source);
	ck_ring_buffer_t *slots = calloc(TW__SOURCE_BATCHES, sizeof *slots);
	if (!source || !slots) {
		free(source);
		free(slots);
		return NULL;
	}
	source->executor.ops = &source_ops;
	source->pool = pool;
	source->slots = slots;
	ck_ring_init(&source->ring, TW__SOURCE_BATCHES);
	source->next = tw_load_relaxed(&pool->sources);
	tw_store_release(&pool->sources, source); /* pairs with the workers' loads: it is complete */
	return source;
}

int tw__pool_join(struct tw__source **out, tw_pool *pool, bool owned)
{
	int r = 0;
	if (tw__pool_forked(pool))
		return -EPERM;
	pthread_mutex_lock(&pool->lock);
	struct tw__source *source = tw_load_relaxed(&pool->sources);
	while (source && tw_load_relaxed(&source->in_use))
		source = source->next;
	if (pool->closed)
		r = -ESHUTDOWN;
	else if (!source && !(source = source_new(pool)))
		r = -ENOMEM;
	if (!r) {
		tw_store_relaxed(&source->in_use, true);
		source->owns_pool = owned;
		pool->users++;
		*out = source;
	}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

tw_executor *tw__source_executor(struct tw__source *source)
{
	return &source->executor;
}

static void await_no_look(tw_pool *pool, tw_service *service)
{
	for (unsigned i = 0; i < pool->worker_count; i++) {
		struct tw__worker *worker = &pool->workers[i];
		tw_batch *open;
		while ((open = tw_load_seq_cst(&worker->open)) && tw__owns_batch(service, open)) /* S1 */
			sched_yield();
	}
	for (unsigned i = 0; i < pool->worker_count; i++)
		while (tw_load_seq_cst(&pool->workers[i].looking)) /* S1, S2 */
			sched_yield();
}

void tw__pool_leave(struct tw__source *source, tw_service *service)
{
	if (!source)
		return;
	tw_pool *pool = source->pool;
	bool owned = source->owns_pool;
	if (service) /* else it never came to be */
		await_no_look(pool, service);
	pthread_mutex_lock(&pool->lock);
	tw_store_relaxed(&source->in_use, false);
	pool->users--;
	pthread_mutex_unlock(&pool->lock);
	if (owned)
		tw_pool_destroy(pool);
}

void tw__pool_leave_forked(struct tw__source *source)
{
	if (source && source->owns_pool)
		tw__pool_free(source->pool);
}
