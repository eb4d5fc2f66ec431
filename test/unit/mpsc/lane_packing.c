/*
 * Packing: a lane drops its dead entries when there are many. It loses nothing that is alive,
 * whatever the driver does meanwhile.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "mpsc/lane.h"
#include "test/unit/mpsc/lanes.h"

/* What a lane is packed at, however few of them live. */
enum { FEW_SEGMENTS = 14, FEW = FEW_SEGMENTS * TW__SEGMENT_ENTRIES };

/* Values of UINT64_MAX are bases. */
static bool is_base(const struct tw__entry *entry)
{
	return entry->value == UINT64_MAX;
}

static unsigned all_are_dead(void *context, const struct tw__entry *entries, unsigned n,
			     struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (is_base(&entries[i]))
			kept = keep(&entries[i], out,
				    kept && is_base(&out[kept - 1]) ? kept - 1 : kept);
	return kept;
}

static uint64_t oldest_alive;

static unsigned old_are_dead(void *context, const struct tw__entry *entries, unsigned n,
			     struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (entries[i].value >= oldest_alive)
			kept = keep(&entries[i], out, kept);
	return kept;
}

static struct {
	uint64_t last, even; /* the last value, and how many are even */
} taken;

/* Takes all there is, or one segment; checks that values rise. */
static void take(struct tw__lane *lane, bool all)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	for (unsigned n; (n = tw__lane_take(lane, tw__lane_tail(lane), entries)) > 0;) {
		for (unsigned i = 0; i < n; i++) {
			if (entries[i].what == 0)
				continue;
			cr_assert_gt(entries[i].value, taken.last);
			taken.last = entries[i].value;
			taken.even += entries[i].value % 2 == 0;
		}
		if (!all)
			return;
	}
}

