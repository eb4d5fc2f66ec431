/* The table of groups, which each member reaches. The rules: wheel/timer/group.h. */
#ifndef TW_WHEEL_GROUPS_H
#define TW_WHEEL_GROUPS_H

#include <stdalign.h>

#include "mpsc/base/futex.h"
#include "tickwheel/group.h"

#include "wheel/slot/slots.h"

enum { TW__GROUP_INDEX_BITS = 24 };
#define TW__GROUP_INDEX_MASK ((UINT32_C(1) << TW__GROUP_INDEX_BITS) - 1)

/* Members are named by their slots; 0: none. */
struct tw__group {
	/* of all but the atomic members; a leaf: nothing is called under it */
	alignas(TW__CACHE_LINE) _Atomic uint32_t lock;
	_Atomic uint32_t wanted;            /* threads that wait for the lock */
	uint32_t first, last;               /* members, in the order in which they entered */
	uint32_t ending_first, ending_last; /* those whose releases a cancel is about to call */
	uint32_t members;                   /* in both lists */
	uint32_t serial;                    /* moves on with each cancel; never set back */
	_Atomic uint64_t handle;            /* of the group that lives here, or lived here last */
	_Atomic uint32_t running;           /* callbacks and releases of members under way */
	uint32_t waiters;                   /* threads in tw_group_cancel_wait */
	uint32_t next_free;
	bool closed;        /* no member enters any more */
	_Atomic bool dead;  /* nobody's: the handle is void */
	uint8_t completion; /* enum tw__completion_state */
};

/*
 * NONE -> GIVEN (close_then) -> DUE (the group is empty; the work is queued) -> OVER (the work has
 * come back). A close of the service makes a DUE one CALLED, and calls it.
 */
enum tw__completion_state {
	TW__COMPLETION_NONE,
	TW__COMPLETION_GIVEN,
	TW__COMPLETION_DUE,
	TW__COMPLETION_CALLED,
	TW__COMPLETION_OVER
};

struct tw__completion;

/* The groups of a service. */
struct tw__groups {
	/* NULL until the first group; mapped up to `fresh` */
	_Atomic(struct tw__group *) table;
	_Atomic uint32_t fresh; /* the first index never used; 0 is none */
	/* by index of the group */
	struct tw__completion *at_end;

	_Atomic uint32_t lock; /* of what follows, and `fresh` */
	uint32_t free;         /* first vacant index */
	uint32_t end;
	struct tw__region region;
	struct tw__range ranges[2]; /* table, at_end */
};

static inline struct tw__group *tw__group_at(struct tw__groups *groups, uint32_t index)
{
	TW_ASSERT(index > 0 && index < groups->end);
	/* acquire: the index may come from a record */
	return &tw_load_acquire(&groups->table)[index];
}

/* ------------------------------------------------------------------- the lock */

static inline void tw__group_lock(struct tw__group *group)
{
	if (tw_likely(tw__tiny_try_lock(&group->lock)))
		return;
	tw_add_relaxed(&group->wanted, 1);
	tw__tiny_lock(&group->lock);
	tw_sub_relaxed(&group->wanted, 1);
}

static inline void tw__group_unlock(struct tw__group *group)
{
	tw__tiny_unlock(&group->lock);
}

#endif
