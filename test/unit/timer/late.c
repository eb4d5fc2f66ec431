/* Runs that would start too late: told, or dropped with a fate of their own. */
#include <errno.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"
#include "test/support/current.h"

TestSuite(timer_late, .timeout = 30);

static void schedule_limited(struct probe *probe, uint64_t delay_ns, uint64_t max_ns,
			     enum tw_late_policy late)
{
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	task.max_lateness_ns = max_ns;
	task.late = late;
	probe_schedule_task(probe, &task);
}

static void jump(struct rig *rig, uint64_t to_ns)
{
	expect_eq(tw_clock_manual_set(rig->clock, to_ns), 0);
	tw_service_advance(rig->service, TW_NO_LIMIT);
}

Test(timer_late, run_is_told_that_it_is_late)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe at_limit = PROBE(&rig, 1), beyond = PROBE(&rig, 2), without = PROBE(&rig, 3);
	schedule_limited(&at_limit, 10 * MS, 5 * MS, TW_LATE_RUN);
	schedule_limited(&beyond, 10 * MS, 5 * MS - 1, TW_LATE_RUN);
	probe_schedule(&without, 10 * MS);
	jump(&rig, RIG_START_NS + 15 * MS);
	expect_eq(rig.ran, 3);
	expect_eq(rig.events[0].late, false);
	expect_eq(rig.events[1].late, true);
	expect_eq(rig.events[2].late, false);
	expect_released(&beyond, TW_FATE_FIRED);
	expect_eq(current_run().late, false);
	expect_eq(stats_of(rig.service).late_dropped, 0);
	rig_close(&rig);
}

Test(timer_late, run_is_dropped_by_that_policy)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe at_limit = PROBE(&rig, 1), beyond = PROBE(&rig, 2);
	schedule_limited(&at_limit, 10 * MS, 5 * MS, TW_LATE_DROP);
	schedule_limited(&beyond, 10 * MS, 5 * MS - 1, TW_LATE_DROP);
	jump(&rig, RIG_START_NS + 15 * MS);
	expect_eq(rig.ran, 1);
	expect_released(&at_limit, TW_FATE_FIRED);
	expect_released(&beyond, TW_FATE_LATE);
	expect_eq(beyond.runs, 0);
	expect_eq(tw_cancel(rig.service, beyond.timer), TW_GONE);
	expect_eq(tw_cancel_wait(rig.service, beyond.timer, 0), TW_GONE);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.late_dropped, 1);
	expect_eq(stats.fired, 1);
	expect_eq(stats.dropped + stats.cancelled + stats.pending, 0);
	expect_eq(stats.runs, 1);
	rig_close(&rig);
}

Test(timer_late, limits_are_kept_in_time)
{
	struct rig rig;
	rig_open(&rig, NULL);
	enum { COUNT = 500 };
	static struct probe probes[COUNT];
	uint64_t seed = 3;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		schedule_limited(&probes[i], random_below(&seed, 3 * SECOND), MS, TW_LATE_DROP);
	}
	rig_advance(&rig, 3 * SECOND);
	expect_eq(stats_of(rig.service).late_dropped, 0);
	for (int i = 0; i < COUNT; i++)
		expect_released(&probes[i], TW_FATE_FIRED);
	rig_close(&rig);
}

/* The instant is the deadline itself, not the tick that it is rounded up to. */
Test(timer_late, is_epoch_time_the_deadline)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe kept = PROBE(&rig, 1), beyond = PROBE(&rig, 2), at = PROBE(&rig, 3);
	schedule_limited(&kept, 10 * MS + 300000, 700000, TW_LATE_DROP);
	schedule_limited(&beyond, 10 * MS + 300000, 699999, TW_LATE_DROP);
	struct tw_task task = probe_task(&at);
	task.flags = TW_TASK_AT;
	task.when_ns = RIG_START_NS - SECOND; /* past, and by more than it may be */
	task.max_lateness_ns = SECOND - 1;
	task.late = TW_LATE_DROP;
	probe_schedule_task(&at, &task);
	rig_advance(&rig, SECOND);
	expect_released(&kept, TW_FATE_FIRED);
	expect_released(&beyond, TW_FATE_LATE);
	expect_released(&at, TW_FATE_LATE);
	rig_close(&rig);
}

