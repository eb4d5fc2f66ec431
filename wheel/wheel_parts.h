/*
 * What the wheel's two halves share: wheel.c goes forward (add, turn), cascade.c looks forward
 * (plan, cascade, sweep, check, empty), and calls wheel.c.
 */
#ifndef TW_WHEEL_WHEEL_PARTS_H
#define TW_WHEEL_WHEEL_PARTS_H

#include "wheel/wheel.h"

/* Takes the first chunk off a bucket's list; the caller corrects the counts (tw__level_remove). */
struct tw__chunk *tw__bucket_pop(struct tw__wheel *wheel, struct tw__bucket *bucket);

/*
 * Asks what has become of a chunk's entries. What is due within the place stays, in order; what is
 * due later is added again. Returns how many stay; their due ticks are the first ones.
 */
unsigned tw__wheel_split(struct tw__wheel *wheel, struct tw__chunk *chunk,
			 enum tw__resolve_for what_for, const struct tw__place *place,
			 uint64_t *due_ticks);

/* Moves entries from a chunk's front to the end of the one before it, as many as fit. */
void tw__chunk_fill(struct tw__chunk *to, struct tw__chunk *from);

/* n entries have left a bucket of the level. */
void tw__level_remove(struct tw__wheel *wheel, struct tw__level *level, struct tw__bucket *bucket,
		      uint64_t n);

/*
 * The first occupied bucket, by absolute number, in [from, end); end - from is at most the level's
 * size.
 */
bool tw__level_next(const struct tw__level *level, uint64_t from, uint64_t end, uint64_t *found);

/* A level's bucket by its absolute number. */
static inline struct tw__place tw__place_of(const struct tw__wheel *wheel,
					    const struct tw__level *level, uint64_t number)
{
	return (struct tw__place){.level = (unsigned)(level - wheel->levels),
				  .low = number << level->shift,
				  .high = (number + 1) << level->shift};
}

/* Moves about `quota` entries from the bucket above `window` of `lower` down to it. */
void tw__wheel_move(struct tw__wheel *wheel, struct tw__level *lower, uint64_t window,
		    uint64_t quota);

bool tw__level_complete_above(const struct tw__level *level, uint64_t window);

/* Opens each level's next window if nothing is in the way. */
void tw__wheel_open_windows(struct tw__wheel *wheel);

#endif
