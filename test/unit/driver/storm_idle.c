/*
 * After a storm nobody calls: the driver wakes up by itself to give memory back (G11), and only
 * then (G9). Half of the timers fire, the rest is cancelled: before the memory goes back, while it
 * does, or when it has. The service is driven when tw_service_next_expiry says so, and not else.
 */
#include "storm.h"

enum { MANY = 1000000, SOME = 400000 /* of the half that does not fire */ };

#define WITHIN_NS (15 * SECOND)

static tw_timer *timers; /* MANY / 2 */

static void allocate(void)
{
	timers = big_array(MANY / 2, sizeof *timers);
	open_rig();
}

TestSuite(driver_storm_idle, .init = allocate, .fini = close_rig, .timeout = 90);

static uint64_t next_expiry(void)
{
	uint64_t at_ns;
	expect_eq(tw_service_next_expiry(rig.service, &at_ns), 0);
	return at_ns;
}

/* Drives when it is time, as long as `while_` says so. How often. */
static int drive(bool (*while_)(void), uint64_t span_ns)
{
	uint64_t end_ns = rig_now(&rig) + span_ns, at_ns;
	int turns = 0;
	for (; while_() && (at_ns = next_expiry()) <= end_ns; turns++)
		rig_advance(&rig, at_ns > rig_now(&rig) ? at_ns - rig_now(&rig) : 0);
	return turns;
}

static bool always(void)
{
	return true;
}

static bool before_purge(void)
{
	return !tw__purging(rig.service);
}

static bool in_purge(void)
{
	return tw__purging(rig.service);
}

/* Half have fired, the others are timers[]. Bytes that are held. */
static int64_t open_after_half(void)
{
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 4 << 20; /* a storm that nobody drains */
	reopen_rig(&cfg);
	for (size_t i = 0; i < MANY / 2; i++) {
		expect_eq(tw_schedule(rig.service, MS, ignore, NULL, NULL), 0);
		expect_eq(tw_schedule(rig.service, HOUR, ignore, NULL, &timers[i]), 0);
	}
	rig_advance(&rig, 5 * MS);
	expect_eq(stats_of(rig.service).fired, MANY / 2);
	return held_bytes(rig.service);
}

static void expect_given_back(int64_t held)
{
	drive(always, WITHIN_NS);
	expect_le(held_bytes(rig.service), held / 10);
	expect_eq(next_expiry() >= rig_now(&rig) + HOUR - MS, true);
	expect_sound(rig.service);
	expect_all_gone(timers, MANY / 2);
}

Test(driver_storm_idle, cancelled_before_memory_goes_back)
{
	int64_t held = open_after_half();
	cancel_between(rig.service, timers, 0, MANY / 2);
	expect_given_back(held);
}

Test(driver_storm_idle, cancelled_while_memory_goes_back)
{
	int64_t held = open_after_half();
	cancel_between(rig.service, timers, 0, SOME);
	drive(before_purge, WITHIN_NS);
	expect_eq(in_purge(), true);
	for (int i = 0; i < 50; i++) /* about half of the blocks have been looked at */
		drive(in_purge, MS);
	expect_eq(in_purge(), true);
	cancel_between(rig.service, timers, SOME, MANY / 2);
	drive(in_purge, WITHIN_NS);
	expect_given_back(held);
}

Test(driver_storm_idle, cancelled_after_memory_went_back)
{
	int64_t held = open_after_half();
	cancel_between(rig.service, timers, 0, SOME);
	drive(before_purge, WITHIN_NS);
	drive(in_purge, WITHIN_NS);
	expect_eq(in_purge(), false);
	cancel_between(rig.service, timers, SOME, MANY / 2);
	expect_given_back(held);
}

/* In each block of memory a timer lives: nothing can go back, and nobody tries again and again. */
Test(driver_storm_idle, sleeps_where_nothing_can_go_back)
{
	enum { NTH = 400, MOST_TURNS = 3000 /* a pass over all blocks, a step a tick */ };
	int64_t held = open_after_half();
	for (size_t i = 0; i < MANY / 2; i++)
		if (i % NTH)
			cancel_between(rig.service, timers, i, i + 1);
	int turns = drive(always, 10 * WITHIN_NS);
	expect_ge(held_bytes(rig.service), held / 3);
	expect_le(turns, MOST_TURNS);
	expect_eq(drive(always, 10 * WITHIN_NS) <= 8, true); /* only far timers move (G9) */
}
