/*
 * The lane by itself: order, reuse of segments, the bound, compaction, the reserve; then two
 * threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "mpsc/lane.h"
#include "test/support/expect.h"
#include "test/support/faults.h"

/* Keeps an entry, if it is no padding. How many out has then. */
static unsigned keep(const struct tw__entry *entry, struct tw__entry *out, unsigned kept)
{
	out[kept] = *entry;
	return kept + (entry->what != 0);
}

static unsigned odd_is_dead(void *context, const struct tw__entry *entries, unsigned n,
			    struct tw__entry *out, unsigned kept)
{
	for (unsigned i = 0; i < n; i++)
		if (!(entries[i].value & 1))
			kept = keep(&entries[i], out, kept);
	return kept;
}

static struct tw__lane *lane_new(uint32_t bound, tw__entry_pack_fn *pack)
{
	struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, sizeof *lane);
	cr_assert(tw__lane_init(lane, bound, pack, NULL));
	return lane;
}

static void lane_free(struct tw__lane *lane)
{
	tw__lane_fini(lane);
	free(lane);
}

static int push(struct tw__lane *lane, uint64_t value)
{
	bool grew;
	int r = tw__lane_has_room(lane, 1) ? 0 : tw__lane_grow(lane, 1, &grew);
	if (r)
		return r;
	tw__lane_put(lane, 1, value);
	tw__lane_publish(lane);
	return 0;
}

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

static struct {
	uint64_t last, even; /* the last value, and how many are even */
} taken;

/* Takes all there is, or one segment; checks that values rise. How many there were. */
static uint64_t take(struct tw__lane *lane, bool all)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t values = 0;
	for (unsigned n; (n = tw__lane_take(lane, tw__lane_tail(lane), entries)) > 0;) {
		for (unsigned i = 0; i < n; i++) {
			if (entries[i].what == 0)
				continue;
			cr_assert(entries[i].value > taken.last, "%lu came after %lu",
				  entries[i].value, taken.last);
			taken.last = entries[i].value;
			taken.even += taken.last % 2 == 0;
			values++;
		}
		if (!all)
			break;
	}
	return values;
}

Test(mpsc_lane, reuses_segments_that_were_read)
{
	struct tw__lane *lane = lane_new(1u << 20, nothing_is_dead);
	for (uint64_t i = 1; i <= 1000000; i++) {
		cr_assert_eq(push(lane, i), 0);
		if (i % 100 == 0)
			take(lane, true);
	}
	cr_assert(lane->segments <= 4, "%u segments for a backlog of 100 entries", lane->segments);
	lane_free(lane);
}

Test(mpsc_lane, refuses_at_its_bound_and_recovers)
{
	struct tw__lane *lane = lane_new(4096, nothing_is_dead);
	uint64_t pushed = 0;
	while (push(lane, pushed + 1) == 0)
		pushed++;
	cr_assert(pushed >= 4096 && pushed < 4096 + 2 * TW__SEGMENT_ENTRIES, "%lu entries", pushed);
	cr_assert_eq(push(lane, 1), -EAGAIN);
	cr_assert_eq(take(lane, true), pushed);
	cr_assert_eq(push(lane, pushed + 1), 0);
	lane_free(lane);
}

Test(mpsc_lane, a_full_lane_drops_its_dead_in_order)
{
	struct tw__lane *lane = lane_new(4096, odd_is_dead);
	uint64_t pushed = 0, even = 0;
	for (; even < 3000; pushed++) {
		cr_assert_eq(push(lane, pushed + 1), 0);
		even += (pushed + 1) % 2 == 0;
	}
	uint64_t left = take(lane, true);
	cr_assert(left >= even && left < pushed, "%lu of %lu are left", left, pushed);
	cr_assert_eq(taken.last, pushed);
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
	uint64_t pushed = 0;
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
	cr_assert_eq(take(lane, true), pushed);
	cr_assert_eq(taken.last, pushed);
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

/* From every position of head and tail within a segment. */
Test(mpsc_lane, compaction_at_every_alignment)
{
	for (unsigned skip = 0; skip <= 2 * TW__SEGMENT_ENTRIES; skip += 17) {
		for (unsigned stride = 1; stride <= 3; stride++) {
			struct tw__lane *lane = lane_new(2 * TW__SEGMENT_ENTRIES, odd_is_dead);
			uint64_t value = 0, even = 0;
			taken.last = 0;
			for (unsigned i = 0; i < skip; i++)
				push(lane, value += 2);
			take(lane, true);
			for (unsigned i = 0; i < 3000; i++) {
				value += stride;
				if (push(lane, value)) {
					value -= stride;
					break;
				}
				even += value % 2 == 0;
			}
			uint64_t before = taken.last, left = take(lane, true);
			cr_assert(left >= even, "skip %u stride %u: %lu live, %lu left", skip,
				  stride, even, left);
			cr_assert(taken.last == before || taken.last <= value);
			cr_assert_eq(push(lane, value + 2), 0);
			cr_assert_eq(take(lane, true), 1);
			lane_free(lane);
		}
	}
}

Test(mpsc_lane, the_reserve_gives_room_beyond_the_bound)
{
	struct tw__lane *lane = lane_new(1024, nothing_is_dead);
	uint64_t pushed = 0;
	while (push(lane, pushed + 1) == 0)
		pushed++;
	cr_assert(tw__lane_refill_reserve(lane));
	for (int i = 0; i < 10; i++) {
		tw__lane_grow_reserved(lane, 1);
		tw__lane_put(lane, 1, ++pushed);
		tw__lane_publish(lane);
	}
	cr_assert_eq(take(lane, true), pushed);
	lane_free(lane);
}

/* ------------------------------------------------------------ packing */

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

/* Entries whose timers are soon cancelled stay in few segments, whether or not a driver comes. */
Test(mpsc_lane, what_is_soon_dead_stays_in_few_segments)
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
Test(mpsc_lane, the_dead_are_not_many_more_than_the_living)
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
Test(mpsc_lane, what_is_urgent_is_still_urgent)
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

/* In order, whether a driver has read the lane in part, is reading it, or has not come. */
Test(mpsc_lane, packing_loses_nothing_that_is_alive)
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

Test(mpsc_lane, a_driver_that_comes_while_a_lane_is_packed_has_won)
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

/* ------------------------------------------------------------ two threads */

enum { PUSHED = 2000000 };

static void *produce(void *lane)
{
	for (uint64_t i = 1; i <= PUSHED; i++)
		while (push(lane, i % 5 ? i * 2 + 1 : i * 2))
			; /* at the bound: the driver will make room */
	return NULL;
}

/*
 * With a bound so small that packing and takes meet all the time, and with one that is never
 * reached. What is alive arrives, in order, though the driver gives memory back.
 */
Test(mpsc_lane, loses_nothing_beside_a_driver_on_another_thread, .timeout = 60)
{
	static const uint32_t bounds[] = {1024, 1u << 20};
	for (int i = 0; i < 2; i++) {
		struct tw__lane *lane = lane_new(bounds[i], odd_is_dead);
		pthread_t thread;
		taken.last = taken.even = 0;
		pthread_create(&thread, NULL, produce, lane);
		while (taken.even < PUSHED / 5) {
			for (int n = 0; i && n < 1000; n++)
				tw_cpu_relax(); /* so that there is something to pack */
			take(lane, taken.even % 2);
			tw__lane_purge(lane, 2);
		}
		pthread_join(thread, NULL);
		take(lane, true);
		expect_eq(taken.even, PUSHED / 5);
		lane_free(lane);
	}
}
