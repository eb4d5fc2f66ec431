/*
 * The wheel: a hierarchical hashed timing wheel over 8-byte entries (after G. Varghese and T.
 * Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7). A pure data structure: it
 * names no thread, no clock, no shared memory, and it never allocates: chunks come from an arena
 * whose size the owner answers for.
 *
 * Level 0 has a bucket for each tick; each higher one has 64 coarser buckets. A level is two
 * **windows** of half its buckets: the one that `next` is in, and the one after. A bucket of level
 * i + 1 is as wide as a window of level i. An entry goes into the lowest level that accepts its
 * tick. While a window runs, the bucket above that holds the next window is moved down, a part in
 * each tick. Only when it is empty is the next window **opened** to direct entries. So all entries
 * of one tick stand in the order in which they were added (G6), and no tick moves a whole bucket
 * (G12).
 *
 * A bucket is a list of chunks, appended to at the end. An entry's own deadline is not in it, since
 * timers are cancelled and extended without the wheel: the wheel asks a **resolve**, a chunk at a
 * time, whether each entry is due now, dead, or for a later tick.
 *
 * Adding costs a constant; a turn costs what it hands over and moves; bitmaps jump over empty
 * stretches. The wheel cannot find an entry, nor list entries by deadline.
 *
 * Rejected: moving a bucket down in one step (ticks of 10 ms and more with a million timers); one
 * window a level, with the rounds mixed in a bucket (each entry resolved twice, or more).
 */
#ifndef TW_WHEEL_WHEEL_H
#define TW_WHEEL_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpsc/base/depot.h"

enum {
	TW__CHUNK_ENTRIES = 56,
	TW__WHEEL_LEVELS = 10 /* at most: an entry moves down at most nine times */
};

/* What a wheel is made for. */
struct tw__wheel_size {
	uint32_t buckets0;   /* of level 0; power of two, 64 .. 65536 */
	unsigned range_log2; /* all ticks are below 2^range_log2; at most 49 */
};

/* Opaque to the wheel. */
typedef uint64_t tw__wheel_entry;

/* 512 bytes. While it is handed over, its first line is the holder's, from holder_count on. */
struct tw__chunk {
	struct tw__chunk *next;
	uint32_t count;
	uint32_t holder_count;
	uint64_t tick; /* of the bucket it was handed over from */
	uint64_t holder[5];
	tw__wheel_entry entries[TW__CHUNK_ENTRIES];
};

struct tw__chunk_list {
	struct tw__chunk *first, *last;
};

struct tw__bucket {
	struct tw__chunk_list list;
	uint64_t count; /* entries */
};

struct tw__level {
	struct tw__bucket *buckets;
	uint64_t *occupied;    /* a bit for each bucket */
	unsigned shift;        /* log2 of a bucket's width in ticks */
	unsigned window_shift; /* log2 of a window's width in ticks; == the next level's shift */
	uint64_t mask;         /* buckets - 1 */
	/* the last window that takes entries: the current one, or the one after */
	uint64_t open;
	uint64_t entries;
};

/* Chunks whose memory is given back together: 1 << this (depot.h). */
enum { TW__CHUNK_BLOCK_SHIFT = 6 };

enum tw__resolve_for {
	/* the bucket's time has come: due_tick <= its tick hands the entry over */
	TW__RESOLVE_EXPIRE,
	/* it is moved down: due_tick < high puts the entry on the level below */
	TW__RESOLVE_MOVE,
	/* it is looked at ahead of its time: due_tick < high leaves the entry where it is */
	TW__RESOLVE_PRUNE,
	TW__RESOLVE_SWEEP /* only the dead are wanted; a live entry stays where it is */
};

/*
 * A bucket: its level, and its ticks [low, high). What was due on arrival is on TW__LEVEL_LATE,
 * from 0. In a sweep also the pass, which no other way through a bucket has.
 */
struct tw__place {
	unsigned level;
	uint64_t low, high;
	uint64_t pass; /* else 0 */
};

