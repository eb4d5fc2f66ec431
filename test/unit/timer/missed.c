/* What a fixed-rate series does about instants that are past: skip, coalesce, burst. */
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_missed, .timeout = 30);

static struct tw_period policy_of(uint64_t first_ns, uint64_t period_ns,
				  enum tw_missed_policy missed)
{
	struct tw_period period = rate_of(first_ns, period_ns, 0);
	period.missed = missed;
	return period;
}

static void jump(struct rig *rig, uint64_t to_ns)
{
	expect_eq(tw_clock_manual_set(rig->clock, to_ns), 0);
	while (tw_service_advance(rig->service, TW_NO_LIMIT) > 0)
		;
}

static void expect_runs(const struct rig *rig, size_t count, const uint64_t *at_ms,
			const uint64_t *overruns)
{
	expect_eq(rig->ran, count);
	for (size_t i = 0; i < count; i++) {
		expect_eq(rig->events[i].at_ns, RIG_START_NS + at_ms[i] * MS);
		expect_eq(rig->events[i].overruns, overruns[i]);
	}
}

/*
 * Each of the policies through one stall: instants 10, 20 .. 80 ms, the clock stands from 10 to 55
 * ms.
 */
static void expect_through_a_stall(enum tw_missed_policy missed, size_t count,
				   const uint64_t *at_ms, const uint64_t *overruns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, policy_of(10 * MS, 10 * MS, missed));
	rig_advance(&rig, 10 * MS);
	jump(&rig, RIG_START_NS + 55 * MS);
	rig_advance_to(&rig, RIG_START_NS + 80 * MS);
	expect_runs(&rig, count, at_ms, overruns);
	expect_eq(probe.runs + probe.overruns, 8);
	expect_eq(stats_of(rig.service).overruns, probe.overruns);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_missed, instants_are_skipped_by_default)
{
	static const uint64_t at_ms[] = {10, 55, 60, 70, 80}, overruns[] = {0, 3, 0, 0, 0};
	expect_through_a_stall(TW_MISSED_SKIP, 5, at_ms, overruns);
}

Test(timer_missed, instants_are_coalesced_into_one_run_now)
{
	static const uint64_t at_ms[] = {10, 55, 60, 70, 80}, overruns[] = {0, 3, 0, 0, 0};
	expect_through_a_stall(TW_MISSED_COALESCE, 5, at_ms, overruns);
}

Test(timer_missed, instants_each_get_a_run_in_a_burst)
{
	static const uint64_t at_ms[] = {10, 55, 55, 55, 55, 60, 70, 80}, overruns[8] = {0};
	expect_through_a_stall(TW_MISSED_BURST, 8, at_ms, overruns);
}

static void take_25_ms_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 25 * MS);
}

/* The same after a run that took long: instants 20 and 30 ms are past at 35. */
static void expect_after_a_long_run(enum tw_missed_policy missed, size_t count,
				    const uint64_t *at_ms, const uint64_t *overruns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = take_25_ms_once;
	probe_schedule_every(&probe, policy_of(10 * MS, 10 * MS, missed));
	jump(&rig, RIG_START_NS + 10 * MS);
	rig_advance_to(&rig, RIG_START_NS + 50 * MS);
	expect_runs(&rig, count, at_ms, overruns);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_missed, during_a_long_run_follows_the_policy)
{
	static const uint64_t skip_ms[] = {10, 40, 50}, skip[] = {0, 2, 0};
	expect_after_a_long_run(TW_MISSED_SKIP, 3, skip_ms, skip);
	static const uint64_t coalesce_ms[] = {10, 35, 40, 50}, coalesce[] = {0, 1, 0, 0};
	expect_after_a_long_run(TW_MISSED_COALESCE, 4, coalesce_ms, coalesce);
	static const uint64_t burst_ms[] = {10, 35, 35, 40, 50}, burst[5] = {0};
	expect_after_a_long_run(TW_MISSED_BURST, 5, burst_ms, burst);
}

