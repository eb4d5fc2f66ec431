/* A callback re-arms its own one-shot timer: how often, until when, and beside a cancel. */
#include <errno.h>

#include "test/support/rig.h"

TestSuite(runs_rearm, .timeout = 30);

static void reset_self_twice_more(struct probe *probe)
{
	if (atomic_load(&probe->runs) < 2)
		probe->answer = tw_reset(probe->rig->service, tw_self(), 10 * MS);
}

Test(runs_rearm, a_one_shot_re_arms_itself_under_the_same_handle)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}

static void reset_self_at(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		probe->answer = tw_reset_at(probe->rig->service, tw_self(), RIG_START_NS + 77 * MS);
}

Test(runs_rearm, a_one_shot_re_arms_itself_to_an_instant)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_at;
	probe_schedule(&probe, 5 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.answer, 0);
	expect_eq(probe.runs, 2);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 77 * MS);
	rig_close(&rig);
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

Test(runs_rearm, the_last_of_several_re_arms_counts)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_many_times;
	probe_schedule(&probe, 5 * MS);
	rig_advance(&rig, 99 * DAY);
	expect_eq(probe.answer, 0);
	expect_eq(probe.runs, 1);
	rig_advance(&rig, 2 * DAY);
	expect_eq(probe.runs, 2);
	expect_eq(probe.ran_at_ns, RIG_START_NS + 5 * MS + 100 * DAY);
	rig_close(&rig);
}

static void reset_self_forever(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), 3 * SECOND);
}

Test(runs_rearm, re_arming_costs_no_memory)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}

static void cancel_then_reset_self(struct probe *probe)
{
	tw_cancel(probe->rig->service, tw_self());
	probe->answer = tw_reset(probe->rig->service, tw_self(), MS);
}

Test(runs_rearm, after_a_cancel_it_cannot_re_arm_itself)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	once.act = series.act = cancel_then_reset_self;
	probe_schedule(&once, MS);
	probe_schedule_every(&series, rate_of(MS, MS, 0));
	rig_advance(&rig, SECOND);
	expect_eq(once.answer, -ECANCELED);
	expect_eq(series.answer, -ECANCELED);
	expect_eq(rig.ran, 2);
	rig_close(&rig);
}

static void reset_then_cancel_self(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), MS);
	tw_cancel(probe->rig->service, tw_self());
}

Test(runs_rearm, a_cancel_takes_back_a_re_arm)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_then_cancel_self;
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.answer, 0);
	expect_eq(probe.runs, 1);
	expect_eq(probe.releases, 1);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	rig_close(&rig);
}

static void reset_self_out_of_range(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), UINT64_MAX);
}

Test(runs_rearm, a_re_arm_out_of_range_is_refused_and_the_timer_ends)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = reset_self_out_of_range;
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, SECOND);
	expect_eq(probe.answer, -ERANGE);
	expect_eq(probe.runs, 1);
	expect_released(&probe, TW_FATE_FIRED);
	rig_close(&rig);
}

/* A re-armed timer is pending again, and a cancel from outside wins. */
Test(runs_rearm, a_re_armed_one_shot_can_be_cancelled)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}
