/*
 * The lane by itself: order, reuse of segments, the bound, compaction, the reserve; then two
 * threads.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include "mpsc/lane.h"
#include "test/support/faults.h"
#include "test/unit/mpsc/lanes.h"

/* As odd_is_dead, from the moment at which they are declared dead. */
static bool odd_have_died;

static unsigned odd_die_later(void *context, const struct tw__entry *entries, unsigned n,
			      struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (!odd_have_died || !(entries[i].value & 1))
			kept = keep(&entries[i], out, kept);
	return kept;
}

static unsigned nothing_is_dead(void *context, const struct tw__entry *entries, unsigned n,
				struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		kept = keep(&entries[i], out, kept);
	return kept;
}

/* Takes all there is; checks that values rise. The last one, and how many. */
static uint64_t take_all(struct tw__lane *lane, uint64_t *last)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t taken = 0;
	for (unsigned n; (n = tw__lane_take(lane, tw__lane_tail(lane), entries)) > 0;) {
		for (unsigned i = 0; i < n; i++) {
			if (entries[i].what == 0)
				continue;
			cr_assert(entries[i].value > *last, "%lu came after %lu", entries[i].value,
				  *last);
			*last = entries[i].value;
			taken++;
		}
	}
	return taken;
}

Test(mpsc_lane, keeps_order_over_many_segments)
{
	struct tw__lane *lane = lane_new(1u << 20, nothing_is_dead);
	uint64_t last = 0, next = 1, taken = 0;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 37 * round; i++)
			cr_assert_eq(push(lane, next++), 0);
		taken += take_all(lane, &last);
		cr_assert_eq(taken, next - 1);
		cr_assert_not(tw__lane_unread(lane));
	}
	lane_free(lane);
}

Test(mpsc_lane, reuses_segments_that_were_read)
{
	struct tw__lane *lane = lane_new(1u << 20, nothing_is_dead);
	uint64_t last = 0;
	for (uint64_t i = 1; i <= 1000000; i++) {
		cr_assert_eq(push(lane, i), 0);
		if (i % 100 == 0)
			take_all(lane, &last);
	}
	cr_assert(lane->segments <= 4, "%u segments for a backlog of 100 entries", lane->segments);
	lane_free(lane);
}

Test(mpsc_lane, refuses_at_its_bound_and_recovers)
{
	struct tw__lane *lane = lane_new(4096, nothing_is_dead);
	uint64_t pushed = 0, last = 0;
	while (push(lane, pushed + 1) == 0)
		pushed++;
	cr_assert(pushed >= 4096 && pushed < 4096 + 2 * TW__SEGMENT_ENTRIES, "%lu entries", pushed);
	cr_assert_eq(push(lane, 1), -EAGAIN);
	cr_assert_eq(take_all(lane, &last), pushed);
	cr_assert_eq(push(lane, pushed + 1), 0);
	lane_free(lane);
}

Test(mpsc_lane, a_full_lane_drops_its_dead_in_order)
{
	struct tw__lane *lane = lane_new(4096, odd_is_dead);
	uint64_t pushed = 0, even = 0, last = 0;
	for (; even < 3000; pushed++) {
		cr_assert_eq(push(lane, pushed + 1), 0);
		even += (pushed + 1) % 2 == 0;
	}
	uint64_t taken = take_all(lane, &last);
	cr_assert(taken >= even && taken < pushed, "%lu of %lu are left", taken, pushed);
	cr_assert_eq(last, pushed);
	lane_free(lane);
}

/* Entries that reach a bound of 4096 with a full segment: the next push compacts. */
enum { FULL = (4096 / TW__SEGMENT_ENTRIES + 1) * TW__SEGMENT_ENTRIES };

/*
 * The driver is in the middle of a take: the lane is left as it is, and grows to twice its bound.
 */
Test(mpsc_lane, a_lane_that_is_taken_from_is_not_packed)
{
	struct tw__lane *lane = lane_new(4096, odd_die_later);
	odd_have_died = false;
	for (uint64_t i = 1; i <= FULL; i++)
		cr_assert_eq(push(lane, i), 0);
	odd_have_died = true;
	uint64_t turn = tw_load_relaxed(&lane->turn);
	tw_store_relaxed(&lane->turn, turn | TW__LANE_TAKING);
	uint64_t pushed = FULL;
	while (push(lane, FULL) == 0) /* odd */
		pushed++;
	cr_assert(pushed > 2 * 4096 && pushed <= 2 * FULL, "%lu entries", pushed);
	tw_store_relaxed(&lane->turn, turn);
	cr_assert_eq(push(lane, FULL + 1), 0); /* a quarter of them lives */
	lane_free(lane);
}

/*
 * A run's re-arming, which must not fail: the reserve was used up by a run within it, and for a
 * moment there is no memory.
 */
Test(mpsc_lane, an_entry_that_must_go_in_waits_for_memory)
{
	enum { SEGMENTS = 100 }; /* of which memory holds dozens */
	struct tw__lane *lane = lane_new(1u << 20, nothing_is_dead);
	uint64_t pushed = 0, last = 0;
	faults_arm(0, false);
	for (int i = 0; i < SEGMENTS; i++) {
		while (tw__lane_has_room(lane, 1))
			tw__lane_put(lane, 1, ++pushed);
		tw__lane_grow_reserved(lane, 1);
	}
	cr_assert(faults_disarm(), "no memory was asked for");
	cr_assert_null(lane->reserve);
	tw__lane_put(lane, 1, ++pushed);
	tw__lane_publish(lane);
	cr_assert_eq(take_all(lane, &last), pushed);
	cr_assert_eq(last, pushed);
	lane_free(lane);
}

