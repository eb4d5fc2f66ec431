/* G10 and clocks that misbehave: jumps of years, standing still, stepping back. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(driver_stall, .init = open_rig, .fini = close_rig, .timeout = 30);

struct mover {
	tw_service *service;
	tw_timer timer;
	uint64_t due_ns;
	atomic_uint round, done;
};

enum { LAST_ROUND = UINT32_MAX };

/* In each round: a bit later, and later again, as long as it has not run. */
static void *move_on(void *arg)
{
	struct mover *m = arg;
	for (unsigned round; (round = atomic_load(&m->round)) != LAST_ROUND;) {
		for (unsigned i = 1; i < 200 && round != atomic_load(&m->done); i++)
			if (tw_reset_at(m->service, m->timer, m->due_ns + i * MS) != 0)
				break;
		if (round != atomic_load(&m->done))
			atomic_store(&m->done, round);
		sched_yield();
	}
	return NULL;
}

static void count_run(void *runs)
{
	++*(unsigned *)runs;
}

/*
 * What is overdue by hours is given a deadline that cannot be taken for the future; somebody else
 * moves the timer in that moment.
 */
Test(driver_stall, a_timer_that_is_moved_while_it_is_found_overdue_by_hours_is_not_lost)
{
	enum { ROUNDS = 10000 };
	static struct mover mover;
	mover.service = rig.service;
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, move_on, &mover), 0);
	unsigned runs = 0;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		mover.due_ns = rig_now(&rig) + 50 * MS;
		expect_eq(tw_schedule_at(rig.service, mover.due_ns + 50 * MS, count_run, &runs,
					 &mover.timer),
			  0);
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
		/* to earlier: RELOCATED from here on */
		expect_eq(tw_reset_at(rig.service, mover.timer, mover.due_ns), 0);
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
		atomic_store(&mover.round, round);
		expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + 11 * HOUR), 0);
		tw_service_advance(rig.service, TW_NO_LIMIT);
		while (atomic_load(&mover.done) != round)
			sched_yield();
		rig_advance(&rig, HOUR);
		expect_eq(runs, round);
	}
	atomic_store(&mover.round, LAST_ROUND);
	pthread_join(thread, NULL);
}

/* ------------------------------------------------------------ scripts */

static const struct script scripts[] = {
    {"does not delay what is scheduled meanwhile",
     {{"timer 0 in=3600000 plain; drive 0; pass 86400000; timer 1 in=0 plain", ""},
      {"timer 2 in=7 plain; poll; drive 7",
       "@86400000 run 0 late=82800000, run 1, 2, @86400007 run 2"}}},
    {"is over for what is moved and cancelled then",
     {{"timer 0 1 in=1000 plain; drive 0; pass 8640000000; reset 0 by=1000; cancel 1; poll",
       "@8640000000 CANCELLED"},
      {"drive 1000", "@8640001000 run 0"}}},
    {"is what a clock that steps back counts as",
     {{"timer 0 in=10000 plain; drive 5000; pass -4000; poll; timer 1 in=1000 plain; drive 999",
       ""},
      {"drive 5001; drive 2999", "@6000 run 1"},
      {"drive 1", "@10000 run 0"}}},
    {"runs nothing twice when the clock steps back",
     {{"timer 0 in=10 plain; timer 1 first=10 every=20 plain; drive 30",
       "@10 run 0, run 1, @30 run 1"},
      {"pass -30; drive 30", ""},
      {"drive 20; cancel 1", "@50 run 1, CANCELLED"}}},
};

Test(driver_stall, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

Test(driver_stall, a_clock_that_goes_to_and_fro_ends_every_timer_once)
{
	static struct probe probes[2000];
	uint64_t seed = 23, farthest_ns = RIG_START_NS;
	for (int i = 0; i < 2000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], random_below(&seed, 10 * SECOND));
		uint64_t there_ns = RIG_START_NS + random_below(&seed, 10 * SECOND);
		farthest_ns = there_ns > farthest_ns ? there_ns : farthest_ns;
		expect_eq(tw_clock_manual_set(rig.clock, there_ns), 0);
		if (i % 3 == 0)
			tw_service_advance(rig.service, TW_NO_LIMIT);
	}
	rig_advance_to(&rig, farthest_ns + MINUTE);
	for (int i = 0; i < 2000; i++)
		expect_eq(probes[i].runs, 1);
}

/* More than a turn drains of a lane is still there when the clock leaps. */
Test(driver_stall, a_leap_over_what_lanes_hold_makes_nothing_late)
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
	probe_schedule(&far, 700 * DAY);
	probe_schedule(&later, 1400 * DAY);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 1000 * DAY), 0);
	for (int turns = 0; turns < 10 && probe.runs < MANY; turns++)
		expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	expect_eq(probe.runs, MANY);
	expect_eq(far.runs, 1);
	expect_eq(later.runs, 0);
	rig_advance_to(&rig, RIG_START_NS + 1400 * DAY);
	expect_ran_at(&later, RIG_START_NS + 1400 * DAY);
}
