/*
 * Deadlines beyond the range of a control word: how often they wake the driver, and resets across
 * the border (wheel/slot/word.h, WORD6; wheel/driver/resolve.c).
 */
#include <errno.h>

#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(driver_far_deadlines, .init = open_rig, .fini = close_rig, .timeout = 60);

#define YEAR (365 * DAY)

/* The first deadline that lies beyond the range, of a timer scheduled at the rig's start. */
#define BORDER_NS (RIG_START_NS + TW__NEAR_TICKS * MS)

/* One poll of the driver at this instant; no tick on the way is turned to. */
static void leap_to(uint64_t ns)
{
	expect_eq(tw_clock_manual_set(rig.clock, ns), 0);
	expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
}

static void expect_remaining(const struct probe *probe, uint64_t deadline_ns)
{
	uint64_t left_ns;
	expect_eq(tw_remaining(rig.service, probe->timer, &left_ns), 0);
	expect_eq(left_ns, deadline_ns - rig_now(&rig));
}

/* Polls whenever the service wants it, until the probe has run. Returns the number of polls. */
static int poll_until_run(const struct probe *probe)
{
	int polls = 0;
	uint64_t next_ns;
	for (; probe->runs == 0 && polls < 1000; polls++) {
		expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
		expect_eq(tw_service_next_expiry(rig.service, &next_ns), 0);
		leap_to(next_ns);
	}
	return polls;
}

/* ---------------------------------------------------------------- wake-ups */

static int wakes_of(uint64_t tick_ns, uint32_t buckets, uint64_t delay_ns)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = tick_ns;
	cfg.buckets = buckets;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	uint64_t deadline_ns = rig_now(&rig) + delay_ns;
	probe_schedule_at(&probe, deadline_ns);
	int wakes = poll_until_run(&probe);
	expect_ran_at(&probe, rig_tick_of(&rig, deadline_ns));
	return wakes;
}

Test(driver_far_deadlines, no_timer_wakes_the_driver_more_than_ten_times)
{
	static const uint64_t delays_ns[] = {43 * DAY + 7 * MS, HOUR,           10 * HOUR,
					     DAY + 7,           300 * DAY,      3 * YEAR + 1,
					     50 * YEAR,         TW_MAX_DELAY_NS};
	for (size_t i = 0; i < sizeof delays_ns / sizeof *delays_ns; i++) {
		expect_le(wakes_of(50 * TW_MICROSECOND, 64, delays_ns[i]), 10);
		expect_le(wakes_of(MS, 0, delays_ns[i]), 10);
		expect_le(wakes_of(SECOND, 65536, delays_ns[i]), 10);
	}
}

/* --------------------------------------------------------------- the border */

/* Schedules for each of the ticks around the border; each runs in its own. */
Test(driver_far_deadlines, deadlines_about_the_border_of_the_range_run_in_their_ticks)
{
	enum { AROUND = 5 };
	struct probe probes[2 * AROUND], moved[2 * AROUND], earlier[2 * AROUND];
	for (int i = 0; i < 2 * AROUND; i++) {
		uint64_t deadline_ns = BORDER_NS + (uint64_t)i * MS - AROUND * MS;
		probes[i] = PROBE(&rig, i);
		moved[i] = PROBE(&rig, i);
		earlier[i] = PROBE(&rig, i);
		probe_schedule_at(&probes[i], deadline_ns);
		probe_schedule(&moved[i], HOUR);
		expect_eq(tw_reset_at(rig.service, moved[i].timer, deadline_ns), 0);
		probe_schedule_at(&earlier[i], BORDER_NS + DAY);
		expect_eq(tw_reset_at(rig.service, earlier[i].timer, deadline_ns), 0);
		expect_remaining(&probes[i], deadline_ns);
		expect_remaining(&moved[i], deadline_ns);
		expect_remaining(&earlier[i], deadline_ns);
	}
	rig_advance_to(&rig, BORDER_NS + AROUND * MS);
	for (int i = 0; i < 2 * AROUND; i++) {
		uint64_t deadline_ns = BORDER_NS + (uint64_t)i * MS - AROUND * MS;
		expect_ran_at(&probes[i], deadline_ns);
		expect_ran_at(&moved[i], deadline_ns);
		expect_ran_at(&earlier[i], deadline_ns);
	}
}

/* Two deadlines that lie a multiple of the bits' range apart: the words are alike. */
Test(driver_far_deadlines, deadlines_a_multiple_of_the_bits_range_apart_are_told_apart)
{
	const uint64_t range_ns = (TW__DEADLINE_MASK + 1) * MS, near_ns = RIG_START_NS + HOUR;
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_at(&probe, near_ns + 3 * range_ns);
	for (uint64_t i = 4; i < 20; i++) {
		uint64_t deadline_ns = near_ns + (i * 7 % 13 + 1) * range_ns;
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
		expect_remaining(&probe, deadline_ns);
	}
	expect_eq(tw_reset_at(rig.service, probe.timer, near_ns), 0);
	expect_remaining(&probe, near_ns);
	rig_advance_to(&rig, near_ns - MS);
	expect_eq(probe.runs, 0);
	rig_advance_to(&rig, near_ns);
	expect_ran_at(&probe, near_ns);
}

