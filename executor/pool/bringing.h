/* Threads inside a submit, for which the end of a pool waits. The pairs are in pool.c. */
#ifndef TW_EXECUTOR_POOL_BRINGING_H
#define TW_EXECUTOR_POOL_BRINGING_H

#include "executor/pool/parts.h"

/*
 * As soon as a task or work is queued it may run. The thread that learns of that may close and free
 * the pool, while the submitter still looks for a sleeper to wake. So close waits for submitters.
 * Each shows the pool in its run record; one without memory for a record is counted. A worker of
 * the pool need not show itself: close joins it.
 */
struct tw__bringer {
	struct tw__run_record *record;
	bool counted;
};

static inline struct tw__bringer tw__bringing_begins(tw_pool *pool)
{
	struct tw__run_record *record = tw__my_run_record;
	if (tw__this_worker && tw__this_worker->pool == pool)
		return (struct tw__bringer){NULL, false};
	if (tw_unlikely(!record))
		record = tw__run_record_make();
	if (tw_likely(record != NULL))
		tw_store_relaxed(&record->bringing, pool); /* POOLEND2 */
	else
		tw_add_relaxed(&pool->bringing, 1); /* POOLEND1 */
	return (struct tw__bringer){record, !record};
}

/* The last look at the pool. */
static inline void tw__bringing_ends(tw_pool *pool, struct tw__bringer bringer)
{
	if (tw_likely(bringer.record != NULL))
		tw_store_release(&bringer.record->bringing, NULL); /* POOLEND2 */
	else if (bringer.counted)
		tw_add_release(&pool->bringing, (uint32_t)-1); /* POOLEND1 */
}

/* Returns when no thread is inside a submit. */
static inline void tw__pool_await_bringers(tw_pool *pool)
{
	while (tw_load_acquire(&pool->bringing)) /* POOLEND1 */
		sched_yield();
	for (struct tw__run_record *record = tw_load_acquire(&tw__run_records); record;
	     record = tw_load_acquire(&record->next))
		while (tw_load_acquire(&record->bringing) == pool) /* POOLEND2 */
			sched_yield();
}

#endif
