/*
 * Keys that end on time: one tickwheel timer for each key with a deadline. expiry.c has the rules
 * of ownership.
 *
 * Every function needs the lock of the entry's shard, unless it says otherwise.
 */
#ifndef EXAMPLES_CACHE_EXPIRY_H
#define EXAMPLES_CACHE_EXPIRY_H

#include "examples/cache/table.h"

/*
 * The entry of a key that is visible: in the table, and before its deadline. A key that is past
 * its deadline is removed here, and its end published, if its timer has not done so yet.
 */
struct entry *expiry_find(struct shard *s, uint64_t hash, struct slice key);

/* The same without removing: for visitors of the whole table. */
bool expiry_visible(const struct entry *e);

/*
 * Gives an entry a deadline, or moves it. The entry may be outside of the table still.
 * False: the service has no room for the timer. Nothing has changed then.
 */
bool expiry_set(struct shard *s, struct entry *e, uint64_t deadline_ms);

/* Takes the deadline away, if there is one. */
void expiry_clear(struct shard *s, struct entry *e);

/*
 * Ends an entry that was unlinked or replaced: cancels its timer and frees it, now or in the
 * timer's callback.
 */
void expiry_retire(struct shard *s, struct entry *e);

#endif
