/* A lane that gets long: when a push says so. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "mpsc/lane.h"

static unsigned odd_is_dead(void *context, const struct tw__entry *entries, unsigned n,
			    struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (!(entries[i].value & 1))
			out[kept++] = entries[i];
	return kept;
}

/* The driver learns of it before the lane is full, whatever packing has done: it may sleep. */
Test(mpsc_lane_bound, a_push_tells_of_a_backlog_of_half_the_bound)
{
	for (uint32_t bound = 512; bound <= 1 << 16; bound *= 2) {
		struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, sizeof *lane);
		cr_assert(tw__lane_init(lane, bound, odd_is_dead, NULL));
		bool grew = false;
		for (uint64_t i = 1; !grew || tw__lane_backlog(lane) <= bound / 2; i++) {
			if (!tw__lane_has_room(lane, 1))
				cr_assert_eq(tw__lane_grow(lane, 1, &grew), 0, "bound %u", bound);
			tw__lane_put(lane, 1, i);
			tw__lane_publish(lane);
		}
		tw__lane_fini(lane);
		free(lane);
	}
}

/* Entries that were looked at. */
static uint64_t looks;

static unsigned nothing_is_dead(void *context, const struct tw__entry *entries, unsigned n,
				struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		out[kept++] = entries[i];
	looks += n;
	return kept;
}

Test(mpsc_lane_bound, a_refused_push_looks_at_a_sample)
{
	enum { PUSHES = 1000, SAMPLE = 32 };
	struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, sizeof *lane);
	cr_assert(tw__lane_init(lane, 1 << 14, nothing_is_dead, NULL));
	bool grew;
	for (uint64_t i = 1; tw__lane_has_room(lane, 1) || !tw__lane_grow(lane, 1, &grew); i++) {
		tw__lane_put(lane, 1, i);
		tw__lane_publish(lane);
	}
	looks = 0;
	for (int i = 0; i < PUSHES; i++)
		cr_assert_eq(tw__lane_grow(lane, 1, &grew), -EAGAIN);
	cr_assert_leq(looks, PUSHES * SAMPLE);
	tw__lane_fini(lane);
	free(lane);
}
