/* Giving the memory of free slots back. */
#ifndef TW_WHEEL_SLOT_SLOTS_PURGE_H
#define TW_WHEEL_SLOT_SLOTS_PURGE_H

#include "wheel/slot/slots.h"

/* Under the lock: takes up to `want` slots out of the bitmap, the lowest. Returns how many. */
uint32_t tw__slots_purge_take(struct tw__slots *slots, uint32_t want, uint32_t *out);

/* Under the lock: puts a free slot into the bitmap. */
void tw__slots_purge_put(struct tw__slots *slots, uint32_t slot);

/*
 * For the driver; each only tries the lock. Moves one chain of the depot to the bitmap. False:
 * there is none; true also if another thread has the lock.
 */
bool tw__slots_purge_tables(struct tw__slots *slots);

/*
 * Gives back the memory of a block's records and locations, or of a block of extension records, if
 * nothing in it is in use. Whether it did.
 */
bool tw__slots_purge_block(struct tw__slots *slots, uint32_t block);
bool tw__exts_purge_block(struct tw__slots *slots, uint32_t block);

/* Bytes that hold slots and extension records, an upper bound. */
uint64_t tw__slots_bytes(const struct tw__slots *slots);

#endif
