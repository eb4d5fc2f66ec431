/*
 * Releases: told exactly once, with the right fate, whatever the end was, and on the thread that
 * the header names.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_release, .timeout = 30);

Test(timer_release, follows_the_callback)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_released(&probe, MS);
	expect_eq(probe.releases, 0);
	rig_advance(&rig, SECOND);
	expect_ran_at(&probe, RIG_START_NS + MS);
	expect_released(&probe, TW_FATE_FIRED);
	rig_close(&rig);
}

Test(timer_release, follows_a_cancel_on_the_thread_that_cancelled)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1), waited = PROBE(&rig, 2);
	probe_schedule_released(&probe, MS);
	probe_schedule_released(&waited, MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_released(&probe, TW_FATE_CANCELLED);
	expect_eq(tw_cancel_wait(rig.service, waited.timer, TW_FOREVER), TW_CANCELLED);
	expect_released(&waited, TW_FATE_CANCELLED);
	cr_assert(pthread_equal(probe.released_on, pthread_self()));
	cr_assert(pthread_equal(waited.released_on, pthread_self()));
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	expect_eq(probe.releases, 1);
	rig_close(&rig);
}

Test(timer_release, follows_close_that_drops)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe near = PROBE(&rig, 1), far = PROBE(&rig, 2), series = PROBE(&rig, 3);
	probe_schedule_released(&near, MS);
	probe_schedule_released(&far, 400 * DAY);
	probe_schedule_every_released(&series, rate_of(MS, MS, 0));
	rig_advance(&rig, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_released(&near, TW_FATE_DROPPED);
	expect_released(&far, TW_FATE_DROPPED);
	expect_released(&series, TW_FATE_DROPPED);
	cr_assert(pthread_equal(near.released_on, pthread_self()));
	expect_eq(stats_of(rig.service).dropped, 3);
	expect_eq(rig.ran, 0);
	rig_close(&rig);
}

Test(timer_release, follows_destroy_that_drops)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_released(&probe, MS);
	rig_close(&rig);
	expect_released(&probe, TW_FATE_DROPPED);
	expect_eq(probe.runs, 0);
}

Test(timer_release, follows_close_that_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	probe_schedule_released(&once, HOUR);
	probe_schedule_every_released(&series, rate_of(HOUR, HOUR, 0));
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(once.runs, 1);
	expect_eq(series.runs, 1);
	expect_released(&once, TW_FATE_FIRED);
	expect_eq(series.releases, 1);
	rig_close(&rig);
}

Test(timer_release, of_a_series_comes_after_its_last_run)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every_released(&probe, rate_of(MS, MS, 5));
	for (int i = 0; i < 4; i++) {
		rig_advance(&rig, MS);
		expect_eq(probe.releases, 0);
	}
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 5);
	expect_released(&probe, TW_FATE_FIRED);
	rig_close(&rig);
}

Test(timer_release, of_a_cancelled_series_comes_at_once_between_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every_released(&probe, delay_of(MS, 10 * MS, 0));
	rig_advance(&rig, 5 * MS);
	expect_eq(probe.runs, 1);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_released(&probe, TW_FATE_CANCELLED);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 1);
	rig_close(&rig);
}

/* ------------------------------------------------------------ an executor that refuses */

Test(timer_release, of_what_an_executor_refuses_is_called_by_close)
{
	static const enum tw_close_mode modes[] = {TW_CLOSE_DROP, TW_CLOSE_RUN};
	for (int i = 0; i < 2; i++) {
		struct queue_executor queue;
		struct rig rig;
		queue_executor_open(&queue);
		queue.refuse = SIZE_MAX;
		struct tw_service_config cfg = rig_config();
		cfg.executor = &queue.base;
		rig_open(&rig, &cfg);
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
		rig_close(&rig);
		queue_executor_close(&queue);
	}
}

Test(timer_release, of_a_run_that_waits_for_its_executor_follows_a_cancel)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_released(&probe, TW_FATE_CANCELLED);
	expect_eq(queue_executor_run_next(&queue), 0);
	expect_eq(probe.releases, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* ------------------------------------------------------------ calls from inside a release */

static void schedule_the_other(struct probe *probe)
{
	probe->answer =
	    tw_schedule(probe->rig->service, MS, probe_run, probe->other, &probe->other->timer);
}

Test(timer_release, may_schedule)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}

Test(timer_release, at_close_can_schedule_no_more)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1), other = PROBE(&rig, 2);
	probe.act_in_release = schedule_the_other;
	probe.other = &other;
	probe_schedule_released(&probe, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(probe.answer, -ESHUTDOWN);
	rig_close(&rig);
	expect_eq(other.runs, 0);
}

static void cancel_the_other(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->other->timer);
}

/* A chain of releases, each of which cancels the next. */
Test(timer_release, may_cancel_others_that_have_releases)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}

static void try_to_re_arm(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, tw_self(), MS);
}

Test(timer_release, cannot_re_arm_its_timer)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe fired = PROBE(&rig, 1), cancelled = PROBE(&rig, 2);
	fired.act_in_release = cancelled.act_in_release = try_to_re_arm;
	probe_schedule_released(&fired, MS);
	probe_schedule_released(&cancelled, MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	rig_advance(&rig, SECOND);
	expect_lt(fired.answer, 0);
	expect_lt(cancelled.answer, 0);
	expect_eq(fired.runs, 1);
	expect_eq(fired.releases, 1);
	expect_eq(cancelled.runs, 0);
	expect_eq(cancelled.releases, 1);
	rig_close(&rig);
}

/* ------------------------------------------------------------ many */

Test(timer_release, of_many_timers_with_random_ends_comes_once_each)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
	rig_close(&rig);
}
