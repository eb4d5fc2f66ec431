/*
 * Far deadlines, leaps of the clock, and runs that wait for their executor for years (wheel/driver/resolve.c, age.c). Stale entries, and how
 * few of them pass for current ones (wheel/slot/word.h, B).
 */
#include <errno.h>
#include <time.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"
#include "wheel/driver/driver.h"

TestSuite(driver_far_deadlines, .timeout = 60);

#define YEAR (365 * DAY)

static struct tw_service_stats stats_now(const struct rig *rig)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	expect_eq(tw_service_stats(rig->service, &stats), 0);
	return stats;
}

/* The clock leaps: no tick on the way is turned to. */
static void leap_to(struct rig *rig, uint64_t ns)
{
	expect_eq(tw_clock_manual_set(rig->clock, ns), 0);
	expect_eq(tw_service_advance(rig->service, TW_NO_LIMIT) >= 0, true);
}

static void expect_remaining(const struct rig *rig, const struct probe *probe, uint64_t deadline_ns)
{
	uint64_t left_ns;
	expect_eq(tw_remaining(rig->service, probe->timer, &left_ns), 0);
	expect_eq(left_ns, deadline_ns - rig_now(rig));
}

static void open_queued(struct rig *rig, struct queue_executor *queue, uint64_t tick_ns)
{
	queue_executor_open(queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue->base;
	cfg.tick_ns = tick_ns;
	cfg.max_timers = 1024;
	rig_open(rig, &cfg);
}

static void close_queued(struct rig *rig, struct queue_executor *queue)
{
	queue_executor_run_all(queue);
	rig_close(rig);
	queue_executor_close(queue);
}

/* ------------------------------------------------------------ far deadlines */

Test(driver_far_deadlines, a_timer_of_43_days_wakes_the_driver_at_most_ten_times)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	uint64_t deadline_ns = rig_now(&rig) + 43 * DAY + 7 * MS, next_ns;
	probe_schedule_at(&probe, deadline_ns);
	int wakes = 0;
	for (; probe.runs == 0 && wakes < 100; wakes++) {
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
		expect_eq(tw_service_next_expiry(rig.service, &next_ns), 0);
		leap_to(&rig, next_ns);
	}
	expect_ran_at(&probe, deadline_ns);
	expect_le(wakes, 10);
	rig_close(&rig);
}

Test(driver_far_deadlines, the_time_that_remains_is_exact_whatever_the_timer_goes_through)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	const uint64_t deadlines[] = {43 * DAY + 7 * MS, 44 * DAY,      20 * DAY + MS, HOUR,
				      30 * DAY,          30 * DAY - MS, 400 * DAY};
	probe_schedule_at(&probe, RIG_START_NS + 42 * DAY);
	for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
		uint64_t deadline_ns = RIG_START_NS + deadlines[i];
		expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
		expect_remaining(&rig, &probe, deadline_ns);
		rig_advance(&rig, MS);
		expect_remaining(&rig, &probe, deadline_ns);
		rig_advance(&rig, 3 * MINUTE);
		expect_remaining(&rig, &probe, deadline_ns);
	}
	rig_advance_to(&rig, RIG_START_NS + 399 * DAY);
	expect_remaining(&rig, &probe, RIG_START_NS + 400 * DAY);
	rig_advance_to(&rig, RIG_START_NS + 400 * DAY);
	expect_ran_at(&probe, RIG_START_NS + 400 * DAY);
	rig_close(&rig);
}

Test(driver_far_deadlines, a_far_move_to_later_needs_no_entry)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	for (uint64_t days = 1; days <= 1000; days++)
		expect_eq(tw_reset(rig.service, probe.timer, days * DAY), 0);
	expect_eq(stats_now(&rig).resets_eager, 0);
	rig_advance_to(&rig, RIG_START_NS + 1000 * DAY);
	expect_ran_at(&probe, RIG_START_NS + 1000 * DAY);
	rig_close(&rig);
}

Test(driver_far_deadlines, the_last_instant_of_the_range_is_reached_by_schedule_and_reset)
{
	struct rig rig;
	rig_open(&rig, NULL);
	uint64_t last_ns = RIG_START_NS + TW_MAX_DELAY_NS;
	struct probe scheduled = PROBE(&rig, 1), moved = PROBE(&rig, 2), moved_back = PROBE(&rig, 3);
	probe_schedule_at(&scheduled, last_ns);
	probe_schedule(&moved, MS);
	probe_schedule_at(&moved_back, last_ns);
	expect_eq(tw_reset_at(rig.service, moved.timer, last_ns), 0);
	expect_eq(tw_reset_at(rig.service, moved.timer, last_ns + 1), -ERANGE);
	expect_eq(tw_reset_at(rig.service, moved_back.timer, last_ns - MS), 0);
	rig_advance_to(&rig, last_ns - 2 * MS);
	expect_eq(rig.ran, 0);
	rig_advance_to(&rig, rig_tick_of(&rig, last_ns));
	expect_eq(scheduled.runs + moved.runs + moved_back.runs, 3);
	expect_eq(moved_back.ran_at_ns, rig_tick_of(&rig, last_ns - MS));
	expect_eq(moved.ran_at_ns, rig_tick_of(&rig, last_ns));
	rig_close(&rig);
}

/* -------------------------------------------------------------------- leaps */

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/*
 * Five years over 2000 timers take a millisecond. When each far timer was moved once in every 9 hours of them, they took a second. The bound leaves
 * room for builds with all checks.
 */
