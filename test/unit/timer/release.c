/*
 * Releases: told exactly once, with the right fate, whatever the end was, and on the thread that
 * the header names.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_release, .init = open_rig, .fini = close_rig, .timeout = 30);

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

/* ------------------------------------------------------------ calls from inside a release */

static const struct script scripts[] = {
    {"may schedule",
     "",
     {{"timer 0 in=1 [timer 1 in=1 plain]; timer 2 in=1 [timer 3 in=1 plain]", ""},
      {"cancel 2; drive 10", "2 cancelled, CANCELLED, @1 run 0, 0 fired, run 3, @2 run 1"}}},
    {"can schedule no more at a close",
     "",
     {{"timer 0 in=1 [timer 1 in=1]; close drop", "0 dropped, ESHUTDOWN"}}},
    {"follows a close that runs",
     "",
     {{"timer 0 in=3600000; timer 1 first=3600000 every=3600000; close run",
       "run 0 closing, 0 fired, run 1 closing, 1 fired"}}},
    {"may cancel others that have releases, in a ring",
     "",
     {{"timer 0 in=9 [cancel 1]; timer 1 in=9 [cancel 2]; timer 2 in=9 [cancel 0]", ""},
      {"cancel 0", "0 cancelled, 1 cancelled, 2 cancelled, RUNNING, CANCELLED, CANCELLED, "
		   "CANCELLED"}}},
};

Test(timer_release, may_call_what_the_scripts_say)
{
	PLAY(&timer_stage, NULL, scripts);
}
