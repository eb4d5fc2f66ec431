/*
 * Jobs: work that may block, submitted by limiters. At most max_workers - 1 workers run jobs at a
 * time. So one worker is left for callbacks that end the jobs, and for timers, however many
 * limiters share the pool.
 *
 * Jobs have a queue and a face of their own. A worker counts itself in `jobs.inside` before it
 * takes a job. At the limit it takes none, and jobs that wait there wake no worker: the next worker
 * that leaves a job looks for work.
 *
 * The model is test/model/jobs.pml.
 *
 * Pairing table
 *   JOBS1  push of a job (seq_cst), then load of jobs.inside (seq_cst: the submitter, or a worker
 *       that looks), against jobs.inside lowered (seq_cst), then a look at the queue (the worker
 *       that has left a job, or has found none): one of the two sees the other. Without it a job
 *       waits although fewer workers than the limit are inside jobs.
 */
#include "executor/pool/jobs.h"

bool tw__jobs_at_limit(tw_pool *pool)
{
	return tw_load_seq_cst(&pool->jobs.inside) + 1 >= pool->max_workers; /* JOBS1 */
}

/* False: the limit of workers inside jobs is reached. */
static bool pool_enter(tw_pool *pool)
{
	uint32_t inside = tw_load_seq_cst(&pool->jobs.inside); /* JOBS1 */
	do {
		if (inside + 1 >= pool->max_workers)
			return false;
	} while (!tw_cas_seq_cst(&pool->jobs.inside, &inside, inside + 1));
	return true;
}

void tw__jobs_leave(tw_pool *pool)
{
	tw_sub_seq_cst(&pool->jobs.inside, 1); /* JOBS1 */
}

bool tw__jobs_wait(tw_pool *pool)
{
	return !tw__work_queue_empty(&pool->jobs.queue) && !tw__jobs_at_limit(pool);
}

struct tw__work *tw__jobs_take(tw_pool *pool)
{
	while (!tw__work_queue_empty(&pool->jobs.queue) && pool_enter(pool)) {
		struct tw__work *work = tw__work_queue_pop(&pool->jobs.queue);
		if (work)
			return work;
		tw__jobs_leave(
		    /* another took it; a worker that met the limit relies on the next look */
		    pool);
	}
	return NULL;
}

tw_executor *tw__pool_jobs_face(tw_executor *executor)
{
	tw_pool *pool = tw__pool_of(executor);
	return pool ? &pool->jobs.face : executor;
}
