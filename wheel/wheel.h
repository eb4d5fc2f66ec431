/*
 * A hierarchical hashed timing wheel over 8-byte entries (G. Varghese, T. Lauck: Hashed and
 * Hierarchical Timing Wheels, SOSP 1987, scheme 7). It knows no thread and no clock, and never
 * allocates: the owner answers for the size of its arena.
 *
 * Level 0 has a bucket for each tick; each higher one has 64 coarser buckets. A level is two
 * **windows** of half its buckets: the one that `next` is in, and the one after. A bucket of level
 * i + 1 is as wide as a window of level i. An entry goes into the lowest level that accepts its
 * tick. While a window runs, the bucket above that holds the next window is moved down, a part in
 * each tick; when it is empty, the next window is **opened** to direct entries. So the entries of a
 * tick stand in the order in which they were added (G6), and no tick moves a whole bucket (G12).
 *
 * A bucket is a list of chunks. Deadlines are not in it, since timers are cancelled and extended
 * without the wheel: the wheel asks a **resolve**, a chunk at a time, whether each entry is due
 * now, dead, or for a later tick.
 *
 * Adding costs a constant; a turn costs what it hands over and moves. The wheel cannot find an
 * entry.
 *
 * Rejected: moving a bucket in one step (10 ms and more with a million timers); one window a level,
 * with the rounds mixed in a bucket (each entry is resolved twice, or more).
 */
#ifndef TW_WHEEL_WHEEL_H
#define TW_WHEEL_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpsc/base/depot.h"

enum {
	TW__CHUNK_ENTRIES = 56,
	TW__WHEEL_LEVELS = 10 /* at most */
};

struct tw__wheel_size {
	uint32_t buckets0;   /* of level 0; power of two, 64 .. 65536 */
	unsigned range_log2; /* all ticks are below 2^range_log2; at most 49 */
};

/* Opaque to the wheel. */
typedef uint64_t tw__wheel_entry;

/*
 * 512 bytes. While it is handed over, `next` and, from holder_count on, the first line are the
 * holder's.
 */
struct tw__chunk {
	struct tw__chunk *next;
	uint32_t count;
	uint32_t holder_count;
	uint64_t tick; /* of its bucket */
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
	uint64_t *occupied;    /* a bit a bucket */
	unsigned shift;        /* log2 of a bucket's ticks */
	unsigned window_shift; /* log2 of a window's ticks; the next level's shift */
	uint64_t mask;         /* buckets - 1 */
	/* the last window that takes entries: the current or the next one */
	uint64_t open;
	uint64_t entries;
};

/* Chunks whose memory is given back together: 1 << this. */
enum { TW__CHUNK_BLOCK_SHIFT = 6 };

enum tw__resolve_for {
	/* its time has come: due_tick < high hands the entry over */
	TW__RESOLVE_EXPIRE,
	/* it is moved down: due_tick < high puts the entry on the level below */
	TW__RESOLVE_MOVE,
	/* a plan, or a sweep: due_tick < high leaves the entry where it is */
	TW__RESOLVE_PRUNE
};

/* A bucket: its level and its ticks [low, high). TW__LEVEL_LATE: due on arrival. */
struct tw__place {
	unsigned level;
	uint64_t low, high;
	uint64_t pass; /* of a sweep; else 0 */
};

enum { TW__LEVEL_LATE = TW__WHEEL_LEVELS };

#define TW__TICK_DEAD UINT64_MAX

/*
 * Fills due_ticks[i] for entries[i], which are at this place: the tick it is due in, or
 * TW__TICK_DEAD. An entry due at place->high or later is added again.
 */
typedef void tw__resolve_fn(void *context, enum tw__resolve_for what_for,
			    const struct tw__place *place, const tw__wheel_entry *entries,
			    unsigned n, uint64_t *due_ticks);

struct tw__wheel {
	struct tw__level levels[TW__WHEEL_LEVELS];
	unsigned level_count;
	uint64_t next;          /* the first tick not turned through yet */
	uint64_t entries;       /* in all buckets */
	uint64_t filed;         /* chunks there */
	struct tw__bucket late; /* added for a past tick */
	tw__resolve_fn *resolve;
	void *resolve_context;

	struct tw__chunk *arena;
	uint32_t arena_chunks;   /* that may be taken; the owner may raise it */
	struct tw__depot chunks; /* the free ones */
	size_t slack;            /* chunks beyond what their entries fill */

	/* A sweep's place; sweep_level == level_count: there is none. */
	unsigned sweep_level;
	uint64_t sweep_bucket;
	/* the chunk filled last in that bucket; NULL: at its start */
	struct tw__chunk *sweep_at;
	uint64_t sweep_pass; /* buckets begun */
};

/* Bytes of the buckets and bitmaps. */
size_t tw__wheel_table_bytes(struct tw__wheel_size size);

/* Chunks that suffice for n entries of any ticks; those that the entries do not fill. */
size_t tw__wheel_chunks_for(struct tw__wheel_size size, uint64_t entries);
size_t tw__wheel_slack(struct tw__wheel_size size);

