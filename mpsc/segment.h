/*
 * Segments of lanes, from slabs of the system's own pages. A slab is freed as a whole when the last
 * of its segments is. Segments are used and freed first in first out, so slabs come free one after
 * the other; a general allocator gives back only the end of its heap.
 */
#ifndef TW_MPSC_SEGMENT_H
#define TW_MPSC_SEGMENT_H

#include <stddef.h>

#include "mpsc/base/atomics.h"

enum { TW__SEGMENT_ENTRIES = 255 };

/* The meaning is the caller's, but what == 0 is padding. */
struct tw__entry {
	uint64_t what;
	uint64_t value;
};

struct tw__segment {
	/* by the producer, before it publishes the first entry behind it (lane.h, LANE1) */
	struct tw__segment *next;
	struct tw__slab *slab; /* constant */
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
};

/* *slab: the caller's current one, or NULL; the caller's alone. NULL: out of memory. */
struct tw__segment *tw__segment_new(struct tw__slab **slab);

/* Any thread. A system call only for the last of a slab. */
void tw__segment_free(struct tw__segment *segment);

/* The caller takes nothing more from its slab. */
void tw__slab_leave(struct tw__slab *slab);

#endif
