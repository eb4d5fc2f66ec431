/*
 * Lane: a queue from one producing thread to the one driver, bounded, in order.
 *
 * A chain of fixed segments. The producer writes entries into the last one and publishes a count;
 * the driver copies them out from the first. A push is wait-free. The producer reuses segments that
 * the driver has left behind (after D. Vyukov's unbounded SPSC queue).
 *
 * When many unread entries are dead, the producer **packs** the lane: it copies the living into
 * fresh segments, and puts them in place of the old ones with one compare-and-swap. If the driver
 * has taken something meanwhile, the copy is dropped. So the driver waits for nobody; a take tries
 * again after a packing that came first. A lane that is being taken from grows.
 *
 * Positions count entries from the lane's birth. Invariants:
 *   LANE6  head <= tail; both only rise. Entries in [head, tail) are unread; they never change. A
 *       packing raises head by the number of entries that it drops: what it keeps ends at tail.
 *   LANE7  An entry is dropped only if it is dead. So a thread that reads a head, and then a tail
 *       that is equal, has missed nothing alive, also if that head is the one of a packing in
 *       progress.
 *   LANE8  Where head is at the end of the front's segment, that segment was just read out.
 *   LANE9  Segments from `first` up to, but not including, the front's belong to the producer.
 *   LANE10  soonest is not above the key of any unread entry. It rises only when all entries before
 *       soonest_from have been read. A packing makes what it keeps older than that.
 *
 * Pairing table
 *   LANE1  tail: store-release (publish) -> load-acquire (take, unread): the entries, the `next`
 *       links and `soonest`.
 *   LANE2  the front's segment: store-release (take) -> load-acquire (take_spare): the driver has
 *       read a segment before the producer writes to it again.
 *   LANE3  turn: compare-and-swap acq_rel (take begins) -> store-release (take ends) ->
 *       load-acquire, then compare-and-swap acq_rel (pack): a packing replaces only the front that
 *       it has copied from, while no take is in progress. Without it entries are taken twice, or an
 *       old segment is read while it is written.
 *   LANE4  the front's members: store-release (take, pack) -> load-acquire (pack, head): a packing
 *       that has read a front while a take changed it finds another turn.
 *   LANE5  spare_lock: exchange-acquire (take_spare, pack, purge) -> store-release: `first`. All
 *       only try: a producer takes a new segment instead, or does not pack. A packing holds it, so
 *       that no segment that it reads is freed.
 *
 * Rejected: a ring (its size is its bound); packing in place under a lock (a preempted producer
 * would hold up due timers).
 */
#ifndef TW_MPSC_LANE_H
#define TW_MPSC_LANE_H

#include <stdalign.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

enum { TW__SEGMENT_ENTRIES = 255 };

/* The meaning is the caller's, but what == 0 is padding. */
struct tw__entry {
	uint64_t what;
	uint64_t value;
};

struct tw__segment {
	struct tw__segment *next; /* before the first entry behind it is published (LANE1) */
	struct tw__slab *slab;    /* constant */
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
};

/*
 * Appends what is to be kept of n entries, in order, to out, which has `kept` already: not the
 * dead, nor padding (what == 0); of bases in a row, the last. How many out has then.
 */
typedef unsigned tw__entry_pack_fn(void *context, const struct tw__entry *entries, unsigned n,
				   struct tw__entry *out, unsigned kept);

/* Where the driver goes on. */
struct tw__front {
	_Atomic uint64_t head;  /* position of the first unread entry */
	_Atomic uint64_t begin; /* of the first entry in the segment */
	_Atomic(struct tw__segment *) segment;
};

/* Bits of a turn, beside a count of changes. */
enum { TW__LANE_TAKING = 1, TW__LANE_FRONT = 2, TW__LANE_TURN = 4 };

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
	_Atomic uint32_t segments;   /* that it holds, with the reserve */
	/*
	 * Keys are the caller's, smaller is sooner. soonest: LANE10. soonest_new: the same of the
	 * entries put since soonest_from.
	 */
	_Atomic uint64_t soonest;
	uint64_t soonest_new, soonest_from;
	/* for the layer above: entries up to here may be due immediately (loop_fd.c) */
	_Atomic uint64_t urgent;
	uint32_t bound;   /* unread entries that user pushes may reach */
	uint64_t pack_at; /* it is looked at when it has this many unread entries */

	/* Driver's line. */
	/* the producer changes which front counts; the driver marks a take */
	alignas(TW__CACHE_LINE) _Atomic uint64_t turn;
	struct tw__front fronts[2];
	_Atomic uint32_t spare_lock; /* over first (LANE5) */

	tw__entry_pack_fn *pack;
	void *pack_context;
	struct tw__lane *next; /* in the queue's list; set once */
	struct tw__tie *tie;   /* the owning thread's, under the registry's lock; NULL: no owner */
};

