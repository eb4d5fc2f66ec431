/*
 * Packing: a lane drops the dead entries of its last segment when that segment is full. It loses
 * nothing that is alive.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/time.h>

#include "mpsc/lane.h"
#include "test/unit/mpsc/lanes.h"

static void all_are_dead(void *context, const struct tw__entry *entries, unsigned n,
			 unsigned char *uses)
{
	for (unsigned i = 0; i < n; i++)
		uses[i] = entries[i].value == UINT64_MAX ? TW__ENTRY_BASE : TW__ENTRY_DEAD;
}

static uint64_t oldest_alive;

static void old_are_dead(void *context, const struct tw__entry *entries, unsigned n,
			 unsigned char *uses)
{
	for (unsigned i = 0; i < n; i++)
		uses[i] = entries[i].value < oldest_alive ? TW__ENTRY_DEAD : TW__ENTRY_LIVE;
}

/* Takes all there is; checks that values rise. The last one, and how many values are even. */
static uint64_t take_even(struct tw__lane *lane, uint64_t *last)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	uint64_t taken = 0;
	for (int n; (n = tw__lane_take(lane, entries)) > 0;)
		for (int i = 0; i < n; i++) {
			if (entries[i].what == 0)
				continue;
			cr_assert(entries[i].value > *last, "%lu came after %lu", entries[i].value,
				  *last);
			*last = entries[i].value;
			taken += entries[i].value % 2 == 0;
		}
	return taken;
}

/*
 * Entries whose timers are soon cancelled stay in one segment, however many there are and whether
 * or not a driver comes.
 */
Test(mpsc_lane_packing, dead_entries_are_dropped_from_the_last_segment)
{
	struct tw__lane *lane = lane_new(1u << 20, all_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	for (uint64_t i = 1; i <= 100000; i++)
		cr_assert_eq(push(lane, i), 0);
	cr_assert_eq(tw__lane_segments(lane), 1);
	cr_assert_leq(tw__lane_written(lane), TW__SEGMENT_ENTRIES);
	for (int round = 0; round < 1000; round++) {
		for (uint64_t i = 0; i < 100; i++)
			cr_assert_eq(push(lane, i), 0);
		cr_assert_geq(tw__lane_take(lane, entries), 0);
	}
	cr_assert_leq(tw__lane_segments(lane), 2);
	lane_free(lane);
}

/* A driver that has met the lock may come a tick later: the lane must not grow until then. */
Test(mpsc_lane_packing, dead_entries_are_dropped_also_while_the_driver_wants_the_lock)
{
	struct tw__lane *lane = lane_new(1u << 20, all_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	cr_assert_eq(push(lane, 1), 0);
	tw_store_relaxed(&lane->lock, 1); /* as while it is packed */
	cr_assert_eq(tw__lane_take(lane, entries), -1);
	tw_store_relaxed(&lane->lock, 0);
	for (uint64_t i = 1; i <= 100000; i++)
		cr_assert_eq(push(lane, i), 0);
	cr_assert_eq(tw__lane_segments(lane), 1);
	lane_free(lane);
}

/* A lane that is packed until a signal comes while a take waits for it. */
static struct tw__lane *packed;
static volatile sig_atomic_t is_taking, has_met;

static void end_of_packing(int signal)
{
	if (!is_taking || !tw_load_relaxed(&packed->wanted))
		return;
	has_met = 1;
	tw_store_release(&packed->lock, 0);
}

static void signal_every_millisecond(void)
{
	struct sigaction action = {.sa_handler = end_of_packing, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}};
	cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/*
 * Takes until the signal has met a take that wants the lock. True: that take waited on, and got
 * what was pushed.
 */
static bool takes_what_is_let_go(void)
{
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	int taken;
	has_met = 0;
	cr_assert_eq(push(packed, 1), 0);
	tw_store_relaxed(&packed->lock, 1); /* as while it is packed */
	do {
		tw_store_relaxed(&packed->wanted, 0);
		is_taking = 1;
		taken = tw__lane_take(packed, entries);
		is_taking = 0;
	} while (!has_met);
	return taken > 0;
}

/* Once in many rounds will do: the signal may come when the take has just tried a last time. */
Test(mpsc_lane_packing, a_take_waits_while_the_lane_is_packed)
{
	bool waited = false;
	packed = lane_new(4096, all_are_dead);
	signal_every_millisecond();
	for (int round = 0; round < 100 && !waited; round++)
		waited = takes_what_is_let_go();
	cr_assert(waited);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	lane_free(packed);
}

/*
 * A base goes where another follows before any entry that is kept. The last one is kept: entries to
 * come count from it.
 */
Test(mpsc_lane_packing, packing_keeps_the_bases_that_are_needed)
{
	struct tw__lane *lane = lane_new(1u << 20, all_are_dead);
	struct tw__entry entries[TW__SEGMENT_ENTRIES];
	for (uint64_t i = 0; i < TW__SEGMENT_ENTRIES; i++)
		cr_assert_eq(push(lane, i % 50 == 20 ? UINT64_MAX : i), 0);
	cr_assert_eq(push(lane, 1), 0);
	cr_assert_eq(tw__lane_take(lane, entries), 2);
	cr_assert_eq(entries[0].value, UINT64_MAX);
	cr_assert_eq(entries[1].value, 1);
	lane_free(lane);
}

/*
 * All that is alive is taken, in order, whether a driver has read the segment in part, is reading
 * it, or has not come.
 */
Test(mpsc_lane_packing, packing_loses_nothing_that_is_alive)
{
	for (unsigned every = 1; every <= 300; every += 7) {
		struct tw__lane *lane = lane_new(1u << 20, odd_is_dead);
		uint64_t last = 0, even = 0, taken = 0;
		for (uint64_t i = 1; i <= 20000; i++) {
			/* the driver is inside: the segment is left as it is */
			bool is_busy = i % 1000 < 10;
			tw_store_relaxed(&lane->lock, is_busy);
			cr_assert_eq(push(lane, i % 5 ? i * 2 + 1 : i * 2), 0);
			even += i % 5 == 0;
			tw_store_relaxed(&lane->lock, 0);
			if (i % every == 0)
				taken += take_even(lane, &last);
		}
		taken += take_even(lane, &last);
		cr_assert_eq(taken, even, "%lu of %lu, taken every %u", taken, even, every);
		lane_free(lane);
	}
}

/* A segment most of which is alive is not walked for the little that is dead. */
Test(mpsc_lane_packing, few_dead_entries_are_left_for_the_driver)
{
	struct tw__lane *lane = lane_new(1u << 20, old_are_dead);
	uint64_t pushed = 0;
	for (; pushed < 10 * TW__SEGMENT_ENTRIES; pushed++) {
		oldest_alive = pushed > 240 ? pushed - 240 : 0;
		cr_assert_eq(push(lane, pushed), 0);
	}
	cr_assert_eq(tw__lane_written(lane), pushed);
	lane_free(lane);
}
