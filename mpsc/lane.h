/*
 * Lane: a queue from one producing thread to the one driver, bounded, in order.
 *
 * A chain of fixed segments. The producer writes entries into the last one and publishes a count;
 * the driver copies them out from the first. A push is two plain stores and one release store:
 * wait-free. Segments that the driver has left behind are reused by the producer in place, without
 * a word between the two (the node cache of D. Vyukov's unbounded SPSC queue). All lanes of a
 * service together are the MPSC queue (queue.h): no two producers share a written line.
 *
 * Not good at: many entries from very many threads (the driver looks at each lane in every poll).
 * Fine, since a server has tens of threads, not thousands.
 *
 * A full last segment most of which is dead is packed in place (pack in lane.c), and the push goes
 * on in it: timers that are soon cancelled stay in the producer's cache, and the driver has nothing
 * to read. That is policy: the protocol is that of a compaction.
 *
 * Progress: put and publish are wait-free. take and compact hold the lane's try-lock. Neither waits
 * for the other without a bound: each spins a moment. A driver that does not get the lock leaves
 * the lane for this poll and may not park. A producer then reports the lane full.
 *
 * Positions count entries from the lane's birth. Invariants:
 *   LANE6  head <= tail; entries in [head, tail) are unread; those in front of tail are written and
 *       never change, unless the producer drops dead ones (LANE7).
 *   LANE7  tail falls only where the producer drops dead entries: of all that is unread, at the
 *       bound (compact), or of the last segment, when that is full (pack). Both hold the lock; the
 *       driver believes tail only while it holds it. An entry is dropped only if it is dead, so a
 *       thread that saw a higher tail and finds nothing has missed nothing.
 *   LANE8  where head is a multiple of the segment's size, head_segment is the segment that was
 *       just read out.
 *   LANE9  segments from `first` up to, but not including, head_segment belong to the producer
 *       again.
 *
 * Pairing table
 *   LANE1  tail: store-release (publish, compact) -> load-acquire (take, unread): publishes the
 *       entries and the `next` links. Without it the driver reads entries before they are written.
 *   LANE2  head_segment: store-release (take) -> load-acquire (obtain): the driver's reads of a
 *       segment come before the producer's new writes to it. Without it an unread entry is
 *       overwritten.
 *   LANE3  lock: exchange-acquire (take, compact) -> store-release (unlock): head, head_segment,
 *       tail as the other side left them. Without it a compaction and a take work on the same
 *       entries.
 *   LANE5  spare_lock: exchange-acquire (reclaim, purge) -> store-release: `first`, when the driver
 *       frees what a storm has left behind. Both only try: a producer that finds it taken takes a
 *       new segment, a driver leaves it for another tick.
 *   wanted: relaxed, a courtesy: without it a producer at its bound, compacting again and again,
 *   could keep the lock from the driver. Packing ignores it.
 *   LANE4  head: store-release (take) -> load-acquire (backlog): only a count, for the bound; LANE2
 *       guards the memory.
 *
 * Rejected: a ring (its memory is touched in full even when short, and its size is its bound);
 * taking single segments (a lock for each; the copy-out of 4 KiB costs 0.3 ns an entry and lets a
 * compaction own the lane as a whole).
 */
#ifndef TW_MPSC_LANE_H
#define TW_MPSC_LANE_H

#include <stdalign.h>

#include "mpsc/base/assert.h"
#include "mpsc/segment.h"

/*
 * What a full lane may do with an unread entry: keep it; drop it; or, if it is a base that entries
 * behind it count from, drop it when another base follows before any entry that is kept.
 */
enum tw__entry_use { TW__ENTRY_LIVE, TW__ENTRY_DEAD, TW__ENTRY_BASE };

/* Writes the uses of n entries. Of padding (what == 0) it may say anything. */
typedef void tw__entry_use_fn(void *context, const struct tw__entry *entries, unsigned n,
			      unsigned char *uses);

struct tw__lane {
	/* Producer's line. */
	alignas(TW__CACHE_LINE) _Atomic uint64_t tail; /* entries published; read by the driver */
	/* the position at which the last segment is full */
	uint64_t end;
	/* entry p of the last segment is at origin + p * sizeof(struct tw__entry) */
	uintptr_t origin;
	uint64_t unpublished;        /* entries written beyond tail; 0 outside of a push */
	struct tw__segment *last;    /* the segment written to */
	struct tw__segment *first;   /* the oldest one (LANE9); under spare_lock */
	struct tw__segment *reserve; /* kept for pushes that must not fail; NULL: used up */
	struct tw__slab *slab;       /* where new segments come from */
	/* ever chained, less those it freed; read by the purge and by statistics */
	_Atomic uint32_t segments;
	uint32_t bound; /* unread entries that user pushes may reach */

	/* Driver's line. */
	alignas(TW__CACHE_LINE) _Atomic uint64_t head;
	_Atomic(struct tw__segment *) head_segment;
	_Atomic uint32_t lock;
	/* the driver found the lock taken: no compaction before its next poll */
	_Atomic uint32_t wanted;
	_Atomic uint32_t spare_lock; /* over first, where the driver purges */
	_Atomic uint32_t purged;     /* segments that the driver has freed */

	tw__entry_use_fn *use;
	void *use_context;
	struct tw__lane *next; /* in the queue's list; set once */
	struct tw__tie *tie;   /* the owning thread's, under the registry's lock; NULL: no owner */
};

