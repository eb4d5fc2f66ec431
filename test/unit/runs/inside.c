/*
 * G7: callbacks may call anything, on themselves too; what would wait for its own caller is
 * refused. Calls on the timer itself: timer/outcomes.c.
 */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(runs_inside, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    {"outside there is no self",
     {{"self; timer 0 in=0 plain; drive 1; self", "self none, run 0, @1 self none"}}},
    {"a release knows its timer",
     {{"timer 0 in=0 [self]; timer 1 in=9 [self]; drive 1", "run 0, 0 fired, self 0"},
      {"cancel 1; self", "@1 1 cancelled, self 1, CANCELLED, self none"}}},
    {"self survives the release of another",
     {{"timer 0 in=9 [self]; timer 1 in=1 {cancel 0; self} plain; drive 1",
       "@1 run 1, 0 cancelled, self 0, CANCELLED, self 1"}}},
    /* what would wait for its own caller */
    {"the driver's own caller is refused",
     {{"timer 0 in=1 {poll; move_clock; destroy; validate} plain; timer 2 in=2 plain; drive 1",
       "@1 run 0, EBUSY, EDEADLK, EDEADLK, EBUSY"},
      {"timer 1 in=1 {close drop 0; close run 0; close drain 0} plain; drive 1",
       "@2 run 2, run 1, EDEADLK, EDEADLK, EDEADLK"},
      {"timer 3 in=1 plain; drive 1", "@3 run 3"}}},
};

Test(runs_inside, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
