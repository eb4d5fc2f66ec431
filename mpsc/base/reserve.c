#include "mpsc/base/reserve.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/process.h"
#include "mpsc/base/random.h"

/*
 * The area: below where mappings begin on x86-64 and arm64, above the heaps of allocators that
 * choose their addresses.
 */
#define AREA_AT (UINT64_C(32) << 40)
#define PLACE_BYTES (UINT64_C(10) << 30)
#define REGION_BYTES (UINT64_C(8) << 30) /* at most */
enum { PLACES = 1024, PLACE_TRIES = 16, MARK_BYTES = 4096 };

/* Steps of the first MiB are small, for services with few timers; later ones end at huge pages. */
enum { SMALL_BYTES = 1 << 20, SMALL_STEP = 16 << 10 };

/* ----------------------------------------------------------------------- blocks */

/* The allocator's own address is stored before the block, since it knows no alignment. */
static void *own_block(const struct tw_allocator *own, size_t alignment, size_t n, size_t bytes,
		       bool zeroed)
{
	size_t head = alignment + sizeof(void *);
	if (n > (SIZE_MAX - head) / bytes)
		return NULL;
	char *given = zeroed ? own->calloc(own->user, 1, n * bytes + head)
			     : own->malloc(own->user, n * bytes + head);
	if (!given)
		return NULL;
	void **block = (void *)(((uintptr_t)given + head) & ~(alignment - 1));
	block[-1] = given;
	return block;
}

void *tw__alloc(size_t bytes)
{
	const struct tw_allocator *own = tw__allocator();
	return own ? own_block(own, alignof(max_align_t), 1, bytes, false) : malloc(bytes);
}

void *tw__alloc_zeroed(size_t n, size_t bytes)
{
	const struct tw_allocator *own = tw__allocator();
	return own ? own_block(own, alignof(max_align_t), n, bytes, true) : calloc(n, bytes);
}

void *tw__alloc_aligned(size_t alignment, size_t bytes)
{
	const struct tw_allocator *own = tw__allocator();
	return own ? own_block(own, alignment, 1, bytes, false) : aligned_alloc(alignment, bytes);
}

void tw__free(void *block)
{
	const struct tw_allocator *own = tw__allocator();
	if (!own)
		free(block);
	else if (block)
		own->free(own->user, ((void **)block)[-1]);
}

/* ----------------------------------------------------------------------- regions */

enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

void *tw__map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static size_t round_up(size_t bytes, size_t step)
{
	return (bytes + step - 1) & ~(step - 1);
}

/*
 * A random place, and a random address within it. The mark stays mapped, so no two regions have one
 * place. It shows that the kernel gives such addresses; a range that meets a mapping ends there.
 */
static bool find_place(struct tw__region *region)
{
	if (sizeof(void *) < sizeof(uint64_t) || region->bytes > REGION_BYTES)
		return false;
	for (int tries = 0; tries < PLACE_TRIES; tries++) {
		uint64_t bits = tw__random_bits(),
			 steps = (PLACE_BYTES - REGION_BYTES) / TW__RANGE_ALIGNMENT - 1;
		char *mark = (char *)(uintptr_t)(AREA_AT + bits % PLACES * PLACE_BYTES);
		region->at = mark + (1 + (bits >> 32) % steps) * TW__RANGE_ALIGNMENT;
		region->held = mmap(mark, MARK_BYTES, PROT_NONE, FLAGS, -1, 0);
		region->held_bytes = MARK_BYTES;
		if (region->held == mark)
			return true;
		if (region->held != MAP_FAILED)
			munmap(region->held, MARK_BYTES);
	}
	return false;
}

tw_cold int tw__region_open(struct tw__region *region, struct tw__range *ranges, int n)
{
	*region = (struct tw__region){.ranges = ranges, .range_count = n};
	for (int i = 0; i < n; i++) {
		ranges[i].bytes = round_up(ranges[i].bytes, TW__RANGE_ALIGNMENT);
		region->bytes += ranges[i].bytes;
	}
	if (!find_place(region)) {
		region->is_whole = true;
		region->held_bytes = region->bytes;
		region->held = mmap(NULL, region->bytes, PROT_NONE, FLAGS, -1, 0);
		region->at = region->held == MAP_FAILED ? NULL : region->held;
		if (!region->at)
			return -ENOMEM;
	}
	char *at = region->at;
	for (struct tw__range *range = ranges; range < ranges + n; range++) {
		range->at = at;
		range->flags = region->is_whole ? FLAGS | MAP_FIXED : FLAGS;
		at += range->bytes;
	}
	return 0;
}

void tw__region_close(struct tw__region *region)
{
	if (!region->at)
		return;
	for (int i = 0; i < region->range_count; i++) {
		struct tw__range *range = &region->ranges[i];
		size_t mapped = tw_load_relaxed(&range->mapped);
		if (mapped && !region->is_whole)
			munmap(range->at, mapped);
		*range = (struct tw__range){0};
	}
	munmap(region->held, region->held_bytes);
	region->at = NULL;
}

/* ----------------------------------------------------------------------- ranges */

int tw__range_map(struct tw__range *range, size_t bytes)
{
	size_t mapped = tw_load_relaxed(&range->mapped);
	if (bytes <= mapped)
		return 0;
	TW_ASSERT(bytes <= range->bytes);
	size_t page = (size_t)getpagesize(), small = page > SMALL_STEP ? page : SMALL_STEP,
	       end = round_up(bytes, bytes > SMALL_BYTES ? TW__RANGE_ALIGNMENT : small),
	       more = end - mapped;
	char *at = range->at + mapped;
	void *got = mmap(at, more, PROT_READ | PROT_WRITE, range->flags, -1, 0);
	if (got == MAP_FAILED)
		return -ENOMEM;
	if (got != at) {
		munmap(got, more);
		return -ENOMEM;
	}
	size_t from = mapped < SMALL_BYTES ? SMALL_BYTES : mapped;
	if (range->prefers_huge_pages && end > from) /* it may fail: small pages do */
		madvise(range->at + from, end - from, MADV_HUGEPAGE);
	tw_store_release(&range->mapped, end);
	return 0;
}
