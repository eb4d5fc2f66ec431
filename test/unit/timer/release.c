/*
 * Releases: told exactly once, with the right fate, whatever the end was, and on the thread that
 * the header names.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"

TestSuite(timer_release, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(timer_release, follows_close_that_runs)
{
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	probe_schedule_released(&once, HOUR);
	probe_schedule_every_released(&series, rate_of(HOUR, HOUR, 0));
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(once.runs, 1);
	expect_eq(series.runs, 1);
	expect_released(&once, TW_FATE_FIRED);
	expect_eq(series.releases, 1);
}

/* ------------------------------------------------------------ an executor that refuses */

Test(timer_release, of_what_an_executor_refuses_is_called_by_close)
{
	static const enum tw_close_mode modes[] = {TW_CLOSE_DROP, TW_CLOSE_RUN};
	for (int i = 0; i < 2; i++) {
		reopen_on_queue();
		queue.refuse = SIZE_MAX;
		enum { COUNT = 200 };
		static struct probe probes[COUNT];
		for (int j = 0; j < COUNT; j++) {
			probes[j] = PROBE(&rig, j);
			probe_schedule_released(&probes[j], j % 2 ? MS : HOUR);
		}
		rig_advance(&rig, 10 * MS);
		expect_eq(stats_of(rig.service).pending, COUNT);
		int answer = modes[i] == TW_CLOSE_DROP ? 0 : -ETIMEDOUT;
		expect_eq(tw_service_close(rig.service, modes[i], 0), answer);
		for (int j = 0; j < COUNT; j++)
			expect_released(&probes[j], TW_FATE_DROPPED);
		expect_eq(rig.ran, 0);
	}
}

/* ------------------------------------------------------------ calls from inside a release */

static void schedule_the_other(struct probe *probe)
{
	probe->answer =
	    tw_schedule(probe->rig->service, MS, probe_run, probe->other, &probe->other->timer);
}

Test(timer_release, may_schedule)
{
	struct probe fired = PROBE(&rig, 1), after_fired = PROBE(&rig, 2);
	struct probe cancelled = PROBE(&rig, 3), after_cancelled = PROBE(&rig, 4);
	fired.act_in_release = cancelled.act_in_release = schedule_the_other;
	fired.other = &after_fired;
	cancelled.other = &after_cancelled;
	probe_schedule_released(&fired, MS);
	probe_schedule_released(&cancelled, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	rig_advance(&rig, SECOND);
	expect_eq(fired.answer, 0);
	expect_eq(cancelled.answer, 0);
	expect_eq(after_fired.runs, 1);
	expect_eq(after_cancelled.runs, 1);
}

Test(timer_release, at_close_can_schedule_no_more)
{
	struct probe probe = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe.act_in_release = schedule_the_other;
	probe.other = &other;
	probe_schedule_released(&probe, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(probe.answer, -ESHUTDOWN);
	expect_eq(other.runs, 0);
}

static void cancel_the_other(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->other->timer);
}

/* A chain of releases, each of which cancels the next. */
Test(timer_release, may_cancel_others_that_have_releases)
{
	enum { COUNT = 100 };
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probes[i].act_in_release = cancel_the_other;
		probes[i].other = &probes[(i + 1) % COUNT];
		probe_schedule_released(&probes[i], SECOND);
	}
	expect_eq(tw_cancel(rig.service, probes[0].timer), TW_CANCELLED);
	for (int i = 0; i < COUNT; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED);
	expect_eq(probes[COUNT - 1].answer, TW_RUNNING); /* the first is still being released */
	expect_eq(stats_of(rig.service).cancelled, COUNT);
}

/* ------------------------------------------------------------ many */

Test(timer_release, of_many_timers_with_random_ends_comes_once_each)
{
	enum { COUNT = 20000 };
	static struct probe probes[COUNT];
	static bool cancelled[COUNT];
	uint64_t seed = 7;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], random_below(&seed, 20 * SECOND));
		if (random_below(&seed, 3) == 0) {
			int victim = (int)random_below(&seed, (uint64_t)i + 1);
			cancelled[victim] |=
			    tw_cancel(rig.service, probes[victim].timer) == TW_CANCELLED;
		}
		if (i % 100 == 0)
			rig_advance(&rig, 50 * MS);
	}
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < COUNT; i++) {
		enum tw_fate fate = TW_FATE_DROPPED;
		if (cancelled[i])
			fate = TW_FATE_CANCELLED;
		else if (probes[i].runs)
			fate = TW_FATE_FIRED;
		expect_released(&probes[i], fate);
		expect_eq(probes[i].runs, fate == TW_FATE_FIRED);
	}
}
