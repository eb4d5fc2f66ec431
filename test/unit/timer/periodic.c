/* Series: fixed rate, fixed delay, counts, what was missed, and the phase. */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"

TestSuite(timer_periodic, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(timer_periodic, of_fixed_rate_runs_at_each_instant)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, rate_of(7 * MS, 10 * MS, 0));
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 100);
	for (size_t i = 0; i < rig.ran; i++) {
		expect_eq(rig.events[i].at_ns, RIG_START_NS + 7 * MS + i * 10 * MS);
		expect_eq(rig.events[i].self, probe.timer.id);
		expect_eq(rig.events[i].overruns, 0);
	}
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.scheduled, 1);
	expect_eq(stats.pending, 1);
	expect_eq(stats.runs, 100);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 100);
}

Test(timer_periodic, without_a_first_delay_starts_at_once)
{
	struct probe rate = PROBE(&rig, 1), delay = PROBE(&rig, 2);
	probe_schedule_every(&rate, rate_of(0, 10 * MS, 2));
	probe_schedule_every(&delay, delay_of(0, 10 * MS, 2));
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 2);
	expect_eq(rate.ran_at_ns, RIG_START_NS);
	rig_advance(&rig, 10 * MS);
	expect_eq(rate.runs, 2);
	expect_eq(delay.runs, 2);
}

Test(timer_periodic, ends_after_its_count)
{
	struct probe once = PROBE(&rig, 1), thrice = PROBE(&rig, 2), delayed = PROBE(&rig, 3);
	probe_schedule_every_released(&once, rate_of(MS, MS, 1));
	probe_schedule_every_released(&thrice, rate_of(MS, MS, 3));
	probe_schedule_every_released(&delayed, delay_of(MS, MS, 3));
	rig_advance(&rig, 2 * MS);
	expect_eq(thrice.releases, 0);
	expect_eq(tw_is_pending(rig.service, thrice.timer), true);
	rig_advance(&rig, SECOND);
	expect_eq(once.runs, 1);
	expect_eq(thrice.runs, 3);
	expect_eq(delayed.runs, 3);
	expect_released(&once, TW_FATE_FIRED);
	expect_released(&thrice, TW_FATE_FIRED);
	expect_released(&delayed, TW_FATE_FIRED);
	expect_eq(tw_cancel(rig.service, thrice.timer), TW_GONE);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.scheduled, 3);
	expect_eq(stats.fired, 3);
	expect_eq(stats.runs, 7);
}

Test(timer_periodic, of_an_odd_period_keeps_its_nominal_instants)
{
	struct probe probe = PROBE(&rig, 1);
	uint64_t period_ns = 3333333;
	probe_schedule_every(&probe, rate_of(period_ns, period_ns, 0));
	rig_advance(&rig, 100 * SECOND);
	expect_eq(rig.ran, 100 * SECOND / period_ns);
	for (size_t i = 0; i < rig.ran; i++)
		expect_eq(rig.events[i].at_ns,
			  rig_tick_of(&rig, RIG_START_NS + (i + 1) * period_ns));
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

/* ------------------------------------------------------------ moving a series */

Test(timer_periodic, a_reset_moves_the_phase)
{
	struct probe later = PROBE(&rig, 1), earlier = PROBE(&rig, 2);
	probe_schedule_every(&later, rate_of(10 * MS, 10 * MS, 0));
	probe_schedule_every(&earlier, rate_of(10 * MS, 100 * MS, 0));
	rig_advance(&rig, 15 * MS);
	expect_eq(tw_reset(rig.service, later.timer, 8 * MS), 0);
	expect_eq(tw_reset(rig.service, earlier.timer, 20 * MS), 0);
	rig_advance_to(&rig, RIG_START_NS + 43 * MS);
	expect_eq(later.runs, 4); /* 10, 23, 33, 43 */
	expect_eq(later.ran_at_ns, RIG_START_NS + 43 * MS);
	expect_eq(earlier.runs, 2); /* 10, 35 */
	rig_advance_to(&rig, RIG_START_NS + 135 * MS);
	expect_eq(earlier.runs, 3);
	expect_eq(earlier.ran_at_ns, RIG_START_NS + 135 * MS);
	expect_eq(later.overruns + earlier.overruns, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
}

static void move_own_phase_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 1)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 4 * MS);
}

Test(timer_periodic, a_reset_from_inside_moves_the_phase)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = move_own_phase_once;
	probe.answer = 1;
	probe_schedule_every(&probe, rate_of(10 * MS, 10 * MS, 5));
	rig_advance(&rig, SECOND);
	expect_eq(probe.answer, 0);
	expect_eq(rig.ran, 5);
	static const uint64_t instants_ms[] = {10, 20, 24, 34, 44};
	for (int i = 0; i < 5; i++)
		expect_eq(rig.events[i].at_ns, RIG_START_NS + instants_ms[i] * MS);
}

static void move_in_the_first_run(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 4 * MS);
}

/* A reset asks for a run: one more, not a series anew. */
Test(timer_periodic, a_reset_in_the_last_run_asks_for_one_more)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = move_in_the_first_run;
	probe_schedule_every_released(&probe, rate_of(10 * MS, 10 * MS, 1));
	rig_advance(&rig, 11 * MS);
	expect_eq(probe.runs, 1);
	expect_eq(probe.releases, 0);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 2);
	expect_eq(rig.events[1].at_ns, RIG_START_NS + 14 * MS);
	expect_released(&probe, TW_FATE_FIRED);
}

/* ------------------------------------------------------------ as a task */

Test(timer_periodic, a_task_may_start_at_an_instant)
{
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = rate_of(0, 10 * MS, 0);
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = probe_run,
	    .arg = &probe,
	    .when_ns = RIG_START_NS + 42 * MS,
	    .flags = TW_TASK_AT,
	    .period = &period,
	};
	expect_eq(tw_schedule_task(rig.service, &task, &probe.timer), 0);
	period.period_ns = 1; /* read during the call only */
	rig_advance(&rig, 62 * MS);
	expect_eq(rig.ran, 3);
	for (size_t i = 0; i < 3; i++)
		expect_eq(rig.events[i].at_ns, RIG_START_NS + (42 + 10 * i) * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

/* An executor that is late: the next run is armed only after the last one has returned. */
Test(timer_periodic, runs_never_overlap)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, rate_of(10 * MS, 10 * MS, 0));
	rig_advance(&rig, 95 * MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eq(queue_executor_run_all(&queue), 1);
	rig_advance(&rig, 5 * MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(probe.runs, 2);
	/* 20 .. 90 ms; the first run stands for 10, the second for 100 */
	expect_eq(probe.overruns, 8);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

Test(timer_periodic, many_series_keep_their_instants)
{
	enum { COUNT = 300 };
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_every(&probes[i],
				     rate_of((uint64_t)(i + 1) * MS, (uint64_t)(i + 1) * MS, 0));
	}
	rig_advance(&rig, 3 * SECOND);
	for (int i = 0; i < COUNT; i++) {
		expect_eq(probes[i].runs, 3000 / (i + 1));
		expect_eq(tw_cancel(rig.service, probes[i].timer), TW_CANCELLED);
	}
}
