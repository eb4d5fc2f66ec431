/* A callback re-arms its own one-shot timer: how often, until when, and beside a cancel. */
#include <errno.h>

#include "test/support/rig_suite.h"

TestSuite(runs_rearm, .init = open_rig, .fini = close_rig, .timeout = 30);

static void reset_self_twice_more(struct probe *probe)
{
	if (atomic_load(&probe->runs) < 2)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 10 * MS);
}

Test(runs_rearm, a_one_shot_re_arms_itself_under_the_same_handle)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_twice_more;
	probe_schedule_released(&probe, 5 * MS);
	rig_advance(&rig, 24 * MS);
	expect_eq(probe.runs, 2);
	expect_eq(probe.releases, 0);
	expect_eq(tw_is_pending(rig.service, probe.timer), true);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 3);
	for (size_t i = 0; i < rig.ran; i++) {
		expect_eq(rig.events[i].at_ns, RIG_START_NS + 5 * MS + i * 10 * MS);
		expect_eq(rig.events[i].self, probe.timer.id);
	}
	expect_released(&probe, TW_FATE_FIRED);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.scheduled, 1);
	expect_eq(stats.fired, 1);
	expect_eq(stats.runs, 3);
}

static void reset_self_at(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		probe->answer = tw_reset_at(probe->rig->service, tw_self(), RIG_START_NS + 77 * MS);
}

/* The last of several resets in one run is the one that counts; far away is as good as near. */
static void reset_self_many_times(struct probe *probe)
{
	if (atomic_load(&probe->runs) > 0)
		return;
	probe->answer = 0;
	probe->answer |= tw_reset(probe->rig->service, tw_self(), MS);
	probe->answer |= tw_reset(probe->rig->service, tw_self(), 400 * DAY);
	probe->answer |= tw_reset(probe->rig->service, tw_self(), 3 * SECOND);
	probe->answer |= tw_reset(probe->rig->service, tw_self(), 100 * DAY);
}

static void reset_then_cancel_self(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), MS);
	tw_cancel(probe->rig->service, tw_self());
}

static void reset_self_out_of_range(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), UINT64_MAX);
}

/* What the callback of a one-shot asks for in its run at 5 ms, and what comes of it. */
Test(runs_rearm, comes_to_what_the_table_says)
{
	static const struct {
		void (*act)(struct probe *probe);
		int answer, runs;
		uint64_t last_ns;
		enum tw_fate fate;
	} rows[] = {{reset_self_at, 0, 2, 77 * MS, TW_FATE_FIRED},
		    {reset_self_many_times, 0, 2, 5 * MS + 100 * DAY, TW_FATE_FIRED},
		    {reset_then_cancel_self, 0, 1, 5 * MS, TW_FATE_CANCELLED},
		    {reset_self_out_of_range, -ERANGE, 1, 5 * MS, TW_FATE_FIRED}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1);
		probe.act = rows[i].act;
		probe_schedule_released(&probe, 5 * MS);
		rig_advance(&rig, 500 * DAY);
		expect_eq(probe.answer, rows[i].answer);
		expect_eq(probe.runs, rows[i].runs);
		expect_eq(probe.ran_at_ns, RIG_START_NS + rows[i].last_ns);
		expect_released(&probe, rows[i].fate);
	}
}

static void reset_self_forever(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), 3 * SECOND);
}

Test(runs_rearm, re_arming_costs_no_memory)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_forever;
	probe_schedule(&probe, 0);
	rig_advance(&rig, 100 * SECOND);
	uint64_t before_bytes = stats_of(rig.service).memory_bytes;
	rig_advance(&rig, 10 * HOUR);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.memory_bytes, before_bytes);
	expect_eq(stats.pending, 1);
	expect_gt(stats.runs, 10000);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

/* A re-armed timer is pending again, and a cancel from outside wins. */
Test(runs_rearm, a_re_armed_one_shot_can_be_cancelled)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_forever;
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 1);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_released(&probe, TW_FATE_CANCELLED);
	rig_advance(&rig, HOUR);
	expect_eq(probe.runs, 1);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.cancelled, 1);
	expect_eq(stats.fired, 0);
}