enum { TW__LEVEL_LATE = TW__WHEEL_LEVELS };

#define TW__TICK_DEAD UINT64_MAX

/*
 * Fills due_ticks[i] for entries[i], which are at this place: the tick it is due in, or
 * TW__TICK_DEAD. If that is not before place->high, the entry is added again for it.
 */
typedef void tw__resolve_fn(void *context, enum tw__resolve_for what_for,
			    const struct tw__place *place, const tw__wheel_entry *entries,
			    unsigned n, uint64_t *due_ticks);

struct tw__wheel {
	struct tw__level levels[TW__WHEEL_LEVELS];
	unsigned level_count;
	uint64_t next;          /* the first tick that was not turned through yet */
	uint64_t entries;       /* in all buckets */
	struct tw__bucket late; /* added when their tick was past already */
	tw__resolve_fn *resolve;
	void *resolve_context;

	struct tw__chunk *arena;
	uint32_t arena_chunks;   /* of these, that may be taken; the owner may raise it */
	struct tw__depot chunks; /* the free ones */
	size_t slack;            /* chunks that buckets may need beyond what their entries fill */

	/* How far a sweep has come; sweep_level == level_count: there is none. */
	unsigned sweep_level;
	uint64_t sweep_bucket;
	/* the chunk filled last within that bucket, or NULL: at its start */
	struct tw__chunk *sweep_at;
	uint64_t sweep_pass; /* buckets begun, ever */
};

/* Bytes that tw__wheel_init needs for buckets and bitmaps, zeroed. */
size_t tw__wheel_table_bytes(struct tw__wheel_size size);

/* Chunks that suffice for n entries, whatever their ticks; those that the entries do not fill. */
size_t tw__wheel_chunks_for(struct tw__wheel_size size, uint64_t entries);
size_t tw__wheel_slack(struct tw__wheel_size size);

/* table and depot: tw__wheel_table_bytes, and tw__depot_bytes of the chunks, zeroed. */
void tw__wheel_init(struct tw__wheel *wheel, struct tw__wheel_size size, void *table, void *depot,
		    struct tw__chunk *arena, uint32_t arena_chunks, tw__resolve_fn *resolve,
		    void *resolve_context);

/* Adds an entry for a tick within the range. A past tick is handed over in the next turn. */
void tw__wheel_add(struct tw__wheel *wheel, uint64_t tick, tw__wheel_entry entry);

/* Prefetches the end of the bucket that an entry of this tick would be added to. Only a hint. */
void tw__wheel_fetch(const struct tw__wheel *wheel, uint64_t tick);

/* The level that an entry of this tick is added to; whether one bucket of it has both ticks. */
unsigned tw__wheel_level_for(const struct tw__wheel *wheel, uint64_t tick);
bool tw__wheel_is_one_bucket(const struct tw__wheel *wheel, unsigned level, uint64_t tick,
			     uint64_t other);

/*
 * Turns the wheel through tick `to`, and appends chunks of due entries to *due, in order of ticks.
 * Entries whose due tick is later are added again, the dead are dropped. True: it has stopped on
 * the way, since each tick has chunks of its own. Call it again when these are handed on.
 */
bool tw__wheel_turn(struct tw__wheel *wheel, uint64_t to, struct tw__chunk_list *due);

/* Moves a part of each next coarse bucket down. True: one call a tick is too few. */
bool tw__wheel_move_nearer(struct tw__wheel *wheel);

/*
 * The first tick in which there is something to do; UINT64_MAX: none. Drops dead entries on the way
 * to the first live one, about `budget` at most: then the next tick, to look again.
 */
uint64_t tw__wheel_plan(struct tw__wheel *wheel, unsigned budget);

/* Starts a sweep of all buckets if there is none; sweeps about `budget` entries. False: ended. */
void tw__wheel_sweep_start(struct tw__wheel *wheel);
bool tw__wheel_sweep(struct tw__wheel *wheel, uint64_t budget);

