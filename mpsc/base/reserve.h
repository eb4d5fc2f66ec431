/*
 * Memory: small blocks, and address space for arrays that grow with use.
 *
 * A **region** is a range of addresses, in which nothing is mapped at first. The owner's arrays are
 * **ranges** of it, mapped in steps as they grow. So an array never moves, and address space is
 * taken by what is used.
 *
 * Regions are in an area that no system and no other allocator uses, each near the begin of a
 * random **place** of it, which a mapped page marks as taken. The kernel is asked without force.
 * Where it gives none of these (a small address space, a sanitizer), or the region is too large for
 * a place, the kernel chooses, and the region is held by a mapping without access.
 *
 * Rejected: that everywhere, since it counts as address space (`ulimit -v`); arrays of pointers to
 * steps, which cost each schedule and cancel a load.
 */
#ifndef TW_MPSC_RESERVE_H
#define TW_MPSC_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "mpsc/base/atomics.h"

/*
 * Blocks of the process's allocator (tw_set_allocator). Nothing else in the library calls malloc.
 */
void *tw__alloc(size_t bytes);
void *tw__alloc_zeroed(size_t n, size_t bytes);
void *tw__alloc_aligned(size_t alignment, size_t bytes);
void tw__free(void *block);

/* Maps zeroed memory. Returns NULL if the system refuses. */
void *tw__map(size_t bytes);

/* Ranges begin at multiples of this: huge pages. */
enum { TW__RANGE_ALIGNMENT = 2 << 20 };

/* One thread at a time maps; one, perhaps another, says what is used. */
struct tw__range {
	/* Set by the owner before the region is opened. */
	size_t bytes;            /* it may grow to this */
	bool prefers_huge_pages; /* where it is large */

	int flags; /* of its mappings */
	char *at;
	_Atomic size_t mapped; /* bytes that may be touched; store-release, read by any thread */
};

struct tw__region {
	char *at; /* NULL: not open */
	size_t bytes;
	/* held without access: where its place begins, or all of a region without a place */
	char *held;
	size_t held_bytes;
	bool is_whole; /* it has no place */
	struct tw__range *ranges;
	int range_count;
};

/* Finds addresses for the ranges and maps nothing. 0 or -ENOMEM. */
int tw__region_open(struct tw__region *region, struct tw__range *ranges, int n);

/* Unmaps the ranges. A region that is not open is left alone. */
void tw__region_close(struct tw__region *region);

/* Maps at least the first `bytes`, zeroed. 0 or -ENOMEM. */
int tw__range_map(struct tw__range *range, size_t bytes);

#endif
