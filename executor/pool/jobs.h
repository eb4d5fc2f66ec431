/* Work that may block, kept apart from other work. */
#ifndef TW_EXECUTOR_POOL_JOBS_H
#define TW_EXECUTOR_POOL_JOBS_H

#include "executor/pool/parts.h"

/*
 * Takes a job, and counts the calling worker as inside it until tw__jobs_leave. NULL: none, or the
 * limit is reached.
 */
struct tw__work *tw__jobs_take(tw_pool *pool);
void tw__jobs_leave(tw_pool *pool);

/* Tells whether the limit of workers inside jobs is reached. */
bool tw__jobs_at_limit(tw_pool *pool);

/* Tells whether jobs wait that a worker may take. */
bool tw__jobs_wait(tw_pool *pool);

/*
 * The executor for work that may block: of a pool's public face the one that keeps a worker free of
 * jobs; any other executor itself.
 */
tw_executor *tw__pool_jobs_face(tw_executor *executor);

#endif
