/*
 * Over maxmemory: removes the keys that are closest to their deadline, in that order.
 *
 * The service knows the order of all deadlines, but it has no call that tells the earliest
 * timers. So a shard keeps a heap of its earliest keys, only while keys are evicted: one scan of
 * the shard fills it with a sixteenth of the keys.
 */
#ifndef EXAMPLES_CACHE_EVICT_H
#define EXAMPLES_CACHE_EVICT_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/cache/table.h"

/* Bytes of keys, buckets and timers: what maxmemory limits. Any thread. */
size_t evict_used(void);

/*
 * Evicts until memory is within maxmemory. False: no key with a deadline is left. No shard may be
 * locked.
 */
bool evict_make_room(void);

/* An entry got a deadline. Under the lock of its shard. */
void evict_consider(struct shard *s, struct entry *e);

#endif