Test(timer_late, is_counted_anew_after_a_reset)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe moved = PROBE(&rig, 1), re_armed = PROBE(&rig, 2);
	schedule_limited(&moved, 10 * MS, 5 * MS, TW_LATE_DROP);
	rig_advance(&rig, 8 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 50 * MS), 0);
	expect_eq(tw_reset(rig.service, moved.timer, 10 * MS), 0);
	rig_advance(&rig, 10 * MS);
	expect_ran_at(&moved, RIG_START_NS + 60 * MS);
	expect_eq(tw_reset(rig.service, moved.timer, 10 * MS), -ENOENT);
	schedule_limited(&re_armed, 10 * MS, 5 * MS, TW_LATE_DROP);
	expect_eq(tw_reset_at(rig.service, re_armed.timer, rig_now(&rig) + 2 * MS), 0);
	jump(&rig, rig_now(&rig) + 8 * MS);
	expect_released(&re_armed, TW_FATE_LATE);
	rig_close(&rig);
}

static void re_arm_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 10 * MS);
}

Test(timer_late, is_counted_anew_after_a_re_arm)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe in_time = PROBE(&rig, 1), beyond = PROBE(&rig, 2);
	in_time.act = beyond.act = re_arm_once;
	schedule_limited(&in_time, 10 * MS, 5 * MS, TW_LATE_DROP);
	schedule_limited(&beyond, 10 * MS, 2 * MS, TW_LATE_DROP);
	rig_advance(&rig, 10 * MS);
	jump(&rig, RIG_START_NS + 23 * MS);
	expect_eq(in_time.runs, 2);
	expect_released(&in_time, TW_FATE_FIRED);
	expect_eq(beyond.runs, 1);
	expect_released(&beyond, TW_FATE_LATE);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.late_dropped, 1);
	rig_close(&rig);
}

/* Runs that wait in the executor's queue grow late there. */
Test(timer_late, is_looked_at_when_the_run_is_claimed)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe told = PROBE(&rig, 1), dropped = PROBE(&rig, 2), cancelled = PROBE(&rig, 3);
	schedule_limited(&told, 10 * MS, 5 * MS, TW_LATE_RUN);
	schedule_limited(&dropped, 10 * MS, 5 * MS, TW_LATE_DROP);
	schedule_limited(&cancelled, 10 * MS, 5 * MS, TW_LATE_DROP);
	rig_advance(&rig, 20 * MS);
	expect_eq(queue_executor_waiting(&queue), 3);
	expect_eq(tw_is_pending(rig.service, dropped.timer), true);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(queue_executor_run_next(&queue), 0);
	expect_eq(queue_executor_run_next(&queue), 0);
	expect_eq(rig.events[0].late, true);
	expect_released(&dropped, TW_FATE_LATE);
	expect_released(&cancelled, TW_FATE_CANCELLED);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(timer_late, without_a_release_is_counted_all_the_same)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_task task = probe_task(&probe);
	task.release = NULL;
	task.when_ns = MS;
	task.max_lateness_ns = MS;
	task.late = TW_LATE_DROP;
	probe_schedule_task(&probe, &task);
	jump(&rig, RIG_START_NS + 10 * MS);
	expect_eq(probe.runs, 0);
	expect_eq(stats_of(rig.service).late_dropped, 1);
	rig_close(&rig);
}

/* ------------------------------------------------------------ series */

static void schedule_limited_every(struct probe *probe, struct tw_period period, uint64_t max_ns,
				   enum tw_late_policy late)
{
	struct tw_task task = probe_task(probe);
	task.period = &period;
	task.max_lateness_ns = max_ns;
	task.late = late;
	probe_schedule_task(probe, &task);
}

