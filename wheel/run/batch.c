/* Batches: submitted by the driver, claimed from entry by entry, returned by the last to finish. */

#include "wheel/run/run.h"

tw_batch *tw__batch_submit(tw_service *service, struct tw__chunk *chunk, bool forced,
			   uint32_t outbox, uint64_t now_ns)
{
	TW_ASSERT_DRIVER(service);
	tw_batch *batch = (tw_batch *)(void *)chunk;
	chunk->holder_count = outbox << TW__BATCH_OUTBOX_SHIFT | (forced ? TW__BATCH_FORCED : 0);
	tw_store_relaxed(tw__batch_word(batch, HOLDER_SERVICE), (uintptr_t)service);
	chunk->holder[HOLDER_SUBMITTED_NS] = now_ns;
	tw_store_relaxed(tw__batch_word(batch, HOLDER_FINISHED), 0);
	tw_store_relaxed(tw__batch_word(batch, HOLDER_GIVEN_BACK), 0);
	tw_add_relaxed(&service->submitted->batches_out, 1);
	tw_store_release(tw__batch_word(batch, HOLDER_NEXT), 0); /* RUN1 */
	return batch;
}

/* The last access: the service may be destroyed now. */
static void one_batch_less(tw_service *service)
{
	tw_add_release(&service->submitted->batches_out, (uint32_t)-1); /* RUN4 */
}

void tw__batch_retract(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	one_batch_less(service);
}

int tw__batch_claim(tw_batch *batch)
{
	_Atomic uint64_t *next = tw__batch_word(batch, HOLDER_NEXT);
	uint64_t count = tw__batch_chunk(batch)->count;
	uint64_t index = tw_load_acquire(next); /* RUN1 */
	if (index < count)
		index = tw_add_acq_rel(next, 1); /* RUN1 */
	return index < count ? (int)index : -1;
}

void tw__batch_prefer(tw_batch *batch, unsigned nth)
{
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	uint64_t next = tw_load_acquire(tw__batch_word(batch, HOLDER_NEXT)); /* RUN1 */
	uint64_t *left = chunk->entries + next, chosen = left[nth];
	TW_ASSERT(next + nth < chunk->count);
	for (; nth; nth--)
		left[nth] = left[nth - 1];
	left[0] = chosen;
}

static void batch_return(tw_service *service, struct tw__chunk *chunk)
{
	struct tw__chunk *first = tw_load_relaxed(&service->submitted->returned);
	do {
		chunk->next = first;
	} while (!tw_cas_weak_release(&service->submitted->returned, &first, chunk)); /* RUN3 */
}

void tw__batch_finish(tw_batch *batch, unsigned n)
{
	TW_ASSERT(n > 0);
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	/* now: after the addition another finisher may return the chunk */
	uint64_t count = chunk->count;
	/* RUN2 */
	uint64_t finished = tw_add_acq_rel(tw__batch_word(batch, HOLDER_FINISHED), n) + n;
	if (finished != count)
		return;
	tw_service *service = tw__batch_service(batch);
	bool given_back = tw_load_relaxed(tw__batch_word(batch, HOLDER_GIVEN_BACK)) != 0;
	batch_return(service, chunk);
	if (tw_unlikely(given_back))
		tw__gate_ring(&service
				   /*
				    * the driver looks at what has returned after arming the bell
				    * (gate.h, GATE3)
				    */
				   ->gate);
	one_batch_less(service);
}

/* ------------------------------------------------------- the inline executor */

/* The driver knows it by its address and needs no batch; submit serves every other caller. */
static int inline_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self;
	while (n-- > 0)
		if (tw__run_one(batch) < 0)
			tw_run_return(batch);
	return 0;
}

static const struct tw_executor_ops inline_ops = {sizeof inline_ops, inline_submit};

tw_executor tw__inline_executor = {&inline_ops};

tw_executor *tw_executor_inline(void)
{
	return &tw__inline_executor;
}
