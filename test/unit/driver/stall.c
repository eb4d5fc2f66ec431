/* G10 and clocks that misbehave: jumps of years, standing still, stepping back. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "test/support/rig_suite.h"

TestSuite(driver_stall, .init = open_rig, .fini = close_rig, .timeout = 30);

/*
 * The same, as a driver sees it that was held up: the clock has moved, and all that was missed is
 * due now.
 */
Test(driver_stall, of_the_driver_for_ten_years_runs_each_due_timer_once)
{
	static struct probe probes[100];
	uint64_t seed = 11;
	for (int i = 0; i < 100; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], random_below(&seed, 20 * 365 * DAY));
	}
	uint64_t now_ns = RIG_START_NS + 10 * 365 * DAY;
	rig_advance(&rig, 0);
	expect_eq(tw_clock_manual_set(rig.clock, now_ns), 0);
	size_t before = rig.ran;
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT),
		  stats_of(rig.service).runs - before);
	for (size_t i = before; i < rig.ran; i++)
		expect_eq(rig.events[i].at_ns, now_ns);
	rig_advance(&rig, 10 * 365 * DAY);
	for (int i = 0; i < 100; i++)
		expect_eq(probes[i].runs, 1);
}

/* Scheduled while the driver stood still: drained, and due by their own deadlines. */
Test(driver_stall, of_the_driver_does_not_delay_what_is_scheduled_meanwhile)
{
	struct probe before = PROBE(&rig, 1), due = PROBE(&rig, 2), later = PROBE(&rig, 3);
	probe_schedule(&before, HOUR);
	rig_advance(&rig, 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + DAY), 0);
	probe_schedule(&due, 0);
	probe_schedule(&later, 7 * MS);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 2);
	expect_eq(before.runs, 1);
	expect_eq(due.runs, 1);
	rig_advance(&rig, 7 * MS - 1);
	expect_eq(later.runs, 0);
	rig_advance(&rig, 1);
	expect_ran_at(&later, RIG_START_NS + DAY + 7 * MS);
}

Test(driver_stall, epochs_of_resets_and_cancels_hold)
{
	struct probe moved = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	probe_schedule(&moved, SECOND);
	probe_schedule(&cancelled, SECOND);
	rig_advance(&rig, 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 100 * DAY), 0);
	expect_eq(tw_reset(rig.service, moved.timer, SECOND), 0);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&moved, RIG_START_NS + 100 * DAY + SECOND);
	expect_eq(cancelled.runs, 0);
}

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

/* ------------------------------------------------------------ backwards */

Test(driver_stall, a_clock_that_steps_back_counts_as_standing_still)
{
	struct probe before = PROBE(&rig, 1), meanwhile = PROBE(&rig, 2);
	probe_schedule(&before, 10 * SECOND);
	rig_advance(&rig, 5 * SECOND);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	expect_ge(stats_of(rig.service).clock_steps, 1);
	probe_schedule(&meanwhile, SECOND);
	rig_advance(&rig, SECOND - 1);
	expect_eq(meanwhile.runs, 0);
	rig_advance_to(&rig, RIG_START_NS + 7 * SECOND);
	expect_eq(meanwhile.runs, 1);
	expect_eq(before.runs, 0);
	rig_advance_to(&rig, RIG_START_NS + 10 * SECOND);
	expect_ran_at(&before, RIG_START_NS + 10 * SECOND);
}

Test(driver_stall, a_clock_that_steps_back_runs_nothing_twice)
{
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	probe_schedule(&once, 10 * MS);
	probe_schedule_every(&series, rate_of(10 * MS, 10 * MS, 0));
	rig_advance(&rig, 100 * MS);
	expect_eq(series.runs, 10);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS), 0);
	rig_advance(&rig, 100 * MS);
	expect_eq(once.runs, 1);
	expect_eq(series.runs, 10);
	rig_advance(&rig, 10 * MS);
	expect_eq(series.runs, 11);
	expect_eq(tw_cancel(rig.service, series.timer), TW_CANCELLED);
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
