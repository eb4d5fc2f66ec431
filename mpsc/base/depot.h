/*
 * The free indices of an array, in blocks whose memory can go back to the system.
 *
 * Indices from `fresh` on were never used; below it each has a bit: free. The lowest are taken
 * first, so that whole blocks fall free. Memory is given back after a storm (wheel/driver/sweep.c);
 * used again, it is zeroed or as it was.
 *
 * The owner has a lock, or is one thread. Any thread may read the counts.
 */
#ifndef TW_MPSC_DEPOT_H
#define TW_MPSC_DEPOT_H

#include <stddef.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

struct tw__depot_block {
	uint16_t used; /* indices that are taken */
	bool purged;   /* given back, and not taken from since */
};

/* An array with an item for each index. */
struct tw__depot_array {
	void *at;
	size_t item_bytes;
};

enum { TW__DEPOT_ARRAYS = 8 };

struct tw__depot {
	uint64_t *bits; /* by index: free */
	uint64_t *room; /* by block: it has free ones */
	struct tw__depot_block *blocks;
	unsigned block_shift; /* log2 of its indices; at least 6 */
	uint32_t low;         /* words of `room` below it are 0 */
	_Atomic uint32_t fresh;
	_Atomic uint32_t free;   /* free indices below `fresh` */
	_Atomic uint32_t purged; /* blocks */
	_Atomic uint32_t idle;   /* blocks */
	uint32_t last_idle;

	/* Set by the owner after init. */
	struct tw__depot_array arrays[TW__DEPOT_ARRAYS];
	uint32_t kept;                                           /* indices whose memory stays */
	void (*leaves)(struct tw__depot *depot, uint32_t block); /* before it is given back */
};

/* The bytes, zeroed, that init needs for `count` indices. */
size_t tw__depot_bytes(uint32_t count, unsigned block_shift);

/* `first` is the lowest index that is ever taken; it is below 64. */
void tw__depot_init(struct tw__depot *depot, uint32_t count, unsigned block_shift, uint32_t first,
		    void *memory);

/* Takes up to `want` indices; fresh ones only below `limit`. How many. */
uint32_t tw__depot_take(struct tw__depot *depot, uint32_t want, uint32_t limit, uint32_t *out);

void tw__depot_put(struct tw__depot *depot, const uint32_t *indices, uint32_t n);

static inline bool tw__depot_is_idle(const struct tw__depot *depot, uint32_t block)
{
	return block < tw_load_relaxed(&depot->fresh) >> depot->block_shift &&
	       !depot->blocks[block].used && !depot->blocks[block].purged;
}

/* Some memory can go back; more is held than `times` times what is enough. */
bool tw__depot_has_surplus(const struct tw__depot *depot, unsigned times);

/* Gives the memory of some idle blocks back while there is a surplus. True: there is more. */
bool tw__depot_purge(struct tw__depot *depot);

static inline uint64_t tw__depot_used(const struct tw__depot *depot)
{
	return (uint64_t)tw_load_relaxed(&depot->fresh) - tw_load_relaxed(&depot->free);
}

/* Indices that have been used and not given back since. */
static inline uint64_t tw__depot_held(const struct tw__depot *depot)
{
	uint64_t fresh = tw_load_relaxed(&depot->fresh),
		 given = (uint64_t)tw_load_relaxed(&depot->purged) << depot->block_shift;
	return fresh > given ? fresh - given : 0;
}

#endif
