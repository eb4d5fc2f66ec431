/*
 * Releases: told exactly once, with the right fate, whatever the end was, and on the thread that
 * the header names.
 */
#include <errno.h>

#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_release, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ calls from inside a release */

static const struct script scripts[] = {
    {"of what an executor refuses is called by a close that drops",
     {{"given refused; timer 0 in=1; timer 1 in=3600000; drive 9; stats pending", "@9 pending=2"},
      {"close drop 0; stats runs", "0 dropped, 1 dropped, runs=0"}}},
    {"and by one that runs, when its time is up",
     {{"given refused; timer 0 in=1; timer 1 in=3600000; drive 9; close run 0; stats runs",
       "@9 0 dropped, 1 dropped, ETIMEDOUT, runs=0"}}},
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
