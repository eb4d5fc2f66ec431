/*
 * The purge of slots and extension records: their memory goes back to the system after a storm.
 *
 * What can go: the records of free slots, the driver's locations of them, and extension records.
 * What stays: the control words, 8 bytes a slot, whose generations make old handles harmless (G5).
 *
 * A free slot in the depot is linked through its record, so its record cannot go. In quiet times
 * the driver takes the depot's chains apart and marks their slots in the bitmap `purge_bits`
 * instead. A block whose slots are all in the bitmap needs no records. Slots are taken from the
 * lowest blocks first, so that slots in use stay together. Extension records are kept in blocks
 * with a free list each, the lowest first, and need no such step.
 *
 * All under the depot's lock, which the driver only tries. The system call is made under the lock
 * too, so that no thread takes a slot while its record's page goes. It happens in quiet times, and
 * takes a few microseconds.
 */
#include <sys/mman.h>

#include "wheel/slot/slots_purge.h"

_Static_assert(TW__BLOCK * sizeof(struct tw__record) % 4096 == 0, "blocks are whole pages");
_Static_assert(TW__BLOCK * sizeof(struct tw__location) % 4096 == 0, "blocks are whole pages");
_Static_assert(TW__BLOCK * sizeof(uint32_t) % 4096 == 0, "blocks are whole pages");
_Static_assert(TW__BLOCK * sizeof(struct tw__ext) % 4096 == 0, "blocks are whole pages");

enum { WORDS = TW__BLOCK / 64 };

void tw__slots_purge_put(struct tw__slots *slots, uint32_t slot)
{
	TW_ASSERT_LOCKED(&slots->lock);
	uint32_t block = slot / TW__BLOCK;
	slots->purge_bits[slot / 64] |= UINT64_C(1) << slot % 64;
	slots->blocks[block].marked++;
	if (block < slots->purge_low)
		slots->purge_low = block;
}

static uint32_t purge_take_from(struct tw__slots *slots, uint32_t index, uint32_t want,
				uint32_t *out)
{
	struct tw__slot_block *block = &slots->blocks[index];
	uint32_t n = 0;
	for (uint32_t w = index * WORDS; w < (index + 1) * WORDS; w++)
		for (; slots->purge_bits[w] && n < want;
		     slots->purge_bits[w] &= slots->purge_bits[w] - 1)
			out[n++] = w * 64 + (uint32_t)__builtin_ctzll(slots->purge_bits[w]);
	block->marked -= (uint16_t)n;
	if (n && block->purged) {
		block->purged = false;
		tw_store_relaxed(&slots->purged, tw_load_relaxed(&slots->purged) - 1);
	}
	return n;
}

uint32_t tw__slots_purge_take(struct tw__slots *slots, uint32_t want, uint32_t *out)
{
	TW_ASSERT_LOCKED(&slots->lock);
	uint32_t n = 0, end = tw_load_relaxed(&slots->fresh) / TW__BLOCK + 1;
	for (; slots->purge_low < end; slots->purge_low++) {
		n += purge_take_from(slots, slots->purge_low, want - n, out + n);
		if (n == want)
			break;
	}
	return n;
}

bool tw__slots_purge_tables(struct tw__slots *slots)
{
	uint32_t n;
	if (pthread_mutex_trylock(&slots->lock))
		return true; /* who knows */
	uint32_t slot = tw__chain_pop(slots, &n);
	bool any = slot != 0;
	for (; any && n > 0; n--) {
		tw__slots_purge_put(slots, slot);
		slot = slots->records[slot].link;
	}
	pthread_mutex_unlock(&slots->lock);
	return any;
}

/* Advice that fails leaves things as they are: the memory is zeroed, or kept. */
static void purge_array(void *array, size_t size, uint32_t block)
{
	madvise((char *)array + (size_t)block * TW__BLOCK * size, TW__BLOCK * size, MADV_DONTNEED);
}

bool tw__slots_purge_block(struct tw__slots *slots, uint32_t index)
{
	struct tw__slot_block *block = &slots->blocks[index];
	if (pthread_mutex_trylock(&slots->lock))
		return false;
	uint32_t all = index == 0 ? TW__BLOCK - 1 : TW__BLOCK; /* slot 0 is never used */
	bool can = block->marked == all && !block->purged;
	if (can) {
		block->purged = true;
		tw_store_relaxed(&slots->purged, tw_load_relaxed(&slots->purged) + 1);
		purge_array(slots->records, sizeof *slots->records, index);
		purge_array(slots->locations, sizeof *slots->locations, index);
		purge_array(slots->far_ticks, sizeof *slots->far_ticks, index);
		/* zero: nothing is known, which is true */
		purge_array(slots->latest_generations, sizeof *slots->latest_generations, index);
	}
	pthread_mutex_unlock(&slots->lock);
	return can;
}

bool tw__exts_purge_block(struct tw__slots *slots, uint32_t index)
{
	struct tw__ext_block *block = &slots->store.blocks[index];
	if (pthread_mutex_trylock(&slots->lock))
		return false;
	bool can = block->live == 0 && block->used > 0;
	if (can) {
		block->used = 0;
		block->free = 0;
		tw_store_relaxed(&slots->store.held, tw_load_relaxed(&slots->store.held) - 1);
		purge_array(slots->exts, sizeof *slots->exts, index);
	}
	pthread_mutex_unlock(&slots->lock);
	return can;
}

uint64_t tw__slots_bytes(const struct tw__slots *slots)
{
	uint64_t fresh = tw_load_relaxed(&slots->fresh),
		 given = (uint64_t)tw_load_relaxed(&slots->purged) * TW__BLOCK;
	uint64_t held = fresh > given ? fresh - given : 0;
	uint64_t per_held =
	    sizeof *slots->records +
	    (tw_load_relaxed(&slots->written.locations) ? sizeof *slots->locations : 0) +
	    (tw_load_relaxed(&slots->written.far_ticks) ? sizeof *slots->far_ticks : 0) +
	    (tw_load_relaxed(&slots->written.latest_generations) ? sizeof *slots->latest_generations
								 : 0);
	return fresh * sizeof *slots->words + held * per_held +
	       (uint64_t)tw_load_relaxed(&slots->store.held) * TW__BLOCK * sizeof *slots->exts;
}