enum { VALUE = 1, BASE = 2 };

/* Values from 10 on, once that is so. */
static bool values_have_died;

static unsigned values_are_dead(void *context, const struct tw__entry *entries, unsigned n,
				struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++) {
		if (entries[i].what == BASE && kept && out[kept - 1].what == BASE)
			kept--;
		if (entries[i].what == BASE || !values_have_died || entries[i].value < 10)
			kept = keep(&entries[i], out, kept);
	}
	return kept;
}

static void put(struct tw__lane *lane, uint64_t what, uint64_t value)
{
	bool grew;
	cr_assert_eq(tw__lane_has_room(lane, 1) ? 0 : tw__lane_grow(lane, 1, &grew), 0);
	tw__lane_put(lane, what, value);
	tw__lane_publish(lane);
}

/*
 * A base holds for what is pushed later too: the last one stays, whatever died behind it; those
 * before it only for what lives.
 */
Test(mpsc_lane, compaction_keeps_the_base_that_the_next_push_counts_from)
{
	static const struct tw__entry kept[] = {{BASE, 100}, {VALUE, 1}, {BASE, 300}, {VALUE, 2}};
	struct tw__lane *lane = lane_new(4096, values_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	put(lane, BASE, 100);
	put(lane, VALUE, 1);
	put(lane, BASE, 200);
	put(lane, VALUE, 50);
	put(lane, BASE, 300);
	values_have_died = false;
	for (uint64_t i = 5; i < FULL; i++)
		put(lane, VALUE, 50);
	values_have_died = true;
	put(lane, VALUE, 2);
	cr_assert_eq(tw__lane_take(lane, tw__lane_tail(lane), entries), 4);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(entries[i].what, kept[i].what);
		cr_assert_eq(entries[i].value, kept[i].value);
	}
	lane_free(lane);
}

/* From every position of head and tail within a segment: all live, all dead, alternating. */
Test(mpsc_lane, compaction_at_every_alignment)
{
	for (unsigned skip = 0; skip <= 2 * TW__SEGMENT_ENTRIES; skip += 17) {
		for (unsigned stride = 1; stride <= 3; stride++) {
			struct tw__lane *lane = lane_new(2 * TW__SEGMENT_ENTRIES, odd_is_dead);
			uint64_t last = 0, value = 0, even = 0;
			for (unsigned i = 0; i < skip; i++)
				push(lane, value += 2);
			take_all(lane, &last);
			for (unsigned i = 0; i < 3000; i++) {
				value += stride;
				if (push(lane, value)) {
					value -= stride;
					break;
				}
				even += value % 2 == 0;
			}
			uint64_t before = last, left = take_all(lane, &last);
			cr_assert(left >= even, "skip %u stride %u: %lu live, %lu left", skip,
				  stride, even, left);
			cr_assert(last == before || last <= value);
			cr_assert_eq(push(lane, value + 2), 0);
			cr_assert_eq(take_all(lane, &last), 1);
			lane_free(lane);
		}
	}
}

Test(mpsc_lane, the_reserve_gives_room_beyond_the_bound)
{
	struct tw__lane *lane = lane_new(1024, nothing_is_dead);
	uint64_t pushed = 0, last = 0;
	while (push(lane, pushed + 1) == 0)
		pushed++;
	cr_assert(tw__lane_refill_reserve(lane));
	for (int i = 0; i < 10; i++) {
		tw__lane_grow_reserved(lane, 1);
		tw__lane_put(lane, 1, ++pushed);
		tw__lane_publish(lane);
	}
	cr_assert_eq(take_all(lane, &last), pushed);
	lane_free(lane);
}

struct traffic {
	struct tw__lane *lane;
	uint64_t count, refused;
};

static void *produce(void *arg)
{
	struct traffic *traffic = arg;
	for (uint64_t i = 1; i <= traffic->count;) {
		if (push(traffic->lane, i) == 0)
			i++;
		else
			traffic->refused++;
	}
	return NULL;
}

/*
 * A bound small enough that compactions and takes meet all the time; multiples of two must all
 * arrive, in order.
 */
Test(mpsc_lane, producer_and_driver_side_by_side, .timeout = 60)
{
	struct traffic traffic = {lane_new(1024, odd_is_dead), 3000000, 0};
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t last = 0, even = 0;
	pthread_t thread;
	pthread_create(&thread, NULL, produce, &traffic);
	while (last < traffic.count) {
		unsigned n = tw__lane_take(traffic.lane, tw__lane_tail(traffic.lane), entries);
		for (unsigned i = 0; i < n; i++) {
			if (entries[i].what == 0)
				continue;
			cr_assert(entries[i].value > last, "%lu after %lu", entries[i].value, last);
			last = entries[i].value;
			even += last % 2 == 0;
		}
	}
	pthread_join(thread, NULL);
	cr_assert_eq(even, traffic.count / 2);
	lane_free(traffic.lane);
}