/* False: out of memory, nothing is left behind. */
bool tw__lane_init(struct tw__lane *lane, uint32_t bound, tw__entry_use_fn *use, void *use_context);
void tw__lane_fini(struct tw__lane *lane);

/* ------------------------------------------------------------ producer's side */

/* The position of the next entry. */
static inline uint64_t tw__lane_written(const struct tw__lane *lane)
{
	return tw_load_relaxed(&lane->tail) + lane->unpublished;
}

/* Where the entry of a position in the last segment is, or would be: one past it at its end. */
static inline struct tw__entry *tw__lane_entry(const struct tw__lane *lane, uint64_t position)
{
	return (struct tw__entry *)(lane->origin + position * sizeof(struct tw__entry));
}

/* Entries that the last segment has room for. */
static inline uint64_t tw__lane_room(const struct tw__lane *lane)
{
	return lane->end - tw__lane_written(lane);
}

/*
 * Makes room for n entries (n <= 8). 0; -EAGAIN: the bound is reached, and dropping the dead did
 * not help; -ENOMEM. Nothing is published or lost. *grew tells whether a new segment was begun.
 */
int tw__lane_grow(struct tw__lane *lane, unsigned n, bool *grew);

/* Room that cannot fail, for what must not be lost: from the reserve; bound or not. */
void tw__lane_grow_reserved(struct tw__lane *lane, unsigned n);

/* Sees to it that the reserve is there: true if it is. */
bool tw__lane_refill_reserve(struct tw__lane *lane);

static inline bool tw__lane_has_room(const struct tw__lane *lane, unsigned n)
{
	return tw__lane_room(lane) >= n;
}

/*
 * How far ahead of the entries their lines are fetched. Segments are reused, so the next lines are
 * still the driver's, who read them; the stores to them would wait for another processor, and the
 * next compare-and-swap of the thread for the stores.
 */
enum { TW__LANE_FETCH_AHEAD = 1024 };

/* Needs room. Not visible before tw__lane_publish. */
static inline void tw__lane_put(struct tw__lane *lane, uint64_t what, uint64_t value)
{
	TW_ASSERT(tw__lane_has_room(lane, 1));
	struct tw__entry *at = tw__lane_entry(lane, tw__lane_written(lane));
	tw_prefetch_write((const void *)((uintptr_t)at + TW__LANE_FETCH_AHEAD));
	at->what = what;
	at->value = value;
	lane->unpublished++;
}

/* Whether tw__lane_push has room; nothing is unpublished. */
static inline bool tw__lane_can_push(const struct tw__lane *lane)
{
	return tw_load_relaxed(&lane->tail) != lane->end;
}

/* Puts one entry and publishes it. Needs room, and nothing unpublished. */
static inline void tw__lane_push(struct tw__lane *lane, uint64_t what, uint64_t value)
{
	TW_ASSERT(tw__lane_can_push(lane) && !lane->unpublished);
	uint64_t tail = tw_load_relaxed(&lane->tail);
	struct tw__entry *at = tw__lane_entry(lane, tail);
	tw_prefetch_write((const void *)((uintptr_t)at + TW__LANE_FETCH_AHEAD));
	at->what = what;
	at->value = value;
	tw_store_release(&lane->tail, tail + 1); /* LANE1: pairs with take */
}

static inline void tw__lane_publish(struct tw__lane *lane)
{
	tw_store_release(&lane->tail, tw__lane_written(lane)); /* LANE1: pairs with take */
	lane->unpublished = 0;
}

/*
 * The same in the single total order of sequentially consistent operations, where there is no
 * membarrier.
 */
static inline void tw__lane_publish_seq_cst(struct tw__lane *lane)
{
	tw_store_seq_cst(&lane->tail, tw__lane_written(lane)); /* LANE1; gate's GATE2 */
	lane->unpublished = 0;
}

/* ------------------------------------------------------------- driver's side */

/*
 * Copies out the next entries: out has room for TW__SEGMENT_ENTRIES. Their number; 0: none; -1: the
 * producer is compacting: look again later, and do not park.
 */
int tw__lane_take(struct tw__lane *lane, struct tw__entry *out);

/* Segments that the lane holds, the reserve left out. */
static inline uint32_t tw__lane_segments(const struct tw__lane *lane)
{
	/* a count, no more */
	return tw_load_relaxed(&lane->segments) - tw_load_relaxed(&lane->purged);
}

/* Those it needs for what is unread, and a few. */
uint32_t tw__lane_needs(const struct tw__lane *lane);

/*
 * Driver only: frees up to `most` segments that it has left behind and the producer has not taken
 * back, above what the lane needs. How many. It waits for nobody.
 */
unsigned tw__lane_purge(struct tw__lane *lane, unsigned most);

/* Whether there may be entries to take, now. */
static inline bool tw__lane_unread(const struct tw__lane *lane)
{
	/* LANE1; head is the driver's own */
	return tw_load_acquire(&lane->tail) != tw_load_relaxed(&lane->head);
}

/* The same, as the other half of tw__lane_publish_seq_cst. */
static inline bool tw__lane_unread_seq_cst(const struct tw__lane *lane)
{
	return tw_load_seq_cst(&lane->tail) != tw_load_relaxed(&lane->head);
}

#endif
