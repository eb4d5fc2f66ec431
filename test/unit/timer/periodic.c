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
    {"get another period, which counts from the run that is armed",
     {{"timer 0 first=10 every=10 plain; drive 15; period 0 to=25", "@10 run 0"},
      {"left 0; drive 65", "@15 left 5, @20 run 0, @45 run 0, @70 run 0"},
      {"period 0 to=3; drive 22; cancel 0", "@95 run 0, @98 run 0, @101 run 0, @102 CANCELLED"}}},
    {"get another period from inside, which counts for the next run",
     {{"timer 0 first=10 every=10 {period 0 to=30} plain; drive 75",
       "@10 run 0, @40 run 0, @70 run 0"},
      {"timer 1 every=5 stays=2 {period 1 to=20} plain delayed; cancel 0; drive 43",
       "@75 CANCELLED, run 1, @97 run 1"}}},
    {"miss instants by their period at the time",
     {{"given queued; timer 0 first=10 every=10 plain; hold; drive 35; period 0 to=20", ""},
      {"pump; drive 20", "@35 run 0 late=5 overruns=1, @55 run 0 late=5"},
      {"cancel 0", "CANCELLED"}}},
    {"get no other period when they end, or were cancelled in their run",
     {{"timer 0 every=10 {cancel 0; period 0 to=20}; drive 1",
       "run 0, RUNNING, ECANCELED, 0 cancelled"},
      {"period 0 to=20; timer 1 every=10 count=1 plain; drive 1; period 1 to=20",
       "@1 ENOENT, run 1, @2 ENOENT"},
      {"timer 2 every=10 [period 2 to=20]; cancel 2", "2 cancelled, ENOENT, CANCELLED"},
      {"timer 3 in=10 plain; timer 4 persistent never plain; period 3 4 to=20", "EINVAL, EINVAL"},
      {"timer 5 first=10 every=10 plain; period 5 to=0", "EINVAL"}}},
    {"get no other period after a close",
     {{"timer 0 every=10 plain; close; period 0 to=20", "ESHUTDOWN"}}},
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
