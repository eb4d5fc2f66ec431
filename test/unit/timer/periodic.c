/* Series: fixed rate, fixed delay, counts, and the phase. What was missed: missed.c. */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_periodic, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    {"run at each instant until they are cancelled",
     {{"timer 0 first=7 every=10 plain; drive 30", "@7 run 0, @17 run 0, @27 run 0"},
      {"stats scheduled pending runs; cancel 0", "@30 scheduled=1, pending=1, runs=3, CANCELLED"},
      {"drive 100", ""}}},
    {"without a first delay start at once",
     {{"timer 0 every=10 count=2 plain; timer 1 every=10 count=2 plain delayed", ""},
      {"drive 0", "run 0, run 1"},
      {"drive 30", "@10 run 0, run 1"}}},
    {"end after their count",
     {{"timer 0 first=1 every=1 count=1; timer 1 first=1 every=1 count=3", ""},
      {"timer 2 first=1 every=1 count=3 delayed; drive 2",
       "@1 run 0, 0 fired, run 1, run 2, @2 run 1, run 2"},
      {"left 1; drive 10", "left 1, @3 run 1, 1 fired, run 2, 2 fired"},
      {"cancel 1; stats scheduled fired runs", "@12 GONE, scheduled=3, fired=3, runs=7"}}},
    {"have another phase after a reset",
     {{"timer 0 first=10 every=10 plain; timer 1 first=10 every=100 plain; drive 15",
       "@10 run 0, run 1"},
      {"reset 0 by=8; reset 1 by=20; drive 28", "@23 run 0, @33 run 0, @35 run 1, @43 run 0"},
      {"cancel 0; drive 92; cancel 1", "CANCELLED, @135 run 1, CANCELLED"}}},
    {"have another phase after a reset from inside",
     {{"timer 0 first=10 every=10 count=5 times=2 {left 0; reset 0 by=4} plain; drive 13",
       "@10 run 0, ENOENT"},
      {"drive 100", "@14 run 0, ENOENT, @18 run 0, @28 run 0, @38 run 0"}}},
    {"run once more if their last run asks for it",
     {{"timer 0 first=10 every=10 count=1 {reset 0 by=4}; drive 11", "@10 run 0"},
      {"drive 100", "@14 run 0, 0 fired"}}},
    {"may start at an instant",
     {{"timer 0 at=42 every=10; drive 62", "@42 run 0, @52 run 0, @62 run 0"},
      {"cancel 0", "0 cancelled, CANCELLED"}}},
    /* the next run is armed only after the last one has returned */
    {"never overlap",
     {{"given queued; timer 0 first=10 every=10 plain; hold; drive 95; waiting", "@95 1 wait"},
      {"pump", "run 0 late=5 overruns=8"},
      {"hold; drive 5; waiting", "@100 1 wait"},
      {"pump; cancel 0", "run 0, CANCELLED"}}},
};

Test(timer_periodic, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