Test(timer_missed, policies_cost_nothing_while_the_series_keeps_up)
{
	for (int missed = TW_MISSED_SKIP; missed <= TW_MISSED_BURST; missed++) {
		struct rig rig;
		rig_open(&rig, NULL);
		struct probe probe = PROBE(&rig, 1);
		probe_schedule_every(&probe,
				     policy_of(7 * MS, 10 * MS, (enum tw_missed_policy)missed));
		rig_advance(&rig, SECOND);
		expect_eq(probe.runs, 100);
		expect_eq(probe.overruns, 0);
		expect_eq(probe.ran_at_ns, RIG_START_NS + 997 * MS);
		expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
		rig_close(&rig);
	}
}

Test(timer_missed, a_period_below_the_tick_loses_no_instant_in_a_burst)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe burst = PROBE(&rig, 1), coalesce = PROBE(&rig, 2);
	probe_schedule_every(&burst, policy_of(MS, MS / 10, TW_MISSED_BURST));
	probe_schedule_every(&coalesce, policy_of(MS, MS / 10, TW_MISSED_COALESCE));
	rig_advance(&rig, 100 * MS);
	expect_eq(burst.runs, 991);
	expect_eq(burst.overruns, 0);
	expect_eq(coalesce.runs + coalesce.overruns, 991);
	expect_lt(coalesce.runs, 300);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	rig_close(&rig);
}

Test(timer_missed, a_stall_of_ten_years_costs_one_run_when_coalesced)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, policy_of(MS, MS, TW_MISSED_COALESCE));
	jump(&rig, RIG_START_NS + 3650 * DAY);
	expect_eq(probe.runs, 1);
	expect_eq(probe.runs + probe.overruns, 3650 * DAY / MS);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 2);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(timer_missed, count_is_of_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe burst = PROBE(&rig, 1), coalesce = PROBE(&rig, 2);
	struct tw_period period = policy_of(10 * MS, 10 * MS, TW_MISSED_BURST);
	period.count = 3;
	probe_schedule_every_released(&burst, period);
	period.missed = TW_MISSED_COALESCE;
	probe_schedule_every_released(&coalesce, period);
	jump(&rig, RIG_START_NS + 95 * MS);
	expect_eq(burst.runs, 3);
	expect_released(&burst, TW_FATE_FIRED);
	expect_eq(coalesce.runs, 1);
	rig_advance(&rig, 5 * MS);
	expect_eq(coalesce.runs, 2);
	expect_eq(coalesce.releases, 0);
	rig_advance(&rig, 10 * MS);
	expect_eq(coalesce.runs, 3);
	expect_released(&coalesce, TW_FATE_FIRED);
	rig_close(&rig);
}

/* A series whose first instant lies before the service was made. */
Test(timer_missed, instants_before_the_service_began_get_their_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	struct tw_period period = policy_of(0, 10 * MS, TW_MISSED_BURST);
	struct tw_task task = probe_task(&probe);
	task.period = &period;
	task.flags = TW_TASK_AT;
	task.when_ns = RIG_START_NS - 45 * MS;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, 5 * MS);
	expect_eq(probe.runs, 6); /* -45, -35 .. 5 */
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}

/*
 * Each run of a burst goes through the executor's queue. Two runs never overlap, and a cancel
 * between them wins.
 */
Test(timer_missed, a_burst_goes_through_the_queue_run_by_run)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe burst = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe_schedule_every_released(&burst, policy_of(10 * MS, 10 * MS, TW_MISSED_BURST));
	rig_advance(&rig, 95 * MS);
	for (int run = 1; run <= 4; run++) {
		expect_eq(queue_executor_waiting(&queue), 1);
		expect_eq(queue_executor_run_next(&queue), 1);
		expect_eq(burst.runs, run);
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	}
	probe_schedule(&other, 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_eq(queue_executor_waiting(&queue), 2);
	expect_eq(tw_cancel(rig.service, burst.timer), TW_CANCELLED);
	expect_released(&burst, TW_FATE_CANCELLED);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(other.runs, 1);
	expect_eq(burst.runs, 4);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(timer_missed, a_reset_starts_the_phase_anew_and_nothing_is_caught_up)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, policy_of(10 * MS, 10 * MS, TW_MISSED_BURST));
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 95 * MS), 0);
	expect_eq(tw_reset(rig.service, probe.timer, 7 * MS), 0);
	rig_advance_to(&rig, RIG_START_NS + 112 * MS);
	expect_eq(probe.runs, 2);
	expect_eq(rig.events[0].at_ns, RIG_START_NS + 102 * MS);
	expect_eq(probe.overruns, 0);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_close(&rig);
}