/* Entries whose timers are soon cancelled stay in few segments, whether or not a driver comes. */
Test(mpsc_lane_packing, what_is_soon_dead_stays_in_few_segments)
{
	struct tw__lane *lane = lane_new(1u << 20, all_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	for (uint64_t i = 1; i <= 100000; i++)
		cr_assert_eq(push(lane, i), 0);
	cr_assert_leq(tw__lane_segments(lane), FEW_SEGMENTS + 1);
	cr_assert_leq(tw__lane_backlog(lane), FEW);
	for (int round = 0; round < 1000; round++) {
		for (uint64_t i = 0; i < 100; i++)
			cr_assert_eq(push(lane, i), 0);
		cr_assert_leq(tw__lane_take(lane, tw__lane_tail(lane), entries),
			      TW__SEGMENT_ENTRIES);
	}
	cr_assert_leq(tw__lane_segments(lane), FEW_SEGMENTS + 2);
	lane_free(lane);
}

/* However many live: the dead are never many more. */
Test(mpsc_lane_packing, the_dead_are_not_many_more_than_the_living)
{
	enum { ALIVE = 10000 };
	struct tw__lane *lane = lane_new(1u << 20, old_are_dead);
	for (uint64_t i = 0; i < 20 * ALIVE; i++) {
		oldest_alive = i > ALIVE ? i - ALIVE : 0;
		cr_assert_eq(push(lane, i), 0);
		cr_assert_leq(tw__lane_backlog(lane), 2 * ALIVE + 2 * TW__SEGMENT_ENTRIES);
	}
	cr_assert_leq(tw__lane_segments(lane), 4 * ALIVE / TW__SEGMENT_ENTRIES);
	lane_free(lane);
}

/* What is due immediately stays so, wherever packing puts it. */
Test(mpsc_lane_packing, what_is_urgent_is_still_urgent)
{
	struct tw__lane *lane = lane_new(1u << 20, odd_is_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	cr_assert_eq(push(lane, 2), 0);
	tw_store_relaxed(&lane->urgent, tw__lane_written(lane));
	for (uint64_t i = 0; i < 10000; i++)
		cr_assert_eq(push(lane, 2 * i + 5), 0);
	cr_assert_gt(tw_load_relaxed(&lane->urgent), tw__lane_head(lane));
	cr_assert_gt(tw__lane_take(lane, tw__lane_tail(lane), entries), 0);
	cr_assert_eq(entries[0].value, 2);
	lane_free(lane);
}

/* Also if they stand in several segments: the last base is kept, entries to come count from it. */
Test(mpsc_lane_packing, packing_keeps_the_bases_that_are_needed)
{
	struct tw__lane *lane = lane_new(1u << 20, all_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	for (uint64_t i = 0; i < FEW; i++)
		cr_assert_eq(push(lane, i % 50 == 20 ? UINT64_MAX : i), 0);
	cr_assert_eq(push(lane, 1), 0);
	cr_assert_eq(tw__lane_take(lane, tw__lane_tail(lane), entries), 2);
	cr_assert_eq(entries[0].value, UINT64_MAX);
	cr_assert_eq(entries[1].value, 1);
	lane_free(lane);
}

/*
 * All that is alive is taken, in order, whether a driver has read the lane in part, is reading it,
 * or has not come.
 */
Test(mpsc_lane_packing, packing_loses_nothing_that_is_alive)
{
	for (unsigned every = 1; every <= 300; every += 7) {
		struct tw__lane *lane = lane_new(1u << 20, odd_is_dead);
		uint64_t even = 0;
		taken.last = taken.even = 0;
		for (uint64_t i = 1; i <= 20000; i++) {
			/* the driver is inside: the lane is left as it is */
			uint64_t inside = i % 1000 < 10 ? TW__LANE_TAKING : 0;
			tw_store_relaxed(&lane->turn, tw_load_relaxed(&lane->turn) + inside);
			cr_assert_eq(push(lane, i % 5 ? i * 2 + 1 : i * 2), 0);
			even += i % 5 == 0;
			tw_store_relaxed(&lane->turn, tw_load_relaxed(&lane->turn) - inside);
			if (i % every == 0)
				take(lane, i % 2);
		}
		take(lane, true);
		cr_assert_eq(taken.even, even);
		lane_free(lane);
	}
}

/* The driver takes while a packing copies: once it has begun, or again and again. */
static struct tw__lane *packed;
static unsigned takes_left;

static unsigned driver_comes(void *context, const struct tw__entry *entries, unsigned n,
			     struct tw__entry *out, unsigned kept)
{
	if (n > 1 && takes_left) {
		takes_left--;
		take(packed, false);
	}
	return odd_is_dead(context, entries, n, out, kept);
}

Test(mpsc_lane_packing, a_driver_that_comes_while_a_lane_is_packed_has_won)
{
	uint64_t even = 0;
	packed = lane_new(1u << 20, driver_comes);
	for (uint64_t i = 1; i <= 100000; i++) {
		takes_left = i % 7 == 0 ? (unsigned)(i % 5) : 0;
		cr_assert_eq(push(packed, i % 5 ? i * 2 + 1 : i * 2), 0);
		even += i % 5 == 0;
	}
	cr_assert_gt(taken.even, 0);
	take(packed, true);
	cr_assert_eq(taken.even, even);
	lane_free(packed);
}

/* Little that is dead is not worth a copy of what lives. */
Test(mpsc_lane_packing, few_dead_entries_are_left_for_the_driver)
{
	struct tw__lane *lane = lane_new(1u << 20, old_are_dead);
	uint64_t pushed = 0;
	for (; pushed < 2 * FEW; pushed++) {
		oldest_alive = pushed / 4;
		cr_assert_eq(push(lane, pushed), 0);
	}
	cr_assert_eq(tw__lane_backlog(lane), pushed);
	lane_free(lane);
}

static void *push_a_million(void *arg)
{
	struct tw__lane *lane = arg;
	for (uint64_t i = 1; i <= 1000000; i++)
		while (push(lane, i % 5 ? i * 2 + 1 : i * 2))
			; /* at the bound: the driver will make room */
	return NULL;
}

/* And gives memory back, as the driver does. */
Test(mpsc_lane_packing, loses_nothing_beside_a_driver_on_another_thread, .timeout = 60)
{
	struct tw__lane *lane = lane_new(1u << 20, odd_is_dead);
	pthread_t producer;
	pthread_create(&producer, NULL, push_a_million, lane);
	while (taken.even < 200000) {
		for (int i = 0; i < 1000; i++)
			tw_cpu_relax(); /* so that there is something to pack */
		take(lane, taken.even % 2);
		tw__lane_purge(lane, 2);
	}
	pthread_join(producer, NULL);
	take(lane, true);
	cr_assert_eq(taken.even, 200000);
	lane_free(lane);
}
