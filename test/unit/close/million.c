/*
 * Closing with a million timers pending, spread over the levels, some with releases: each ends
 * once, and in the mode's way.
 */
#include <errno.h>

#include "test/support/rig.h"
#include "test/support/current.h"

TestSuite(close_million, .timeout = 90);

enum { MILLION = 1000000, WITH_RELEASE = 4 /* one in four */ };

static struct rig rig;
static uint64_t runs, runs_closing, releases[4];

static void count_run(void *arg)
{
	(void)arg;
	runs++;
	runs_closing += current_run().closing;
}

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg;
	releases[fate]++;
}

static void open_with_a_million(void)
{
	uint64_t seed = 5;
	struct tw_task task = {.size = sizeof(task), .fn = count_run};
	rig_open(&rig, NULL);
	for (int i = 0; i < MILLION; i++) {
		task.release = i % WITH_RELEASE == 0 ? count_release : NULL;
		task.when_ns = 1 + random_below(&seed, i % 2 ? SECOND : 10 * MINUTE);
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
		if (i == MILLION / 2)
			rig_advance(&rig, 0); /* one half is in the wheel, the rest in a lane */
	}
	expect_eq(stats_of(rig.service).pending, MILLION);
}

static void expect_all_ended(uint64_t ran, enum tw_fate fate)
{
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(runs, ran);
	expect_eq(stats.fired, ran);
	expect_eq(stats.dropped, MILLION - ran);
	expect_eq(stats.pending, 0);
	for (int f = 0; f < 4; f++)
		expect_eq(releases[f], f == (int)fate ? MILLION / WITH_RELEASE : 0);
	rig_close(&rig);
}

Test(close_million, pending_that_drops_runs_none)
{
	open_with_a_million();
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_all_ended(0, TW_FATE_DROPPED);
}

Test(close_million, pending_that_runs_runs_each_once)
{
	open_with_a_million();
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(runs_closing, MILLION);
	expect_all_ended(MILLION, TW_FATE_FIRED);
}

Test(close_million, pending_that_drains_waits_for_the_clock)
{
	open_with_a_million();
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), -EDEADLK);
	expect_eq(stats_of(rig.service).pending, MILLION);
	rig_advance(&rig, 10 * MINUTE + SECOND);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(runs_closing, 0);
	expect_all_ended(MILLION, TW_FATE_FIRED);
}