/* False: out of memory, nothing is left behind. */
bool tw__lane_init(struct tw__lane *lane, uint32_t bound, tw__entry_pack_fn *pack,
		   void *pack_context);
void tw__lane_fini(struct tw__lane *lane);

/* ------------------------------------------------------------ producer's side */

static inline uint64_t tw__lane_written(const struct tw__lane *lane)
{
	return tw_load_relaxed(&lane->tail) + lane->unpublished;
}

/* Also one past the last segment's end. */
static inline struct tw__entry *tw__lane_entry(const struct tw__lane *lane, uint64_t position)
{
	return (struct tw__entry *)(lane->origin + position * sizeof(struct tw__entry));
}

/*
 * Makes room for n entries (n <= 8). 0; -EAGAIN: the bound is reached, and dropping the dead did
 * not help; -ENOMEM. *grew, if 0: much was added that lives, so a driver that sleeps is to read it.
 */
int tw__lane_grow(struct tw__lane *lane, unsigned n, bool *grew);

/* Room that cannot fail: from the reserve, beyond the bound. */
void tw__lane_grow_reserved(struct tw__lane *lane, unsigned n);

/* True: the reserve is there. */
bool tw__lane_refill_reserve(struct tw__lane *lane);

static inline bool tw__lane_has_room(const struct tw__lane *lane, unsigned n)
{
	return lane->end - tw__lane_written(lane) >= n;
}

/* Bytes ahead of an entry that are fetched for writing: reused lines are in the driver's cache. */
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

/* Before the publication of an entry with this key (LANE10). */
static inline void tw__lane_bring(struct tw__lane *lane, uint64_t key)
{
	if (tw_likely(key >= lane->soonest_new))
		return;
	lane->soonest_new = key;
	if (key < tw_load_relaxed(&lane->soonest))
		tw_store_relaxed(&lane->soonest, key); /* LANE1: published with the tail */
}

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

/* Where there is no membarrier. */
static inline void tw__lane_publish_seq_cst(struct tw__lane *lane)
{
	tw_store_seq_cst(&lane->tail, tw__lane_written(lane)); /* LANE1; gate's GATE2 */
	lane->unpublished = 0;
}

/* ------------------------------------------------------------- driver's side */

static inline const struct tw__front *tw__lane_front(const struct tw__lane *lane)
{
	uint64_t turn = tw_load_acquire(&lane->turn); /* LANE3 */
	return &lane->fronts[(turn & TW__LANE_FRONT) != 0];
}

/* To be read before the tail (LANE7). */
static inline uint64_t tw__lane_head(const struct tw__lane *lane)
{
	return tw_load_acquire(&tw__lane_front(lane)->head); /* LANE4 */
}

/* What is published. In the total order: the other half of tw__lane_publish_seq_cst. */
static inline uint64_t tw__lane_tail(const struct tw__lane *lane)
{
	return tw_load_seq_cst(&lane->tail); /* LANE1; gate's GATE2 */
}

/*
 * Copies out the next entries before `end`, a tail that was loaded: out has room for
 * TW__SEGMENT_ENTRIES. Their number; 0: none. A packing that comes first moves the living ones
 * beyond `end`, so the caller compares how far the head has moved with what it was given.
 */
unsigned tw__lane_take(struct tw__lane *lane, uint64_t end, struct tw__entry *out);

static inline uint32_t tw__lane_segments(const struct tw__lane *lane)
{
	return tw_load_relaxed(&lane->segments) - 1; /* the reserve */
}

/* The segments that its unread entries need, and a few. */
uint32_t tw__lane_needs(const struct tw__lane *lane);

/*
 * Frees up to `most` segments that neither side uses, above what the lane needs. Returns how many.
 */
unsigned tw__lane_purge(struct tw__lane *lane, unsigned most);

/* Unread entries, now. Any thread. */
static inline uint64_t tw__lane_backlog(const struct tw__lane *lane)
{
	uint64_t head = tw__lane_head(lane);
	return tw_load_acquire(&lane->tail) - head; /* LANE1, LANE7 */
}

static inline bool tw__lane_unread(const struct tw__lane *lane)
{
	uint64_t head = tw__lane_head(lane);
	return tw__lane_tail(lane) != head; /* LANE7 */
}

#endif