static inline bool tw__wheel_sweeping(const struct tw__wheel *wheel)
{
	return wheel->sweep_level < wheel->level_count;
}

/* Chunks that can still be had. */
static inline size_t tw__wheel_chunks_left(const struct tw__wheel *wheel)
{
	return wheel->arena_chunks - tw__depot_used(&wheel->chunks);
}

/* Takes a free chunk, empty; gives one back. */
struct tw__chunk *tw__chunk_get(struct tw__wheel *wheel);
void tw__chunk_put(struct tw__wheel *wheel, struct tw__chunk *chunk);

static inline void tw__chunk_append(struct tw__chunk_list *list, struct tw__chunk *chunk)
{
	chunk->next = NULL;
	if (list->last)
		list->last->next = chunk;
	else
		list->first = chunk;
	list->last = chunk;
}

static inline struct tw__chunk *tw__chunk_pop(struct tw__chunk_list *list)
{
	struct tw__chunk *chunk = list->first;
	if (chunk) {
		list->first = chunk->next;
		if (!list->first)
			list->last = NULL;
	}
	return chunk;
}

/*
 * Drops the dead of a list of chunks and packs the others together, in order: about *budget entries
 * from *at, the chunk filled last, or from the first if that is NULL. False: it has reached the
 * end. Adds what it has dropped to *dropped.
 */
bool tw__wheel_pack(struct tw__wheel *wheel, struct tw__chunk_list *list, struct tw__chunk **at,
		    tw__resolve_fn *resolve, const struct tw__place *place, uint64_t *budget,
		    uint64_t *dropped);

/* Takes every chunk with entries out, nearest buckets first; the wheel is empty then. For close. */
void tw__wheel_empty(struct tw__wheel *wheel, struct tw__chunk_list *out);

/* Checks counts, bitmaps, lists and windows. NULL, or what is wrong. */
const char *tw__wheel_check(const struct tw__wheel *wheel);

/*
 * ------------------------------------------------------- between the wheel's halves
 * wheel.c goes forward (add, turn); cascade.c looks ahead (plan, cascade, sweep, check, empty),
 * and calls wheel.c.
 */

/* Takes the first chunk off a bucket's list; the caller corrects the counts (tw__level_remove). */
struct tw__chunk *tw__bucket_pop(struct tw__wheel *wheel, struct tw__bucket *bucket);

/*
 * Resolves a chunk. What is due within the place stays, in order, with the first due ticks; what is
 * due later is added again. Returns how many stay.
 */
unsigned tw__wheel_split(struct tw__wheel *wheel, struct tw__chunk *chunk,
			 enum tw__resolve_for what_for, const struct tw__place *place,
			 uint64_t *due_ticks);

/* Moves entries from a chunk's front to the end of the one before it, as many as fit. */
void tw__chunk_fill(struct tw__chunk *to, struct tw__chunk *from);

/* n entries have left a bucket of the level. */
void tw__level_remove(struct tw__wheel *wheel, struct tw__level *level, struct tw__bucket *bucket,
		      uint64_t n);

/*
 * The first occupied bucket, by absolute number, in [from, end); end - from is at most the level's
 * size.
 */
bool tw__level_next(const struct tw__level *level, uint64_t from, uint64_t end, uint64_t *found);

/* A level's bucket by its absolute number. */
static inline struct tw__place tw__place_of(const struct tw__wheel *wheel,
					    const struct tw__level *level, uint64_t number)
{
	return (struct tw__place){.level = (unsigned)(level - wheel->levels),
				  .low = number << level->shift,
				  .high = (number + 1) << level->shift};
}

/* Moves about `quota` entries from the bucket above `window` of `lower` down to it. */
void tw__wheel_move(struct tw__wheel *wheel, struct tw__level *lower, uint64_t window,
		    uint64_t quota);

bool tw__level_complete_above(const struct tw__level *level, uint64_t window);

/* Opens each level's next window if nothing is in the way. */
void tw__wheel_open_windows(struct tw__wheel *wheel);

#endif
