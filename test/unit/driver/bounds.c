/*
 * Bounds on timers, undrained entries and memory: reached, told, and recovered from; what is dead
 * does not pile up.
 */
#include <errno.h>

#include "test/support/big.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

/* Slots in a thread's own cache may come on top of max_timers. */
enum { CACHE_SLACK = 256 };

enum { MOST = 2000000 };

static tw_timer *timers; /* MOST */

static void allocate(void)
{
	timers = big_array(MOST, sizeof *timers);
	open_rig();
}

TestSuite(driver_bounds, .init = allocate, .fini = close_rig, .timeout = 60);

/* 0: no bound of the test's own. */
static void reopen_bounded(uint32_t max_timers, uint32_t lane_entries)
{
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = max_timers ? max_timers : cfg.max_timers;
	cfg.lane_entries = lane_entries;
	reopen_rig(&cfg);
}

/* Schedules until it is refused, or `most` are there. */
static size_t schedule_until_refused(struct probe *probe, size_t most, uint64_t delay_ns)
{
	size_t count = 0;
	tw_timer timer;
	while (count < most && tw_schedule(rig.service, delay_ns, probe_run, probe, &timer) == 0)
		timers[count++] = timer;
	return count;
}

static void cancel_all(size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
}

/* ------------------------------------------------------------ max_timers */

static void expect_max_timers(uint32_t max_timers)
{
	reopen_bounded(max_timers, 0);
	struct probe probe = PROBE(&rig, 1);
	for (int round = 0; round < 3; round++) {
		size_t count = schedule_until_refused(&probe, 100000, SECOND);
		expect_ge(count, max_timers);
		expect_le(count, max_timers + CACHE_SLACK);
		struct tw_service_stats before = stats_of(rig.service);
		tw_timer none = {.id = 1};
		expect_eq(tw_schedule(rig.service, SECOND, probe_run, &probe, &none), -EAGAIN);
		expect_eq(none.id, 0);
		struct tw_service_stats after = stats_of(rig.service);
		expect_same_state(&before, &after);
		expect_eq(after.rejected, before.rejected + 1);
		cancel_all(count);
		rig_advance(&rig, MS);
	}
}

Test(driver_bounds, of_timers_is_kept_and_recovered_from)
{
	expect_max_timers(1);
	expect_max_timers(100);
	expect_max_timers(5000);
}

static const struct script scripts[] = {
    {"of a series and a task are kept too",
     {{"given full; timer 0 in=1; timer 1 first=1 every=1; timer 2 never persistent; stats "
       "rejected",
       "EAGAIN, EAGAIN, EAGAIN, rejected=4"},
      {"empty; timer 0 in=1; drive 1", "@1 run 0, 0 fired"}}},
};

Test(driver_bounds, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* ------------------------------------------------------------ lane_entries */

/*
 * What tries to make room may find some, so a refusal need not be the last word; but some must
 * come.
 */
Test(driver_bounds, of_undrained_entries_is_kept_and_recovered_from)
{
	reopen_bounded(0, 1024);
	struct probe probe = PROBE(&rig, 1);
	for (int round = 0; round < 3; round++) {
		size_t before = rig.ran, accepted = 0;
		for (int i = 0; i < 5000; i++) {
			tw_timer timer = {.id = 1};
			int answer = tw_schedule(rig.service, SECOND, probe_run, &probe, &timer);
			cr_assert(answer == 0 || (answer == -EAGAIN && timer.id == 0));
			accepted += answer == 0;
		}
		expect_ge(accepted, 512);
		expect_le(accepted, 2048);
		expect_eq(stats_of(rig.service).pending, accepted);
		tw_service_advance(rig.service, TW_NO_LIMIT);
		probe_schedule(&probe, SECOND);
		rig_advance(&rig, SECOND);
		expect_eq(rig.ran - before, accepted + 1);
	}
}

Test(driver_bounds, dead_entries_make_room_in_a_lane_that_nobody_drains)
{
	reopen_bounded(0, 1024);
	struct probe alive = PROBE(&rig, 1), dead = PROBE(&rig, 2);
	for (int i = 0; i < 2000000; i++) {
		if (i % 20000 == 0)
			probe_schedule(&alive, SECOND);
		probe_schedule(&dead, SECOND);
		expect_eq(tw_cancel(rig.service, dead.timer), TW_CANCELLED);
	}
	rig_advance(&rig, SECOND);
	expect_eq(alive.runs, 100);
	expect_eq(dead.runs, 0);
}
