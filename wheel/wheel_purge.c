/*
 * Free chunks on their way back to the system. The list of free chunks is last in, first out, and
 * after a storm its chunks lie all over the arena. In quiet times they are marked in a bitmap
 * instead, block by block; a block that is all marked needs no memory. Taken from the lowest first,
 * so that what little is needed later stays together.
 */
#include "wheel/wheel_parts.h"

struct tw__chunk *tw__chunk_from_cold(struct tw__wheel *wheel)
{
	struct tw__cold_block *block = &wheel->cold[wheel->cold_low];
	while (block->free == 0)
		block++;
	wheel->cold_low = (size_t)(block - wheel->cold);
	unsigned bit = (unsigned)__builtin_ctzll(block->free);
	block->free &= block->free - 1;
	wheel->cold_given -= block->given;
	block->given = false;
	return &wheel->arena[wheel->cold_low * TW__COLD_CHUNKS + bit];
}

size_t tw__wheel_purge_chunks(struct tw__wheel *wheel, size_t n)
{
	size_t done = 0;
	struct tw__chunk *chunk;
	for (; done < n && wheel->cold && (chunk = wheel->free); done++) {
		wheel->free = chunk->next;
		size_t index = (size_t)(chunk - wheel->arena), block = index / TW__COLD_CHUNKS;
		wheel->cold[block].free |= UINT64_C(1) << index % TW__COLD_CHUNKS;
		if (block < wheel->cold_low)
			wheel->cold_low = block;
	}
	return done;
}

struct tw__chunk *tw__wheel_give(struct tw__wheel *wheel)
{
	while (wheel->cold && wheel->cold_top > 0) {
		size_t index = --wheel->cold_top;
		struct tw__cold_block *block = &wheel->cold[index];
		if (block->free != UINT64_MAX || block->given)
			continue;
		block->given = true;
		wheel->cold_given++;
		return &wheel->arena[index * TW__COLD_CHUNKS];
	}
	return NULL;
}
