#include "mpsc/segment.h"

#include <sys/mman.h>

#include "mpsc/base/assert.h"

enum { SLAB_SEGMENTS = 16 };

/* In a page of its own, before the segments. */
struct tw__slab {
	_Atomic uint32_t holders; /* segments in use, and the thread that takes from it */
	uint32_t used;            /* by that thread */
};

enum { HEAD_BYTES = 4096, SLAB_BYTES = HEAD_BYTES + SLAB_SEGMENTS * sizeof(struct tw__segment) };

static struct tw__slab *slab_new(void)
{
	void *at =
	    mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	struct tw__slab *slab = at;
	tw_store_relaxed(&slab->holders, 1); /* nobody else knows it */
	return slab;
}

/* acq_rel on both sides: all that others did with their segments comes before the unmapping. */
void tw__slab_leave(struct tw__slab *slab)
{
	TW_ASSERT(!slab || tw_load_relaxed(&slab->holders) > 0);
	if (slab && tw_add_acq_rel(&slab->holders, (uint32_t)-1) == 1)
		munmap(slab, SLAB_BYTES);
}

struct tw__segment *tw__segment_new(struct tw__slab **slab)
{
	if (!*slab || (*slab)->used == SLAB_SEGMENTS) {
		struct tw__slab *fresh = slab_new();
		if (!fresh)
			return NULL;
		tw__slab_leave(*slab);
		*slab = fresh;
	}
	TW_ASSERT((*slab)->used < SLAB_SEGMENTS && tw_load_relaxed(&(*slab)->holders) > 0);
	struct tw__segment *segments = (struct tw__segment *)(void *)((char *)*slab + HEAD_BYTES);
	struct tw__segment *segment = &segments[(*slab)->used++];
	tw_add_relaxed(&(*slab)->holders, 1); /* its own hold keeps the slab there meanwhile */
	segment->slab = *slab;
	segment->next = NULL;
	return segment;
}

void tw__segment_free(struct tw__segment *segment)
{
	if (segment)
		tw__slab_leave(segment->slab);
}
