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

/* ------------------------------------------------------------ calls from inside a release */

static const struct script scripts[] = {
    {"may schedule",
     {{"timer 0 in=1 [timer 1 in=1 plain]; timer 2 in=1 [timer 3 in=1 plain]", ""},
      {"cancel 2; drive 10", "2 cancelled, CANCELLED, @1 run 0, 0 fired, run 3, @2 run 1"}}},
    {"can schedule no more at a close",
     {{"timer 0 in=1 [timer 1 in=1]; close drop", "0 dropped, ESHUTDOWN"}}},
    {"follows a close that runs",
     {{"timer 0 in=3600000; timer 1 first=3600000 every=3600000; close run",
       "run 0 closing, 0 fired, run 1 closing, 1 fired"}}},
    {"may cancel others that have releases, in a ring",
     {{"timer 0 in=9 [cancel 1]; timer 1 in=9 [cancel 2]; timer 2 in=9 [cancel 0]", ""},
      {"cancel 0", "0 cancelled, 1 cancelled, 2 cancelled, RUNNING, CANCELLED, CANCELLED, "
		   "CANCELLED"}}},
};

Test(timer_release, may_call_what_the_scripts_say)
{
	PLAY(&timer_stage, NULL, scripts);
}
