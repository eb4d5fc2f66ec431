#include "mpsc/base/depot.h"

#include <sys/mman.h>

enum { BLOCKS_A_CALL = 4 /* are purged */ };

static uint32_t block_count(uint32_t count, unsigned block_shift)
{
	return (count >> block_shift) + 1;
}

static size_t bits_bytes(uint32_t count, unsigned block_shift)
{
	return (size_t)block_count(count, block_shift) << block_shift >> 3;
}

size_t tw__depot_bytes(uint32_t count, unsigned block_shift)
{
	return bits_bytes(count, block_shift) +
	       block_count(count, block_shift) * sizeof(struct tw__depot_block);
}

void tw__depot_init(struct tw__depot *depot, uint32_t count, unsigned block_shift, uint32_t first,
		    void *memory)
{
	TW_ASSERT(block_shift >= 6 && block_shift < 16);
	*depot = (struct tw__depot){.bits = memory, .block_shift = block_shift};
	depot->blocks = (void *)((char *)memory + bits_bytes(count, block_shift));
	tw_store_relaxed(&depot->fresh, first);
}

/* The owner alone writes the counts. */
static void count(_Atomic uint32_t *counter, uint32_t change)
{
	tw_store_relaxed(counter, tw_load_relaxed(counter) + change);
}

/* It may have none, or only fresh ones. */
static uint32_t take_from(struct tw__depot *depot, uint32_t index, uint32_t want, uint32_t *out)
{
	struct tw__depot_block *block = &depot->blocks[index];
	uint32_t words = 1u << (depot->block_shift - 6), w = index * words, n = 0;
	if (block->used >> depot->block_shift)
		return 0;
	for (uint32_t end = w + words; w < end && n < want; w++)
		for (; depot->bits[w] && n < want; depot->bits[w] &= depot->bits[w] - 1)
			out[n++] = w * 64 + (uint32_t)__builtin_ctzll(depot->bits[w]);
	if (n == 0)
		return 0;
	if (tw__depot_is_idle(depot, index))
		count(&depot->idle, -1u);
	block->used += (uint16_t)n;
	if (tw_unlikely(block->purged))
		count(&depot->purged, -1u);
	block->purged = false;
	return n;
}

uint32_t tw__depot_take(struct tw__depot *depot, uint32_t want, uint32_t limit, uint32_t *out)
{
	uint32_t n = 0, fresh = tw_load_relaxed(&depot->fresh);
	while (n < want && tw_load_relaxed(&depot->free) > n) {
		TW_ASSERT(depot->low <= fresh >> depot->block_shift);
		n += take_from(depot, depot->low, want - n, out + n);
		depot->low += n < want;
	}
	count(&depot->free, -n);
	for (; n < want && fresh < limit; n++) {
		depot->blocks[fresh >> depot->block_shift].used++;
		out[n] = fresh++;
	}
	tw_store_relaxed(&depot->fresh, fresh);
	return n;
}

void tw__depot_put(struct tw__depot *depot, const uint32_t *indices, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t index = indices[i], block = index >> depot->block_shift;
		uint64_t bit = UINT64_C(1) << index % 64;
		TW_ASSERT(index < tw_load_relaxed(&depot->fresh));
		TW_ASSERT(!(depot->bits[index / 64] & bit) && depot->blocks[block].used > 0);
		depot->bits[index / 64] |= bit;
		depot->low = block < depot->low ? block : depot->low;
		depot->blocks[block].used--;
		if (tw__depot_is_idle(depot, block))
			count(&depot->idle, 1);
	}
	count(&depot->free, n);
}

bool tw__depot_has_surplus(const struct tw__depot *depot, unsigned times)
{
	uint64_t used = tw__depot_used(depot);
	return tw_load_relaxed(&depot->idle) &&
	       tw__depot_held(depot) > times * (used + used / 2 + depot->kept);
}

/* From the top: low blocks are taken from first. */
tw_cold bool tw__depot_purge(struct tw__depot *depot)
{
	uint32_t block = tw_load_relaxed(&depot->fresh) >> depot->block_shift;
	for (int n = 0; block-- > 0 && n < BLOCKS_A_CALL && tw__depot_has_surplus(depot, 1);) {
		if (!tw__depot_is_idle(depot, block))
			continue;
		if (depot->leaves)
			depot->leaves(depot, block);
		count(&depot->idle, -1u);
		depot->blocks[block].purged = true;
		count(&depot->purged, 1);
		for (int i = 0; i < TW__DEPOT_ARRAYS && depot->arrays[i].at; i++) {
			size_t bytes = depot->arrays[i].item_bytes << depot->block_shift;
			madvise((char *)depot->arrays[i].at + block * bytes, bytes, MADV_DONTNEED);
		}
		n++;
	}
	return tw__depot_has_surplus(depot, 1);
}
