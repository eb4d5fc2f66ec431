/*
 * Moving timers: later, earlier, to and from far away, too late, and while they wait for their
 * executor.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_reset, .timeout = 30);

Test(timer_reset, to_later_counts_from_the_call)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, 6 * MS);
	expect_eq(tw_reset(rig.service, probe.timer, 10 * MS), 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + 16 * MS);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.resets, 1);
	expect_eq(stats.resets_eager, 0);
	rig_close(&rig);
}

Test(timer_reset, to_earlier_counts_from_the_call)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	rig_advance(&rig, 6 * MS);
	expect_eq(tw_reset(rig.service, probe.timer, 10 * MS), 0);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, RIG_START_NS + 16 * MS);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.resets, 1);
	expect_eq(stats.resets_eager, 1);
	rig_close(&rig);
}

Test(timer_reset, at_moves_to_an_instant)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe later = PROBE(&rig, 1), earlier = PROBE(&rig, 2), past = PROBE(&rig, 3);
	probe_schedule(&later, 10 * MS);
	probe_schedule(&earlier, 10 * SECOND);
	probe_schedule(&past, 10 * SECOND);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_reset_at(rig.service, later.timer, RIG_START_NS + 30 * MS), 0);
	expect_eq(tw_reset_at(rig.service, earlier.timer, RIG_START_NS + 20 * MS), 0);
	expect_eq(tw_reset_at(rig.service, past.timer, RIG_START_NS), 0);
	rig_advance(&rig, MS);
	expect_eq(past.runs, 1);
	rig_advance(&rig, HOUR);
	expect_ran_at(&later, RIG_START_NS + 30 * MS);
	expect_ran_at(&earlier, RIG_START_NS + 20 * MS);
	rig_close(&rig);
}

Test(timer_reset, to_zero_makes_it_due_at_once)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, HOUR);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_reset(rig.service, probe.timer, 0), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_ran_at(&probe, RIG_START_NS + 5 * MS);
	rig_close(&rig);
}

Test(timer_reset, to_where_it_was_changes_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_reset(rig.service, probe.timer, 10 * MS), 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + 10 * MS);
	rig_close(&rig);
}

/* Before the driver has looked at it for the first time. */
Test(timer_reset, of_a_timer_just_scheduled_moves_it_both_ways)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe later = PROBE(&rig, 1), earlier = PROBE(&rig, 2), both = PROBE(&rig, 3);
	probe_schedule(&later, 10 * MS);
	probe_schedule(&earlier, 10 * SECOND);
	probe_schedule(&both, 10 * MS);
	expect_eq(tw_reset(rig.service, later.timer, 20 * SECOND), 0);
	expect_eq(tw_reset(rig.service, earlier.timer, 20 * MS), 0);
	expect_eq(tw_reset(rig.service, both.timer, DAY), 0);
	expect_eq(tw_reset(rig.service, both.timer, 7 * MS), 0);
	rig_advance(&rig, HOUR);
	expect_ran_at(&later, RIG_START_NS + 20 * SECOND);
	expect_ran_at(&earlier, RIG_START_NS + 20 * MS);
	expect_ran_at(&both, RIG_START_NS + 7 * MS);
	rig_close(&rig);
}

Test(timer_reset, of_far_timers_to_near_and_back)
{
	struct rig rig;
	rig_open(&rig, NULL);
	static const uint64_t stations_ns[] = {400 * DAY, 3 * MS,     90 * DAY,  HOUR,
					       800 * DAY, 2 * SECOND, 20 * DAY,  MS,
					       DAY,       30 * DAY,   5 * SECOND};
	enum { STATIONS = sizeof(stations_ns) / sizeof(stations_ns[0]) };
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 1000 * DAY);
	for (int round = 0; round < 50; round++) {
		uint64_t delay_ns = stations_ns[round % STATIONS];
		expect_eq(tw_reset(rig.service, probe.timer, delay_ns), 0);
		uint64_t left_ns = 0;
		rig_advance(&rig, 0); /* until the driver has looked, the hint is a rough one */
		expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
		expect_ge(left_ns, delay_ns);
		expect_le(left_ns, delay_ns + 2 * MS);
		if (round % 3)
			rig_advance(&rig, delay_ns / 2);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_tick_of(&rig, rig_now(&rig) + 50 * DAY);
	expect_eq(tw_reset(rig.service, probe.timer, 50 * DAY), 0);
	rig_advance(&rig, 2000 * DAY);
	expect_ran_at(&probe, due_ns);
	rig_close(&rig);
}

/* A connection's timeout, pushed out with each request: it never fires while they come. */
Test(timer_reset, again_and_again_holds_the_timer_off)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 30 * SECOND);
	for (int i = 0; i < 10000; i++) {
		rig_advance(&rig, 29 * SECOND);
		expect_eq(tw_reset(rig.service, probe.timer, 30 * SECOND), 0);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_now(&rig) + 30 * SECOND;
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, due_ns);
	rig_close(&rig);
}

Test(timer_reset, between_two_deadlines_leaves_no_growing_pile_of_entries)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 5 * SECOND);
	for (int i = 0; i < 60000; i++) {
		expect_eq(tw_reset(rig.service, probe.timer, i % 2 ? 5 * SECOND : MINUTE), 0);
		if (i % 5 == 0)
			rig_advance(&rig, MS);
		if (i % 1000 == 999)
			expect_le(stats_of(rig.service).entries, 2 * 4096);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_tick_of(&rig, rig_now(&rig) + 5 * SECOND);
	expect_eq(tw_reset(rig.service, probe.timer, 5 * SECOND), 0);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, due_ns);
	expect_eq(stats_of(rig.service).pending, 0);
	rig_close(&rig);
}

