/*
 * Scheduling: when a timer runs, for delays of every size, and what a schedule leaves behind when
 * it is refused.
 */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_schedule, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ delays of every size */

static const struct script scripts[] = {
    {"never runs inside the call, and needs no time to pass",
     {{"drive 10; timer 0 in=0 plain; timer 1 at=2 plain; timer 2 at=10 plain; -", "@10 -"},
      {"poll", "run 0, run 1 late=8, run 2, 3"}}},
    {"the callback may read the handle that it was given",
     {{"timer 0 in=0 {self}; timer 1 every=1 count=1 {self} plain; drive 0",
       "run 0, self 0, 0 fired, run 1, self 1"}}},
    {"a task takes a delay or a deadline, and a callback may schedule",
     {{"timer 0 in=3 {timer 2 in=2 plain} plain; timer 1 at=7 plain; drive 10",
       "@3 run 0, @5 run 2, @7 run 1"}}},
};

Test(timer_schedule, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
