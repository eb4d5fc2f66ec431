/* A callback re-arms its own one-shot timer: how often, until when, and beside a cancel. */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(runs_rearm, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    {"keeps the handle",
     {{"timer 0 in=5 times=2 {self; reset 0 by=10}; drive 24",
       "@5 run 0, self 0, @15 run 0, self 0"},
      {"left 0; drive 10; stats scheduled fired runs",
       "@24 left 1, @25 run 0, 0 fired, @34 scheduled=1, fired=1, runs=3"}}},
    {"may name an instant",
     {{"timer 0 in=5 {reset 0 at=77} plain; drive 100", "@5 run 0, @77 run 0"}}},
    {"the last of several counts, far or near",
     {{"timer 0 in=5 {reset 0 by=1; reset 0 by=34560000000; reset 0 by=8640000000} plain", ""},
      {"drive 9000000000", "@5 run 0, @8640000005 run 0"}}},
    {"is taken back by a cancel",
     {{"timer 0 in=5 {reset 0 by=1; cancel 0}; drive 100", "@5 run 0, RUNNING, 0 cancelled"},
      {"cancel 0", "@100 GONE"}}},
    {"out of range is refused, and the timer ends",
     {{"timer 0 in=5 {reset 0 by=18446744073709}; drive 100", "@5 run 0, ERANGE, 0 fired"}}},
    {"is pending, and can be cancelled",
     {{"timer 0 in=1 {reset 0 by=3}; drive 1; cancel 0", "@1 run 0, 0 cancelled, CANCELLED"},
      {"drive 10; stats cancelled fired", "@11 cancelled=1, fired=0"}}},
};

Test(runs_rearm, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