/* Where the second one has an entry already: not even one more for each turn. */
Test(timer_reset, between_two_instants_needs_an_entry_for_each)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	uint64_t near_ns = rig_now(&rig) + 5 * SECOND, far_ns = rig_now(&rig) + MINUTE;
	probe_schedule_at(&probe, near_ns);
	for (int i = 0; i < 1000; i++) {
		expect_eq(tw_reset_at(rig.service, probe.timer, i % 2 ? near_ns : far_ns), 0);
		rig_advance(&rig, 0);
	}
	expect_le(stats_of(rig.service).entries, 2);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, near_ns);
	rig_close(&rig);
}

/*
 * Nobody drives: moves to earlier take room in the lane, and are refused rather than pile up or be
 * lost.
 */
Test(timer_reset, between_two_deadlines_without_a_driver_is_bounded)
{
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 1024;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 5 * SECOND);
	rig_advance(&rig, 0);
	uint64_t wanted_ns = 5 * SECOND;
	for (int i = 0; i < 20000; i++) {
		uint64_t next_ns = i % 2 ? 5 * SECOND : MINUTE;
		int answer = tw_reset(rig.service, probe.timer, next_ns);
		if (answer == 0)
			wanted_ns = next_ns;
		else
			expect_eq(answer, -EAGAIN);
	}
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, RIG_START_NS + wanted_ns);
	rig_close(&rig);
}

/* ------------------------------------------------------------ refused */

Test(timer_reset, of_what_is_gone_says_so)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe fired = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	probe_schedule(&fired, MS);
	probe_schedule(&cancelled, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	rig_advance(&rig, MS);
	expect_eq(tw_reset(rig.service, fired.timer, MS), -ENOENT);
	expect_eq(tw_reset(rig.service, cancelled.timer, MS), -ENOENT);
	expect_eq(tw_reset(rig.service, (tw_timer){0}, MS), -ENOENT);
	expect_eq(tw_reset_at(rig.service, fired.timer, RIG_START_NS + SECOND), -ENOENT);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 1);
	rig_close(&rig);
}

Test(timer_reset, out_of_range_changes_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	struct tw_service_stats before = stats_of(rig.service);
	expect_eq(tw_reset(rig.service, probe.timer, TW_MAX_DELAY_NS + 1), -ERANGE);
	expect_eq(tw_reset(rig.service, probe.timer, UINT64_MAX), -ERANGE);
	expect_eq(tw_reset_at(rig.service, probe.timer, UINT64_MAX), -ERANGE);
	struct tw_service_stats after = stats_of(rig.service);
	expect_same_state(&before, &after);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + 10 * MS);
	rig_close(&rig);
}

Test(timer_reset, of_a_timer_of_a_closed_service_is_refused)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_reset(rig.service, probe.timer, 0), -ESHUTDOWN);
	expect_eq(tw_reset_at(rig.service, probe.timer, 0), -ESHUTDOWN);
	rig_close(&rig);
}

/* ------------------------------------------------------------ expired, not yet claimed */

static void reset_the_other(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, probe->other->timer, 50 * MS);
}

Test(timer_reset, to_later_of_a_neighbour_due_in_the_same_tick_wins)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	first.act = reset_the_other;
	first.other = &second;
	probe_schedule(&first, 10 * MS);
	probe_schedule(&second, 10 * MS);
	rig_advance(&rig, 20 * MS);
	expect_eq(first.answer, 0);
	expect_eq(second.runs, 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&second, RIG_START_NS + 60 * MS);
	rig_close(&rig);
}

/* Opens a rig whose executor holds one expired timer. */
static void open_with_one_waiting(struct rig *rig, struct queue_executor *queue,
				  struct probe *probe)
{
	queue_executor_open(queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue->base;
	rig_open(rig, &cfg);
	*probe = PROBE(rig, 1);
	probe_schedule(probe, MS);
	rig_advance(rig, MS);
	expect_eq(queue_executor_waiting(queue), 1);
}

Test(timer_reset, to_later_while_it_waits_for_its_executor_wins)
{
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	open_with_one_waiting(&rig, &queue, &probe);
	expect_eq(tw_reset(rig.service, probe.timer, 30 * MS), 0);
	expect_eq(queue_executor_run_next(&queue), 0);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, 29 * MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(probe.runs, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/*
 * The old ticket is still out when the timer is due again: it may serve, or a new one; one run
 * comes of it.
 */
Test(timer_reset, of_one_that_waits_for_its_executor_runs_once)
{
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	open_with_one_waiting(&rig, &queue, &probe);
	expect_eq(tw_reset(rig.service, probe.timer, 30 * MS), 0);
	rig_advance(&rig, 40 * MS);
	expect_ge(queue_executor_waiting(&queue), 1);
	queue_executor_run_all(&queue);
	for (int i = 0; i < 5; i++) {
		rig_advance(&rig, MS);
		queue_executor_run_all(&queue);
	}
	expect_eq(probe.runs, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(timer_reset, to_far_away_of_one_that_waits_for_its_executor)
{
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	open_with_one_waiting(&rig, &queue, &probe);
	uint64_t due_ns = rig_now(&rig) + 400 * DAY;
	expect_eq(tw_reset(rig.service, probe.timer, 400 * DAY), 0);
	expect_eq(queue_executor_run_next(&queue), 0);
	rig_advance_to(&rig, due_ns - MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	rig_advance_to(&rig, due_ns);
	expect_eq(queue_executor_run_all(&queue), 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}
