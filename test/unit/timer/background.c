/* Background timers: a drain does not wait for them. */
#include "test/support/timer_script.h"

TestSuite(timer_background, .timeout = 30);

static const struct script scripts[] = {
    {"fire as any other",
     {{"timer 0 in=1 background; timer 1 first=1 every=1 background; drive 3",
       "@1 run 0, 0 fired, run 1, @2 run 1, @3 run 1"},
      {"reset 1 by=10; drive 10", "@13 run 1"},
      {"cancel 1", "1 cancelled, CANCELLED"}}},
    /* on a manual clock a drain with other timers pending would wait for itself */
    {"hold up no drain",
     {{"timer 0 in=1 background; timer 1 in=26000000000 background; timer 2 in=0 background; "
       "timer 3 first=1 every=1 background; timer 4..6 in=1 plain background",
       ""},
      {"close drain; stats dropped", "0 dropped, 1 dropped, 2 dropped, 3 dropped, dropped=7"}}},
    {"others hold it up still",
     {{"timer 0 in=1000 plain; timer 1 in=1 background; close drain", "EDEADLK"},
      {"cancel 0; close drain", "CANCELLED, 1 dropped"}}},
    {"run in a close that runs all",
     {{"timer 0 in=3600000 background; timer 1 first=3600000 every=1 background", ""},
      {"close run", "run 0 closing, 0 fired, run 1 closing, 1 fired"}}},
    {"may be members, in the place of one that was not in the background",
     {{"group 0 1; timer 0 in=1 plain group=0; cancel 0", "CANCELLED"},
      {"timer 1 in=1000 background group=0; timer 2 in=1000 background group=1", ""},
      {"group_cancel 1; close drain", "2 cancelled, 1 dropped"}}},
};

Test(timer_background, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
