/* late_ns of tw_current: how late a run began. The callback decides what to do about it. */
#include "test/support/current.h"
#include "test/support/rig_suite.h"

TestSuite(timer_lateness, .init = open_rig, .fini = close_rig, .timeout = 30);

static void expect_late(size_t event, uint64_t late_ns)
{
	expect_lt(event, rig.ran);
	expect_eq(rig.events[event].late_ns, late_ns);
}

static void set_clock(uint64_t at_ns)
{
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + at_ns), 0);
	while (tw_service_advance(rig.service, TW_NO_LIMIT) > 0)
		;
}

Test(timer_lateness, is_0_in_time)
{
	struct probe probe = PROBE(&rig, 1), far = PROBE(&rig, 2), series = PROBE(&rig, 3);
	probe_schedule(&probe, 10 * MS);
	probe_schedule_released(&far, 100 * DAY);
	probe_schedule_every(&series, rate_of(MS, 10 * MS, 3));
	rig_advance(&rig, 101 * DAY);
	expect_eq(rig.ran, 5);
	for (size_t i = 0; i < rig.ran; i++)
		expect_late(i, 0);
}

Test(timer_lateness, counts_from_the_tick_of_a_one_shot)
{
	for (int released = 0; released < 2; released++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1);
		uint64_t delay_ns = 10 * MS - MS / 2; /* due in the tick that ends at 10 ms */
		if (released)
			probe_schedule_released(&probe, delay_ns);
		else
			probe_schedule(&probe, delay_ns);
		set_clock(55 * MS + 7);
		expect_late(0, 45 * MS + 7);
	}
}

Test(timer_lateness, counts_from_where_a_timer_was_moved_to)
{
	struct probe later = PROBE(&rig, 1), earlier = PROBE(&rig, 2);
	probe_schedule(&later, 10 * MS);
	probe_schedule(&earlier, HOUR);
	expect_eq(tw_reset(rig.service, later.timer, 40 * MS), 0);
	expect_eq(tw_reset(rig.service, earlier.timer, 20 * MS), 0);
	set_clock(50 * MS);
	expect_eq(rig.ran, 2);
	for (size_t i = 0; i < 2; i++)
		expect_late(i, rig.events[i].id == 1 ? 10 * MS : 30 * MS);
}

/* Beyond what the bits of a word can tell, at 1 ms a tick. */
Test(timer_lateness, counts_from_a_deadline_long_past)
{
	struct probe waiting = PROBE(&rig, 1), moved = PROBE(&rig, 2), past = PROBE(&rig, 3);
	probe_schedule(&waiting, 10 * MS);
	probe_schedule_every(&moved, delay_of(10 * MS, 10 * MS, 1));
	expect_eq(tw_reset(rig.service, moved.timer, 20 * MS), 0);
	set_clock(30 * DAY);
	expect_eq(rig.ran, 2);
	for (size_t i = 0; i < 2; i++)
		expect_late(i, 30 * DAY - (rig.events[i].id == 1 ? 10 : 20) * MS);
	probe_schedule_at(&past, RIG_START_NS + 5 * MS);
	set_clock(30 * DAY + MS);
	expect_late(2, 30 * DAY - 4 * MS);
}

Test(timer_lateness, of_a_series_counts_from_the_instant_that_its_run_stands_for)
{
	static const uint64_t late_ms[] = {5, 5, 35}; /* skip, coalesce, burst: 40, 40, 10 ms */
	for (int missed = TW_MISSED_SKIP; missed <= TW_MISSED_BURST; missed++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1);
		struct tw_period period = rate_of(10 * MS, 10 * MS, 0);
		period.missed = (enum tw_missed_policy)missed;
		probe_schedule_every(&probe, period);
		set_clock(45 * MS);
		for (size_t i = 0; i < rig.ran; i++)
			expect_late(i, (late_ms[missed] - 10 * i) * MS);
		expect_eq(rig.ran, missed == TW_MISSED_BURST ? 4 : 1);
		expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	}
}

Test(timer_lateness, of_a_fixed_delay_counts_from_its_instant)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, delay_of(10 * MS, 10 * MS, 0));
	set_clock(45 * MS);
	expect_late(0, 35 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

Test(timer_lateness, grows_in_the_executors_queue)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1), persistent = PROBE(&rig, 2);
	probe_schedule(&probe, 10 * MS);
	struct tw_task task = probe_task(&persistent);
	task.flags = TW_TASK_PERSISTENT;
	task.when_ns = 20 * MS;
	probe_schedule_task(&persistent, &task);
	rig_advance(&rig, SECOND);
	expect_eq(queue_executor_run_all(&queue), 2);
	expect_late(0, SECOND - 10 * MS);
	expect_late(1, SECOND - 20 * MS);
	expect_eq(tw_cancel(rig.service, persistent.timer), TW_CANCELLED);
}

Test(timer_lateness, is_0_for_what_a_close_runs_before_its_time)
{
	struct probe near = PROBE(&rig, 1), far = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     past = PROBE(&rig, 4);
	probe_schedule(&near, SECOND);
	probe_schedule(&far, 1000 * DAY);
	probe_schedule_every(&series, rate_of(SECOND, SECOND, 0));
	probe_schedule(&past, 10 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 50 * MS), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(rig.ran, 4);
	for (size_t i = 0; i < rig.ran; i++)
		expect_late(i, rig.events[i].id == 4 ? 40 * MS : 0);
}

static void note_in_release(struct probe *probe)
{
	probe->answer = current_run().late_ns == 0 && tw_self().id == probe->timer.id;
}

Test(timer_lateness, is_0_in_a_release)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act_in_release = note_in_release;
	probe_schedule_released(&probe, 10 * MS);
	set_clock(SECOND);
	expect_eq(probe.answer, true);
}
