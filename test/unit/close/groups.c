/* Close beside groups: what becomes of their members. */
#include "test/support/timer_script.h"

TestSuite(close_groups, .timeout = 30);

static const struct script scripts[] = {
    /* members of cancelled groups are not dropped, whether a call has met them as gone or not */
    {"drops live members only",
     {{"group 0 1 2; timer 0 1 in=9 group=0; timer 2 first=9 every=1 group=0", ""},
      {"timer 3 in=9 group=1; timer 4 in=9 group=2; timer 5 first=9 every=1 group=2", ""},
      {"timer 6 in=9; drive 1; group_cancel 0; group_destroy 1; cancel 1",
       "@1 0 cancelled, 1 cancelled, 2 cancelled, 3 cancelled, GONE"},
      {"close drop; stats cancelled dropped; members 0 2",
       "4 dropped, 5 dropped, 6 dropped, cancelled=4, dropped=3, members=0, members=0"},
      {"timer 7 in=1 group=2; group 3; group_cancel 2; group_wait 2; group_destroy 2",
       "ESHUTDOWN, ESHUTDOWN, CANCELLED"}}},
    /* their tickets run nothing, and the group is empty immediately */
    {"with timeout 0 empties groups whose members wait for their executor",
     {{"given queued; group 0 1; timer 0 in=1 group=0; timer 1 first=1 every=1 group=0", ""},
      {"timer 2 in=1 group=1; hold; drive 1; waiting; group_cancel 1", "@1 3 wait, 2 cancelled"},
      {"hold; close drop 0; members 0 1; group_wait 0",
       "0 dropped, 1 dropped, ETIMEDOUT, members=0, members=0, CANCELLED"},
      {"pump; close drop", ""}}},
    {"runs live members once",
     {{"group 0 1; timer 0 in=9 group=0; timer 1 first=9 every=1 group=0", ""},
      {"timer 2 first=9 every=1 group=1; group_close 1", "2 cancelled"},
      {"close run; members 0", "run 0 closing, 0 fired, run 1 closing, 1 fired, members=0"}}},
    /* they need no clock: nobody would wait for itself */
    {"drains without waiting for members that are cancelled",
     {{"group 0; timer 0 in=9 group=0; group_cancel 0; close drain", "0 cancelled"}}},
};

Test(close_groups, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
