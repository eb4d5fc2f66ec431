/*
 * A strand: an object (base/object.h) whose runner runs one thing at a time, in order. Shared by
 * strand.c (creation, executor, end), submit.c (submit, cancel, close) and run.c (the runner).
 *
 * All that comes goes into the inbox, without the lock: tasks, delayed ones when they are due,
 * batches of timers, and work of objects that have the strand as their executor. From there it
 * moves to the line, under the lock: by the runner, when the line is empty, and by calls that need
 * to see what is there. The runner takes one thing out of the line, and runs it without the lock.
 * A batch stays first in line until its last run has begun.
 *
 * The order is that of the pushes. Delayed tasks come tick by tick, within a tick as they were
 * scheduled.
 *
 * Once the strand is closed, tasks and timers in the line end as cancelled, by the thread that
 * closes or by the runner, whichever takes them out. Work of others is left to the runner.
 *
 * A series whose next timer is refused stays in the line (UNTIMED). The runner then comes again in
 * the next tick, and tries again, or runs the series if it is due. What is submitted meanwhile
 * waits for that tick, too.
 */
#ifndef TW_EXECUTOR_STRAND_H
#define TW_EXECUTOR_STRAND_H

#include "executor/base/item.h"
#include "tickwheel/strand.h"

/* Steps of a long call between which others get the lock. */
enum { TW__STRAND_PIECE = 64 };

/* All under the object's lock, if not said otherwise. */
struct tw_strand {
	_Alignas(TW__CACHE_LINE) tw_executor executor; /* first */
	struct tw__object object;
	struct tw__line line;
	uint32_t queued;    /* tasks in the line */
	uint16_t head_left; /* tickets left of the batch at the head, if some are used up */
	bool running;       /* a task or a timer */
	uint64_t runs, cancelled;
};

_Static_assert(offsetof(struct tw_strand, object) == sizeof(tw_executor), "tw__object_ops");
_Static_assert(sizeof(struct tw_strand) == 3 * TW__CACHE_LINE, "three cache lines");
_Static_assert(offsetof(struct tw_strand, object.lock) % TW__CACHE_LINE == 0,
	       "the runner's line is not the one that all push to");

static inline tw_strand *tw__strand_of(struct tw__object *object)
{
	return TW__OWNER(tw_strand, object, object);
}

/* The table of its tasks. */
static inline struct tw__nodes *tw__strand_tasks(tw_strand *strand)
{
	return &tw__living_of(tw__object_service(&strand->object))->items;
}

static inline bool tw__strand_closed(const tw_strand *strand)
{
	return tw_load_relaxed(&strand->object.closed);
}

/* Of a batch, or of work. */
static inline uint32_t tw__batch_tickets(tw_batch *batch)
{
	return ((struct tw__work *)(void *)batch)->tickets;
}

#endif
