/*
 * Free chunks on their way back to the system. The list of free chunks is last in, first out, and
 * after a storm its chunks lie all over the arena. In quiet times they are marked in a bitmap
 * instead, block by block; a block that is all marked needs no memory. Taken from the lowest first,
 * so that what little is needed later stays together.
 */
#include "wheel/wheel_parts.h"

struct tw__chunk *tw__chunk_from_purge(struct tw__wheel *wheel)
{
	struct tw__purge_block *block = &wheel->purge_blocks[wheel->purge_low];
	while (block->free == 0)
		block++;
	wheel->purge_low = (size_t)(block - wheel->purge_blocks);
	unsigned bit = (unsigned)__builtin_ctzll(block->free);
	block->free &= block->free - 1;
	wheel->purged -= block->purged;
	block->purged = false;
	return &wheel->arena[wheel->purge_low * TW__PURGE_CHUNKS + bit];
}

size_t tw__wheel_purge_chunks(struct tw__wheel *wheel, size_t n)
{
	size_t done = 0;
	struct tw__chunk *chunk;
	for (; done < n && wheel->purge_blocks && (chunk = wheel->free); done++) {
		wheel->free = chunk->next;
		size_t index = (size_t)(chunk - wheel->arena), block = index / TW__PURGE_CHUNKS;
		wheel->purge_blocks[block].free |= UINT64_C(1) << index % TW__PURGE_CHUNKS;
		if (block < wheel->purge_low)
			wheel->purge_low = block;
	}
	return done;
}

struct tw__chunk *tw__wheel_purge_next(struct tw__wheel *wheel)
{
	while (wheel->purge_blocks && wheel->purge_top > 0) {
		size_t index = --wheel->purge_top;
		struct tw__purge_block *block = &wheel->purge_blocks[index];
		if (block->free != UINT64_MAX || block->purged)
			continue;
		block->purged = true;
		wheel->purged++;
		return &wheel->arena[index * TW__PURGE_CHUNKS];
	}
	return NULL;
}
