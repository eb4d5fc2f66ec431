/*
 * Leaps of the clock over far deadlines: each timer is moved once a level, and stretches without
 * timers are skipped (wheel/wheel.h; wheel/driver/resolve.c).
 */
#include <stdlib.h>

#include "test/support/random.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

TestSuite(driver_far_leaps, .init = open_rig, .fini = close_rig, .timeout = 60);

#define YEAR (365 * DAY)

/* One poll of the driver at this instant; no tick on the way is turned to. */
static void leap_to(uint64_t ns)
{
	expect_eq(tw_clock_manual_set(rig.clock, ns), 0);
	expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
}

/* What the wheel asks of the driver, counted: the work of a leap, whatever the machine. */
static struct {
	tw__resolve_fn *resolve;
	uint64_t calls, entries;
} asked;

static void count_asked(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
			const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks)
{
	asked.calls++;
	asked.entries += n;
	asked.resolve(context, what_for, place, entries, n, due_ticks);
}

/* Counts from here on. */
static void count_work(void)
{
	struct tw__wheel *wheel = &rig.service->driver->wheel;
	asked.calls = asked.entries = 0;
	if (wheel->resolve != count_asked)
		asked.resolve = wheel->resolve;
	wheel->resolve = count_asked;
}

static struct probe *schedule_between(int n, uint64_t from_ns, uint64_t to_ns)
{
	struct probe *probes = calloc((size_t)n, sizeof *probes);
	uint64_t seed = 17;
	for (int i = 0; i < n; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], from_ns + random_below(&seed, to_ns - from_ns));
	}
	rig_advance(&rig, MS);
	return probes;
}

/* One look at each timer on each level; stretches without timers are skipped. */
Test(driver_far_leaps, a_leap_of_five_years_over_2000_timers_looks_at_each_once_a_level)
{
	enum { TIMERS = 2000 };
	struct probe *within = schedule_between(TIMERS, 2 * MS, 5 * YEAR);
	struct probe *beyond = schedule_between(TIMERS, 6 * YEAR, 7 * YEAR);
	count_work();
	leap_to(RIG_START_NS + 5 * YEAR + 2 * MS);
	expect_eq(rig.ran, TIMERS);
	expect_le(asked.entries, (uint64_t)TIMERS * TW__WHEEL_LEVELS + TIMERS);
	expect_le(asked.calls, (uint64_t)TIMERS * TW__WHEEL_LEVELS);
	rig_advance_to(&rig, RIG_START_NS + 8 * YEAR);
	expect_eq(rig.ran, 2 * TIMERS);
	free(within);
	free(beyond);
}

Test(driver_far_leaps, a_leap_of_30_days_over_timers_that_stay_far_moves_each_at_most_twice)
{
	enum { TIMERS = 20000 };
	struct probe *probes = schedule_between(TIMERS, 31 * DAY, 400 * DAY);
	count_work();
	leap_to(RIG_START_NS + 30 * DAY);
	expect_eq(rig.ran, 0);
	expect_le(asked.entries, 2 * TIMERS);
	rig_advance_to(&rig, RIG_START_NS + 401 * DAY);
	expect_eq(rig.ran, TIMERS);
	expect_le(asked.entries, (uint64_t)TIMERS * (TW__WHEEL_LEVELS + 1));
	free(probes);
}

/* More than a turn drains of a lane is still there when the clock leaps. */
Test(driver_far_leaps, a_leap_over_what_lanes_hold_makes_nothing_late)
{
	enum { MANY = 200000 };
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 2 * MANY;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1), far = PROBE(&rig, 2), later = PROBE(&rig, 3);
	for (int i = 0; i < MANY; i++)
		probe_schedule(&probe, 10 * MS);
	for (int i = 0; i < MANY / 2; i++)
		expect_eq(tw_reset(rig.service, probe.timer, i % 2 ? 10 * MS : SECOND), 0);
	probe_schedule(&far, 2 * YEAR);
	probe_schedule(&later, 4 * YEAR);
	leap_to(RIG_START_NS + 3 * YEAR);
	for (int turns = 0; turns < 10 && probe.runs < MANY; turns++)
		leap_to(RIG_START_NS + 3 * YEAR); /* a turn drains a part */
	expect_eq(probe.runs, MANY);
	expect_eq(far.runs, 1);
	expect_eq(later.runs, 0);
	rig_advance_to(&rig, RIG_START_NS + 4 * YEAR);
	expect_ran_at(&later, RIG_START_NS + 4 * YEAR);
}