Test(driver_far_deadlines, a_leap_of_five_years_does_what_is_due_and_no_more)
{
	enum { TIMERS = 2000 };
	static struct probe within[TIMERS], beyond[TIMERS];
	struct rig rig;
	rig_open(&rig, NULL);
	uint64_t seed = 17;
	for (int i = 0; i < TIMERS; i++) {
		within[i] = PROBE(&rig, i);
		beyond[i] = PROBE(&rig, i);
		probe_schedule(&within[i], MS + random_below(&seed, 5 * YEAR));
		probe_schedule(&beyond[i], 6 * YEAR + random_below(&seed, YEAR));
	}
	rig_advance(&rig, MS);
	uint64_t begun_ns = cpu_ns();
	leap_to(&rig, RIG_START_NS + 5 * YEAR + MS);
	uint64_t took_ns = cpu_ns() - begun_ns;
	expect_eq(rig.ran, TIMERS);
	expect_le(took_ns, 300 * MS);
	rig_advance_to(&rig, RIG_START_NS + 8 * YEAR);
	expect_eq(rig.ran, 2 * TIMERS);
	rig_close(&rig);
}

/* More than a turn drains of a lane is still there when the clock leaps. */
Test(driver_far_deadlines, a_leap_over_what_lanes_hold_makes_nothing_late)
{
	enum { MANY = 200000 };
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < MANY; i++)
		probe_schedule(&probe, 10 * MS);
	for (int i = 0; i < MANY / 2; i++)
		expect_eq(tw_reset(rig.service, probe.timer, i % 2 ? 10 * MS : SECOND), 0);
	leap_to(&rig, RIG_START_NS + 3 * YEAR);
	for (int turns = 0; turns < 10 && probe.runs < MANY; turns++) /* a turn drains a part; the clock stands still */
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT) >= 0, true);
	expect_eq(probe.runs, MANY);
	rig_close(&rig);
}

/* ------------------------------------------------- waiting for an executor */

/* However the clock goes on meanwhile: 2^26 ticks of 50 us are an hour. */
static void wait_in_a_batch(bool refused, const uint64_t *steps, size_t n)
{
	struct rig rig;
	struct queue_executor queue;
	open_queued(&rig, &queue, 50 * TW_MICROSECOND);
	queue.refuse = refused ? SIZE_MAX : 0;
	struct probe due = PROBE(&rig, 1), moved = PROBE(&rig, 2);
	probe_schedule(&due, MS);
	probe_schedule(&moved, MS);
	rig_advance(&rig, MS);
	for (size_t i = 0; i < n; i++) {
		expect_remaining(&rig, &due, rig_now(&rig));
		expect_eq(tw_reset(rig.service, moved.timer, steps[i] + MINUTE), 0);
		leap_to(&rig, rig_now(&rig) + steps[i]);
		expect_remaining(&rig, &moved, rig_now(&rig) + MINUTE);
	}
	queue.refuse = 0;
	leap_to(&rig, rig_now(&rig) + MS);
	queue_executor_run_all(&queue);
	expect_eq(due.runs, 1);
	expect_eq(moved.runs, 0);
	leap_to(&rig, rig_now(&rig) + MINUTE);
	queue_executor_run_all(&queue);
	expect_eq(moved.runs, 1);
	close_queued(&rig, &queue);
}

static const uint64_t small_steps[] = {5 * MINUTE, 7 * MINUTE, 6 * MINUTE, 5 * MINUTE, 7 * MINUTE, 6 * MINUTE,
				       5 * MINUTE, 7 * MINUTE, 6 * MINUTE, 5 * MINUTE, 7 * MINUTE, 6 * MINUTE};
static const uint64_t large_steps[] = {20 * MINUTE, HOUR, 10 * HOUR, 28 * MINUTE, 56 * MINUTE, 400 * DAY};

Test(driver_far_deadlines, a_run_that_waits_in_a_batch_for_hours_is_due_all_the_time)
{
	wait_in_a_batch(false, small_steps, sizeof small_steps / sizeof *small_steps);
}

Test(driver_far_deadlines, a_run_that_waits_in_a_batch_while_the_clock_leaps_is_due_all_the_time)
{
	wait_in_a_batch(false, large_steps, sizeof large_steps / sizeof *large_steps);
}

Test(driver_far_deadlines, a_run_that_is_refused_for_hours_is_due_all_the_time)
{
	wait_in_a_batch(true, small_steps, sizeof small_steps / sizeof *small_steps);
}

Test(driver_far_deadlines, a_run_that_is_refused_while_the_clock_leaps_is_due_all_the_time)
{
	wait_in_a_batch(true, large_steps, sizeof large_steps / sizeof *large_steps);
}

/* ------------------------------------------------------------ stale entries */

/* Between 10 and 60 s, a thousand times a second: at most 16/15 of the entries that were pushed in the longest time that one of them may stay. */
Test(driver_far_deadlines, a_timer_that_is_toggled_holds_hardly_more_entries_than_it_pushed)
{
	enum { SECONDS = 200, PUSHES_A_SECOND = 500 };
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MINUTE);
	uint64_t most = 0;
	for (int i = 0; i < SECONDS * 1000; i++) {
		expect_eq(tw_reset(rig.service, probe.timer, i % 2 ? 10 * SECOND : MINUTE), 0);
		rig_advance(&rig, MS);
		most = rig.service->driver->wheel.entries > most ? rig.service->driver->wheel.entries : most;
	}
	expect_le(most, 60 * PUSHES_A_SECOND * 16 / 15);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, MINUTE);
	expect_eq(probe.runs, 1);
	rig_close(&rig);
}
