/*
 * Memory: small blocks, and address space for arrays that grow with use.
 *
 * A **region** is a range of addresses for its owner, in which nothing is mapped at first. The
 * owner's arrays are **ranges** of it, which are mapped in steps as they grow. So an array never
 * moves, and address space and core dumps are as large as what is used.
 *
 * Regions are in an area that no system and no other allocator uses, as the arenas of Go and of
 * mimalloc are: each near the begin of a random **place** of it, which a mapped page marks as
 * taken. The kernel is asked without force: if something else is there, it gives other addresses.
 *
 * Where it gives none of these (a small address space, a sanitizer), or sixteen places are taken,
 * or the region is too large for a place, the region is mapped as a whole, and left out of core
 * dumps until it is used.
 *
 * Rejected: mapping the whole region without access, which counts as address space (`ulimit -v`);
 * arrays of pointers to steps, which cost each schedule and cancel a load.
 */
#ifndef TW_MPSC_RESERVE_H
#define TW_MPSC_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "mpsc/base/atomics.h"

/*
 * Blocks of the process's allocator (tw_set_allocator), malloc's by default. Nothing else in the
 * library calls malloc and free.
 */
void *tw__alloc(size_t bytes);
void *tw__alloc_zeroed(size_t n, size_t bytes);
void *tw__alloc_aligned(size_t alignment, size_t bytes);
void tw__free(void *block);

/* Maps zeroed memory whose pages come when they are first touched. NULL: the system refuses. */
void *tw__map(size_t bytes);

/* Ranges begin at multiples of this, so that they may have huge pages. */
enum { TW__RANGE_ALIGNMENT = 2 << 20 };

/* An array. One thread at a time maps; one at a time, perhaps another, says what is used. */
struct tw__range {
	/* Set by the owner before the region is opened. */
	size_t bytes;            /* it may grow to this, or a little more */
	bool leaves_out;         /* what is mapped is left out of core dumps until tw__range_use */
	bool prefers_huge_pages; /* where it is large */

	bool is_whole; /* of a region that is */
	char *at;
	_Atomic size_t mapped; /* bytes that may be touched; store-release, any thread may read */
	size_t dumped;         /* of these, bytes that a core dump has, if others are left out */
};

struct tw__region {
	char *at; /* NULL: not open */
	size_t bytes;
	char *mark;    /* where its place begins: it is taken */
	bool is_whole; /* it was mapped as a whole */
	struct tw__range *ranges;
	int range_count;
};

/* Sets aside addresses for n ranges, which stay where they are. 0 or -ENOMEM. */
int tw__region_open(struct tw__region *region, struct tw__range *ranges, int n);

/* Unmaps the ranges too. Nothing is done if the region is not open. */
void tw__region_close(struct tw__region *region);

/* Maps the first `bytes` of the range, zeroed, or more. 0 or -ENOMEM. */
int tw__range_map(struct tw__range *range, size_t bytes);

/* The first `bytes` are used, or about to be: core dumps have them. They are mapped. */
void tw__range_use(struct tw__range *range, size_t bytes);

#endif