Test(timer_late, runs_of_a_series_are_passed_over_and_it_goes_on)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	schedule_limited_every(&probe, rate_of(10 * MS, 10 * MS, 4), 3 * MS, TW_LATE_DROP);
	rig_advance(&rig, 10 * MS);
	jump(&rig, RIG_START_NS + 55 * MS); /* the run of 20 is dropped; 30, 40, 50 are skipped */
	expect_eq(probe.runs, 1);
	rig_advance_to(&rig, RIG_START_NS + 70 * MS);
	expect_eq(rig.ran, 3);
	expect_eq(rig.events[1].at_ns, RIG_START_NS + 60 * MS);
	expect_eq(rig.events[1].overruns, 4);
	expect_eq(rig.events[2].overruns, 0);
	expect_eq(stats_of(rig.service).overruns, 4);
	rig_advance_to(&rig, RIG_START_NS + 80 * MS); /* what was dropped does not count */
	expect_released(&probe, TW_FATE_FIRED);
	expect_eq(probe.runs, 4);
	expect_eq(stats_of(rig.service).late_dropped, 0);
	rig_close(&rig);
}

Test(timer_late, runs_of_a_series_are_told)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(10 * MS, 10 * MS, 0);
	period.missed = TW_MISSED_BURST;
	schedule_limited_every(&probe, period, 12 * MS, TW_LATE_RUN);
	jump(&rig, RIG_START_NS + 45 * MS);
	rig_advance(&rig, 0);
	expect_eq(rig.ran, 4);
	static const bool late[] = {true, true, true, false}; /* of 10, 20, 30, 40 ms */
	for (int i = 0; i < 4; i++)
		expect_eq(rig.events[i].late, late[i]);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_late, a_burst_catches_up_with_what_is_not_too_late_only)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(10 * MS, 10 * MS, 0);
	period.missed = TW_MISSED_BURST;
	schedule_limited_every(&probe, period, 25 * MS, TW_LATE_DROP);
	rig_advance(&rig, 10 * MS);
	jump(&rig, RIG_START_NS + 10 * DAY + 5 * MS);
	rig_advance(&rig, 0);
	expect_eq(probe.runs, 1 + 3); /* 20 and 10 ms before the whole 10 days, and these */
	expect_eq(probe.runs + probe.overruns, 10 * DAY / (10 * MS));
	rig_advance(&rig, 5 * MS);
	expect_eq(probe.runs, 5);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_late, a_fixed_delay_series_counts_on_from_the_dropped_run)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	schedule_limited_every(&probe, delay_of(10 * MS, 10 * MS, 0), 3 * MS, TW_LATE_DROP);
	jump(&rig, RIG_START_NS + 25 * MS);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, 10 * MS);
	expect_ran_at(&probe, RIG_START_NS + 35 * MS);
	expect_eq(probe.overruns, 1);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

/* ------------------------------------------------------------ close */

Test(timer_late, holds_in_a_close_that_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe late = PROBE(&rig, 1), early = PROBE(&rig, 2), series = PROBE(&rig, 3);
	schedule_limited(&late, 10 * MS, 5 * MS, TW_LATE_DROP);
	schedule_limited(&early, HOUR, 5 * MS, TW_LATE_DROP);
	schedule_limited_every(&series, rate_of(10 * MS, 10 * MS, 0), 5 * MS, TW_LATE_DROP);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 100 * MS), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_released(&late, TW_FATE_LATE);
	expect_released(&early, TW_FATE_FIRED);
	expect_eq(early.runs, 1);
	expect_released(&series, TW_FATE_FIRED); /* its run stands for 100 ms */
	expect_eq(series.overruns, 9);
	expect_eq(stats_of(rig.service).late_dropped, 1);
	rig_close(&rig);
}
