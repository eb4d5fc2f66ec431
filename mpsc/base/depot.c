#include "mpsc/base/depot.h"

#include <sys/mman.h>

enum { LOOKS_A_CALL = 256 /* at blocks */, BLOCKS_A_CALL = 4 /* are purged */ };

static uint32_t block_count(uint32_t count, unsigned block_shift)
{
	return (count >> block_shift) + 1;
}

static size_t bits_bytes(uint32_t count, unsigned block_shift)
{
	return (size_t)block_count(count, block_shift) << block_shift >> 3;
}

static size_t room_bytes(uint32_t count, unsigned block_shift)
{
	return (block_count(count, block_shift) / 64 + 1) * sizeof(uint64_t);
}

size_t tw__depot_bytes(uint32_t count, unsigned block_shift)
{
	return bits_bytes(count, block_shift) + room_bytes(count, block_shift) +
	       block_count(count, block_shift) * sizeof(struct tw__depot_block);
}

void tw__depot_init(struct tw__depot *depot, uint32_t count, unsigned block_shift, uint32_t first,
		    void *memory)
{
	TW_ASSERT(block_shift >= 6 && block_shift < 16);
	char *room = (char *)memory + bits_bytes(count, block_shift);
	*depot =
	    (struct tw__depot){.bits = memory, .room = (void *)room, .block_shift = block_shift};
	depot->blocks = (void *)(room + room_bytes(count, block_shift));
	tw_store_relaxed(&depot->fresh, first);
}

static void count_free(struct tw__depot *depot, uint32_t change)
{
	tw_store_relaxed(&depot->free, tw_load_relaxed(&depot->free) + change);
}

static void count_idle(struct tw__depot *depot, int change)
{
	tw_store_relaxed(&depot->idle, tw_load_relaxed(&depot->idle) + (uint32_t)change);
}

static uint32_t depot_take_from(struct tw__depot *depot, uint32_t index, uint32_t want,
				uint32_t *out)
{
	struct tw__depot_block *block = &depot->blocks[index];
	uint32_t words = 1u << (depot->block_shift - 6), end = (index + 1) * words, n = 0;
	uint64_t left = 0;
	for (uint32_t w = index * words; w < end; w++) {
		uint64_t bits = depot->bits[w];
		for (; bits && n < want; bits &= bits - 1)
			out[n++] = w * 64 + (uint32_t)__builtin_ctzll(bits);
		left |= depot->bits[w] = bits;
	}
	TW_ASSERT(n > 0);
	if (!left)
		depot->room[index / 64] &= ~(UINT64_C(1) << index % 64);
	if (tw__depot_is_idle(depot, index))
		count_idle(depot, -1);
	block->used += (uint16_t)n;
	if (tw_unlikely(block->purged))
		tw_store_relaxed(&depot->purged, tw_load_relaxed(&depot->purged) - 1);
	block->purged = false;
	return n;
}

uint32_t tw__depot_take(struct tw__depot *depot, uint32_t want, uint32_t limit, uint32_t *out)
{
	uint32_t n = 0, fresh = tw_load_relaxed(&depot->fresh);
	while (n < want && tw_load_relaxed(&depot->free) > n) {
		uint64_t room = depot->room[depot->low];
		if (room)
			n += depot_take_from(depot,
					     depot->low * 64 + (uint32_t)__builtin_ctzll(room),
					     want - n, out + n);
		else
			depot->low++;
	}
	count_free(depot, -n);
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
		depot->room[block / 64] |= UINT64_C(1) << block % 64;
		depot->low = block / 64 < depot->low ? block / 64 : depot->low;
		depot->blocks[block].used--;
		if (tw__depot_is_idle(depot, block))
			count_idle(depot, 1);
	}
	count_free(depot, n);
}

/* Looks on from the last idle block down, then from the top. */
static bool next_idle(struct tw__depot *depot, uint32_t *block)
{
	uint32_t end = tw_load_relaxed(&depot->fresh) >> depot->block_shift;
	uint32_t at = depot->last_idle < end ? depot->last_idle : end;
	for (int looks = 0; looks < LOOKS_A_CALL && end > 0; looks++) {
		at = (at ? at : end) - 1;
		if (!tw__depot_is_idle(depot, at))
			continue;
		*block = depot->last_idle = at;
		return true;
	}
	depot->last_idle = at;
	return false;
}

bool tw__depot_has_surplus(const struct tw__depot *depot, unsigned times)
{
	uint64_t used = tw__depot_used(depot);
	return tw_load_relaxed(&depot->idle) &&
	       tw__depot_held(depot) > times * (used + used / 2 + depot->kept);
}

tw_cold bool tw__depot_purge(struct tw__depot *depot)
{
	uint32_t block;
	for (int n = 0;
	     n < BLOCKS_A_CALL && tw__depot_has_surplus(depot, 1) && next_idle(depot, &block);
	     n++) {
		if (depot->leaves)
			depot->leaves(depot, block);
		count_idle(depot, -1);
		depot->blocks[block].purged = true;
		tw_store_relaxed(&depot->purged, tw_load_relaxed(&depot->purged) + 1);
		for (int i = 0; i < TW__DEPOT_ARRAYS && depot->arrays[i].at; i++) {
			size_t bytes = depot->arrays[i].item_bytes << depot->block_shift;
			madvise((char *)depot->arrays[i].at + block * bytes, bytes, MADV_DONTNEED);
		}
	}
	return tw__depot_has_surplus(depot, 1);
}
