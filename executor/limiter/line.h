/* A priority level: a queue of jobs, or a heap. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_LINE_H
#define TW_EXECUTOR_LIMITER_LINE_H

#include "executor/limiter/internal.h"

/* A job of that priority can be added from now on. 0 or -ENOMEM. */
int tw__line_reserve(struct tw__line *line, int32_t priority);

/* The last of its priority; its since_ns is set. */
void tw__line_add(struct tw__line *line, struct tw__job *job);
void tw__line_remove(struct tw__line *line, struct tw__job *job);

/* The job that is next; it stays in line. NULL: none. */
struct tw__job *tw__line_first(struct tw__line *line);

void tw__line_free(struct tw__line *line);

#endif
