/* What the tests of the lane share: they make a lane, push to it, and declare odd values dead. */
#ifndef TEST_UNIT_MPSC_LANES_H
#define TEST_UNIT_MPSC_LANES_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "mpsc/lane.h"

/* Keeps an entry, if it is no padding. How many out has then. */
static inline unsigned keep(const struct tw__entry *entry, struct tw__entry *out, unsigned kept)
{
	out[kept] = *entry;
	return kept + (entry->what != 0);
}

static inline unsigned odd_is_dead(void *context, const struct tw__entry *entries, unsigned n,
				   struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (!(entries[i].value & 1))
			kept = keep(&entries[i], out, kept);
	return kept;
}

static inline struct tw__lane *lane_new(uint32_t bound, tw__entry_pack_fn *pack)
{
	struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, sizeof *lane);
	cr_assert(tw__lane_init(lane, bound, pack, NULL));
	return lane;
}

static inline void lane_free(struct tw__lane *lane)
{
	tw__lane_fini(lane);
	free(lane);
}

static inline int push(struct tw__lane *lane, uint64_t value)
{
	bool grew;
	int r = tw__lane_has_room(lane, 1) ? 0 : tw__lane_grow(lane, 1, &grew);
	if (r)
		return r;
	tw__lane_put(lane, 1, value);
	tw__lane_publish(lane);
	return 0;
}

#endif
