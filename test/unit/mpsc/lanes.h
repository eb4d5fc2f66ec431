/* What the tests of the lane share: they make a lane, push to it, and declare odd values dead. */
#ifndef TEST_UNIT_MPSC_LANES_H
#define TEST_UNIT_MPSC_LANES_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "mpsc/lane.h"

static inline void odd_is_dead(void *context, const struct tw__entry *entries, unsigned n,
			       unsigned char *uses)
{
	for (unsigned i = 0; i < n; i++)
		uses[i] = entries[i].value & 1 ? TW__ENTRY_DEAD : TW__ENTRY_LIVE;
}

static inline struct tw__lane *lane_new(uint32_t bound, tw__entry_use_fn *use)
{
	struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, sizeof *lane);
	cr_assert(tw__lane_init(lane, bound, use, NULL));
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
