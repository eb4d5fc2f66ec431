/*
 * Waiters: threads and functions in one line, first in first out. The object's lock guards the
 * line. Its owner takes waiters out, and grants them what they wait for after the unlock.
 *
 * Pairing table
 *   WAITER1  granted: store-release (grant) -> load-acquire (the thread that sleeps): what came
 *       before the grant. Nothing of the waiter is touched after the store, since it is on the
 *       thread's stack. The wake-up goes to its address alone, which may be another's by then: a
 *       wake-up too many.
 */
#ifndef TW_EXECUTOR_WAITER_H
#define TW_EXECUTOR_WAITER_H

#include "executor/base/item.h"

struct tw__waiter {
	struct tw__in_line place; /* in the line; or in a list of those to be granted */
	struct tw__work *work;    /* a function's; NULL: a thread */
	uint32_t n;               /* what it waits for, a number */
	_Atomic uint32_t granted; /* a thread's: WAITER1 */
};

static inline struct tw__waiter *tw__waiter_of(tw__link link)
{
	return TW__OWNER(struct tw__waiter, place, link);
}

/* The first in line, or NULL. */
static inline struct tw__waiter *tw__waiter_first(const struct tw__line *line)
{
	return line->first ? tw__waiter_of(line->first) : NULL;
}

static inline void tw__waiter_join(struct tw__line *line, struct tw__waiter *waiter)
{
	tw__line_append(line, tw__in_line_link(&waiter->place));
}

static inline void tw__waiter_leave(struct tw__line *line, struct tw__waiter *waiter)
{
	tw__line_leave(line, &waiter->place);
}

/* Tells whether it is in line; false: it was chosen, or never joined. */
static inline bool tw__waiter_in_line(const struct tw__waiter *waiter)
{
	return waiter->place.where != NULL;
}

/* Leaves the line for a list of those to be granted, in order: it is in no line then. */
static inline void tw__waiter_choose(struct tw__line *line, struct tw__waiter *waiter,
				     struct tw__line *chosen)
{
	tw__waiter_leave(line, waiter);
	tw__line_append(chosen, tw__in_line_link(&waiter->place));
	waiter->place.where = NULL;
}

/* Wakes a thread that was chosen, which then may be gone. Without the lock. */
void tw__waiter_grant(struct tw__waiter *waiter);

/* The thread sleeps until it is granted. False: the deadline has passed. Without the lock. */
bool tw__waiter_sleep(struct tw__waiter *waiter, uint64_t deadline_ns);

#endif
