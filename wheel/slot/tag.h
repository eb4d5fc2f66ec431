/*
 * Tags: which group a timer belongs to, and whether that group was cancelled since. The table of
 * groups is here, because a thread that claims, cancels or moves a member compares its tag with the
 * group's word. wheel/group/group.h has the rules.
 */
#ifndef TW_WHEEL_TAG_H
#define TW_WHEEL_TAG_H

#include <pthread.h>
#include <stdalign.h>

#include "mpsc/base/spinlock.h"
#include "tickwheel/group.h"

#include "wheel/slot/slots.h"

struct tw__local;

enum { TW__GROUP_INDEX_BITS = 24, TW__GROUP_CLOSED = 1 << 23, TW__GROUP_DEAD = 1 << 22 };
#define TW__GROUP_INDEX_MASK ((UINT32_C(1) << TW__GROUP_INDEX_BITS) - 1)
#define TW__GROUP_RUNNING_MASK ((UINT64_C(1) << 22) - 1)
#define TW__GROUP_SERIAL_ONE (UINT64_C(1) << TW__GROUP_INDEX_BITS)

struct tw__group {
	alignas(TW__CACHE_LINE) _Atomic uint64_t word;
	_Atomic uint64_t handle; /* of the group that lives here now, or lived here last (GROUP7) */
	_Atomic uint32_t queued; /* 1: on the stack, or in a batch (GROUP4) */
	/* on the stack, and in the driver's list: its owner's who raised `queued` */
	uint32_t next;
	/* written under the lock; NULL: nobody keeps members' extension records */
	_Atomic(struct tw__local *) bias_owner;

	_Atomic uint32_t lock; /* of the rest; 0: free. Held for some stores */
	/* members by index of their extension records: tags never fall; 0: none */
	uint32_t first, last;
	uint32_t members;         /* in that list, cached ones too */
	_Atomic uint32_t waiters; /* threads in tw_group_cancel_wait (GROUP9) */
	uint32_t next_free;
	/* another thread than its bias owner has cancelled it since the last reap (GROUP8) */
	_Atomic bool remote;
	bool vacant; /* dead and empty: on the free list, or about to be put there */
	/* enum tw__completion_state; written under the lock (GROUP10) */
	_Atomic uint8_t completion;
};

enum tw__completion_state { TW__COMPLETION_NONE, TW__COMPLETION_PENDING, TW__COMPLETION_TAKEN };

/*
 * What a group calls when its last member has ended; in an array beside the groups, touched by
 * those that have one.
 */
struct tw__completion {
	tw_fn *fn;
	void *arg;
};

/*
 * Extension records that a thread keeps, of members that it has ended: a stack; if it is full, the
 * lowest leaves its list. Written by the thread alone, and read by statistics.
 */
enum { TW__CACHED_MEMBERS = 8 };

struct tw__cached_members {
	_Atomic uint64_t
	    items[TW__CACHED_MEMBERS]; /* index of the group | index of the extension record */
	_Atomic uint32_t count;
};

static inline uint32_t tw__cached_group(uint64_t item)
{
	return item >> 32;
}

/* The groups of a service. */
struct tw__groups {
	/* NULL until the first group; mapped up to `fresh` */
	_Atomic(struct tw__group *) table;
	_Atomic uint32_t fresh; /* the first index never used; 0 is none */
	_Atomic uint32_t stack; /* groups that wait for their reap, or 0 (GROUP5) */
	uint32_t waiting;       /* the driver's: taken from the stack */
	_Atomic uint32_t
	    /* pending or being called; TW__COMPLETIONS_CLOSED: no more are accepted (GROUP11) */
	    completions;
	/* by index of the group; mapped with the table */
	struct tw__completion *at_end;

	pthread_mutex_t lock; /* of what follows, and of the birth of groups */
	uint32_t free;
	uint32_t end;
	struct tw__region region; /* of the two arrays, mapped as groups are born */
	struct tw__range of_table, of_at_end;
};

#define TW__COMPLETIONS_CLOSED (UINT32_C(1) << 31)

/* ----------------------------------------------------------- staleness (GROUP1) */

static inline bool tw__tag_is_stale(const struct tw__groups *groups, uint64_t tag)
{
	if (tw_likely(!tag))
		return false;
	/*
	 * Acquire, and a look at it: an extension record read before its timer is known to be meant
	 * may be another's.
	 */
	const struct tw__group *table = tw_load_acquire(&groups->table);
	return table && (tw_load_acquire(&table[tag & TW__GROUP_INDEX_MASK].word) ^ tag) >>
			    TW__GROUP_INDEX_BITS;
}

static inline struct tw__group *tw__group_at(struct tw__groups *groups, uint32_t index)
{
	TW_ASSERT(index > 0 && index < groups->end);
	/*
	 * Acquire, for who has the index from an extension record that was published by a timer's
	 * word, not by create.
	 */
	return &tw_load_acquire(&groups->table)[index];
}

/* ------------------------------------------------------------------- the lock */

/* Held for a few stores, and taken twice for each member that is not cached. */
static inline void tw__group_lock(struct tw__group *group)
{
	tw__tiny_lock(&group->lock);
}

static inline void tw__group_unlock(struct tw__group *group)
{
	tw__tiny_unlock(&group->lock);
}

/* The driver's: whether some are left, or have come since. Seq_cst (GROUP5). */
static inline bool tw__groups_waiting(const struct tw__groups *groups)
{
	return groups->waiting || tw_load_seq_cst(&groups->stack);
}

#endif