/* table, depot: tw__wheel_table_bytes and tw__depot_bytes of the chunks, zeroed. */
void tw__wheel_init(struct tw__wheel *wheel, struct tw__wheel_size size, void *table, void *depot,
		    struct tw__chunk *arena, uint32_t arena_chunks, tw__resolve_fn *resolve,
		    void *resolve_context);

/* Adds an entry. One for a past tick is handed over in the next turn. */
void tw__wheel_add(struct tw__wheel *wheel, uint64_t tick, tw__wheel_entry entry);

/* Prefetches the end of the bucket that an entry of this tick goes to. */
void tw__wheel_fetch(const struct tw__wheel *wheel, uint64_t tick);

/* The level for a tick; whether one bucket of it has both ticks. */
unsigned tw__wheel_level_for(const struct tw__wheel *wheel, uint64_t tick);
bool tw__wheel_is_one_bucket(const struct tw__wheel *wheel, unsigned level, uint64_t tick,
			     uint64_t other);

/*
 * Turns the wheel through tick `to`, and appends chunks of due entries to *due, in order of ticks.
 * True: it has stopped on the way. Call it again when these are handed on.
 */
bool tw__wheel_turn(struct tw__wheel *wheel, uint64_t to, struct tw__chunk_list *due);

/* Moves a part of each next coarse bucket down. True: it must be called more than once a tick. */
bool tw__wheel_move_nearer(struct tw__wheel *wheel);

/*
 * The first tick with something to do; UINT64_MAX: none. Drops dead entries on the way to the first
 * live one, about `budget` at most: then the answer is the next tick.
 */
uint64_t tw__wheel_plan(struct tw__wheel *wheel, unsigned budget);

/* Starts a sweep of all buckets; sweeps about `budget` entries. False: ended. */
void tw__wheel_sweep_start(struct tw__wheel *wheel);
bool tw__wheel_sweep(struct tw__wheel *wheel, uint64_t budget);

static inline bool tw__wheel_sweeping(const struct tw__wheel *wheel)
{
	return wheel->sweep_level < wheel->level_count;
}

static inline size_t tw__wheel_chunks_left(const struct tw__wheel *wheel)
{
	return wheel->arena_chunks - tw__depot_used(&wheel->chunks);
}

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
 * Drops a list's dead entries, adds those due after `place` to the wheel, and packs the others, in
 * order: about *budget entries from *at, the chunk filled last (NULL: the first). Adds to *gone.
 * False: the end is reached.
 */
bool tw__wheel_pack(struct tw__wheel *wheel, struct tw__chunk_list *list, struct tw__chunk **at,
		    tw__resolve_fn *resolve, const struct tw__place *place, uint64_t *budget,
		    uint64_t *gone);

/* Takes a chunk out of the nearest bucket; NULL: the wheel is empty. For close. */
struct tw__chunk *tw__wheel_pop(struct tw__wheel *wheel);

/* Checks counts, bitmaps, lists and windows. Returns NULL, or what is wrong. */
const char *tw__wheel_check(const struct tw__wheel *wheel);

/*
 * ------------------------------------------------------- between the wheel's halves
 * wheel.c goes forward (add, turn); cascade.c looks ahead, and calls wheel.c.
 */

/* Takes the first chunk of a bucket; the caller corrects the counts (tw__level_remove). */
struct tw__chunk *tw__bucket_pop(struct tw__wheel *wheel, struct tw__bucket *bucket);

/*
 * Resolves a chunk. What is due within the place stays, in order, with its due ticks; what is due
 * later is added again. How many stay.
 */
unsigned tw__wheel_split(struct tw__wheel *wheel, tw__resolve_fn *resolve, struct tw__chunk *chunk,
			 enum tw__resolve_for what_for, const struct tw__place *place,
			 uint64_t *due_ticks);

/* Fills a chunk from the front of the next one. */
void tw__chunk_fill(struct tw__chunk *to, struct tw__chunk *from);

void tw__level_remove(struct tw__wheel *wheel, struct tw__level *level, struct tw__bucket *bucket,
		      uint64_t n);

/* The first occupied bucket, by absolute number, in [from, end), at most the level's size. */
bool tw__level_next(const struct tw__level *level, uint64_t from, uint64_t end, uint64_t *found);

/* The place of a level's bucket, by its absolute number. */
static inline struct tw__place tw__place_of(const struct tw__wheel *wheel,
					    const struct tw__level *level, uint64_t number)
{
	return (struct tw__place){.level = (unsigned)(level - wheel->levels),
				  .low = number << level->shift,
				  .high = (number + 1) << level->shift};
}

/* Moves about `quota` entries down to `window` of `lower`. */
void tw__wheel_move(struct tw__wheel *wheel, struct tw__level *lower, uint64_t window,
		    uint64_t quota);

bool tw__level_complete_above(const struct tw__level *level, uint64_t window);

/* Opens the next window of each level where nothing is in the way. */
void tw__wheel_open_windows(struct tw__wheel *wheel);

#endif