struct move {
	struct probe *probe;
	uint64_t to_ns;
};

static void *move(void *arg)
{
	const struct move *move = arg;
	move->probe->answer = tw_reset_at(rig.service, move->probe->timer, move->to_ns);
	return NULL;
}

/* The later one may be drained before the earlier one: the lanes of two threads have no order. */
Test(driver_far_deadlines, deadlines_whose_bits_repeat_are_told_apart_in_two_lanes)
{
	const uint64_t range_ns = (TW__DEADLINE_MASK + 1) * MS;
	struct probe probe = PROBE(&rig, 1);
	struct move first = {&probe, RIG_START_NS + range_ns / 2};
	uint64_t second_ns = RIG_START_NS + 3 * range_ns / 2;
	pthread_t thread;
	probe_schedule(&probe, HOUR);
	rig_advance(&rig, 0);
	expect_eq(pthread_create(&thread, NULL, move, &first), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(probe.answer, 0);
	expect_eq(tw_reset_at(rig.service, probe.timer, second_ns), 0);
	rig_advance_to(&rig, second_ns - 1);
	expect_eq(probe.runs, 0);
	rig_advance_to(&rig, second_ns);
	expect_ran_at(&probe, second_ns);
}

Test(driver_far_deadlines, the_last_instant_of_the_range_is_reached_by_schedule_and_reset)
{
	uint64_t last_ns = RIG_START_NS + TW_MAX_DELAY_NS;
	struct probe scheduled = PROBE(&rig, 1), moved = PROBE(&rig, 2), back = PROBE(&rig, 3);
	probe_schedule_at(&scheduled, last_ns);
	probe_schedule(&moved, MS);
	probe_schedule_at(&back, last_ns);
	expect_eq(tw_reset_at(rig.service, moved.timer, last_ns), 0);
	expect_eq(tw_reset_at(rig.service, moved.timer, last_ns + 1), -ERANGE);
	expect_eq(tw_reset_at(rig.service, back.timer, last_ns - MS), 0);
	rig_advance_to(&rig, last_ns - 2 * MS);
	expect_eq(rig.ran, 0);
	rig_advance_to(&rig, rig_tick_of(&rig, last_ns));
	expect_eq(scheduled.runs + moved.runs + back.runs, 3);
	expect_eq(back.ran_at_ns, rig_tick_of(&rig, last_ns - MS));
	expect_eq(moved.ran_at_ns, rig_tick_of(&rig, last_ns));
}

/* A delay of the whole range, counted from decades after the service's start. */
Test(driver_far_deadlines, a_longest_delay_decades_after_the_start_runs_in_its_tick)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = 50 * TW_MICROSECOND;
	cfg.buckets = 64;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	leap_to(RIG_START_NS + 100 * YEAR);
	probe_schedule(&probe, TW_MAX_DELAY_NS);
	rig_advance(&rig, TW_MAX_DELAY_NS - MS);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, 2 * MS);
	expect_ran_at(&probe, rig_tick_of(&rig, RIG_START_NS + 100 * YEAR + TW_MAX_DELAY_NS));
}

/* ------------------------------------------------------------------- scripts */

static const struct script scripts[] = {
    {"a series with a period of days runs at its instants, and needs one entry",
     {{"timer 0 first=1 every=777600000 plain; drive 2332800000; stats entries",
       "@1 run 0, @777600001 run 0, @1555200001 run 0, @2332800000 entries=1"},
      {"reset 0 by=777600000; drive 777599999; drive 1; drive 777599999; drive 1; cancel 0",
       "@3110400000 run 0, @3888000000 run 0, CANCELLED"}}},
    {"a move to a later far deadline needs no entry",
     {{"timer 0 in=1000 plain; reset 0 by=86400000; reset 0 by=864000000; reset 0 by=8640000000",
       ""},
      {"stats resets_eager; drive 1; stats entries; drive 8640000000",
       "resets_eager=0, @1 entries=1, @8640000000 run 0"}}},
    {"a callback moves its own timer far and near",
     {{"timer 0 in=72000000 plain times=1 {reset 0 by=34560000000; reset 0 by=60000}", ""},
      {"timer 1 in=72000000 plain times=1 {reset 1 by=60000; reset 1 by=34560000000}", ""},
      {"drive 34632000000", "@72000000 run 0, run 1, @72060000 run 0, @34632000000 run 1"}}},
    {"one that is moved far while it waits for its executor runs in its tick",
     {{"given queued; timer 0 in=72000000 plain; hold; drive 72000000; reset 0 by=2592000000; left "
       "0",
       "@72000000 left 2592000000"},
      {"drive 1; pump; drive 2591999998; pump; drive 1", "@2664000000 run 0"}}},
    {"the same where the executor has refused",
     {{"given queued; refuse -1; timer 0 in=72000000 plain; hold; drive 72000000; reset 0 "
       "by=2592000000",
       ""},
      {"refuse 0; drive 1; pump; drive 2591999998; pump; drive 1", "@2664000000 run 0"}}},
    {"the same where it gives the run back",
     {{"given queued; timer 0 in=1 plain; hold; drive 1; reset 0 by=2592000000; give_back; drive "
       "2591999999",
       ""},
      {"drive 1", "@2592000001 run 0"}}},
};

Test(driver_far_deadlines, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
