/*
 * Groups: what ends members, what calls answer meanwhile, and the ledger. Each answer on a member
 * of a cancelled group: timer/outcomes.c.
 */
#include <string.h>

#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(group, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    {"members fire like other timers",
     {{"group 0; timer 0 in=1 plain group=0; timer 1 in=2 group=0", ""},
      {"timer 2 first=3 every=1 count=3 group=0; members 0", "members=3"},
      {"drive 9; members 0", "@1 run 0, @2 run 1, 1 fired, @3 run 2, @4 run 2, @5 run 2, "
			     "2 fired, @9 members=0"}}},
    {"a member can be cancelled and moved by itself",
     {{"group 0; timer 0 1 in=1 plain group=0; timer 2 in=1 group=0; reset 0 by=5", ""},
      {"cancel 1; cancel 1; cancel 2; members 0",
       "CANCELLED, GONE, 2 cancelled, CANCELLED, members=1"},
      {"drive 10; stats cancelled", "@5 run 0, @10 cancelled=2"}}},
    {"a cancel ends the members that there are, and nobody else",
     {{"group 0 1; timer 0 in=1 plain; timer 1 in=1 group=1; group_cancel 0; members 0",
       "members=0"},
      {"timer 2 in=1 plain group=0; group_cancel 0; cancel 2; left 2", "GONE, ENOENT"},
      {"timer 3 in=1 group=0; members 0; drive 1", "members=1, @1 run 0, run 1, 1 fired, "
						   "run 3, 3 fired"},
      {"stats cancelled; members 0", "cancelled=1, members=0"}}},
    {"a member has nothing of the last one in its place",
     {{"group 0; timer 0 in=1 group=0; cancel 0; timer 1 in=1 plain group=0; cancel 1",
       "0 cancelled, CANCELLED, CANCELLED"},
      {"timer 2 first=1 every=1 group=0; cancel 2; timer 3 in=1 plain group=0; drive 9",
       "2 cancelled, CANCELLED, @1 run 3"}}},
    /* far timers, and those moved to earlier, have entries in more places */
    {"leaves nothing behind in the wheel",
     {{"group 0; timer 0 in=20 group=0; timer 1 in=34560000000 plain group=0", ""},
      {"timer 2 in=3600000 plain group=0; drive 1; reset 2 by=30; group_cancel 0",
       "@1 0 cancelled"},
      {"drive 34561000000; stats entries", "@34561000001 entries=0"}}},
    {"is cancelled in a member's callback",
     {{"group 0; timer 0 in=1 group=0 {group_cancel 0; cancel 0; reset 0 by=1; group_wait 0; "
       "cancel_wait 0; members 0}; timer 1 in=1 group=0; drive 9",
       "@1 run 0, 1 cancelled, RUNNING, ECANCELED, SELF, SELF, members=1 running=1, 0 fired"}}},
    /* the re-arm was before the cancel, and goes with it */
    {"a run under way is the last",
     {{"group 0; timer 0 in=1 group=0 {reset 0 by=1; group_cancel 0}; drive 9",
       "@1 run 0, 0 cancelled"},
      {"timer 1 first=1 every=1 group=0 {group_cancel 0}; drive 9", "@10 run 1, 1 cancelled"},
      {"stats cancelled", "@18 cancelled=2"}}},
    /* it would have ended anyway, and was cancelled all the same, as with tw_cancel */
    {"is cancelled in the last run of a series",
     {{"group 0; timer 0 first=1 every=1 count=1 group=0 {group_cancel 0}; drive 1",
       "@1 run 0, 0 cancelled"}}},
    {"a close ends re-arms and series, and refuses later members",
     {{"group 0; timer 0 in=1 times=9 group=0 {reset 0 by=1}; drive 2", "@1 run 0, @2 run 0"},
      {"timer 1 first=0 every=1 group=0; timer 2 in=1 {group_close 0} plain; drive 3",
       "run 1, @3 run 0, run 2, 0 cancelled, 1 cancelled"},
      {"timer 3 in=1 group=0; timer 4 first=1 every=1 group=0; stats rejected",
       "@5 ESHUTDOWN, ESHUTDOWN, rejected=2"},
      {"group_close 0; group_cancel 0; drive 9", ""}}},
    {"cancel_wait may be called from others' callbacks",
     {{"group 0; timer 0 in=9 group=0; timer 1 in=1 {group_wait 0} plain; drive 1",
       "@1 run 1, 0 cancelled, CANCELLED"}}},
    {"cancel_wait in a member's release waits for nobody",
     {{"group 0; timer 0 in=9 group=0 [group_wait 0]; group_cancel 0", "0 cancelled, SELF"}}},
    {"stays its owner's when it is empty",
     {{"group 0; timer 0 in=1 group=0; drive 1; members 0", "@1 run 0, 0 fired, members=0"},
      {"group 1; timer 1 in=1 group=0; group_cancel 1; drive 1", "@2 run 1, 1 fired"}}},
    {"ends members whose runs an executor refuses, or has",
     {{"given queued; group 0; refuse -1; timer 0 in=1 group=0; timer 1 in=9 group=0; drive 1", ""},
      {"group_cancel 0; cancel 1", "@1 0 cancelled, 1 cancelled, GONE"},
      {"refuse 0; timer 2 in=1 group=0; hold; drive 1; group_cancel 0", "@2 2 cancelled"},
      {"pump; close drop", ""}}},
    /* the other member has ended, and this thread calls its release next, or has called it */
    {"a release may cancel another member, and waits for none whose release comes next",
     {{"group 0; timer 0 in=9 group=0 [cancel 1; cancel_wait 1]; timer 1 in=9 group=0 "
       "[cancel_wait 0]; group_cancel 0",
       "0 cancelled, RUNNING, EDEADLK, 1 cancelled, GONE"}}},
    /* what a release schedules is a later member: the cancel that calls the release leaves it */
    {"a release may schedule into its group, and cancel it",
     {{"group 0; timer 0 in=9 group=0 [timer 1 in=9 group=0]; group_cancel 0; left 1",
       "0 cancelled, left 9"},
      {"timer 2 in=9 group=0 [timer 3 in=9 group=0; group_cancel 0; left 3]; group_cancel 0",
       "1 cancelled, 2 cancelled, 3 cancelled, ENOENT"}}},
};

/* Beside members that run. */
static const struct script beside[] = {
    {"a wait lasts until callbacks have returned, and their releases",
     {{"given real workers=2; group 0; timer 0 in=0 group=0 {stand 0}; begun 0", "run 0"},
      {"timer 1 in=3600000 group=0; group_cancel 0; cancel 0; reset 0 by=1000",
       "1 cancelled, RUNNING, EBUSY"},
      {"cancel_wait 0 within=1; group_wait 0 within=1", "RUNNING, RUNNING"},
      {"beside 1 {group_wait 0}; pause 20; let 0; joined 1; group_destroy 0; stats runs",
       "0 fired, CANCELLED, runs=1"}}},
    {"a wait lasts until releases have returned",
     {{"given real workers=2; group 0; timer 0 in=0 group=0 [stand 0; -]; begun 0",
       "run 0, 0 fired"},
      {"timer 1 in=3600000 group=0; group_cancel 0; cancel 0; reset 0 by=1000",
       "1 cancelled, RUNNING, ENOENT"},
      {"cancel_wait 0 within=1; group_wait 0 within=1", "RUNNING, RUNNING"},
      {"beside 1 {group_wait 0}; pause 20; let 0; joined 1; group_destroy 0; stats runs",
       "-, CANCELLED, runs=1"}}},
    {"a wait is not for members that came after the cancel",
     {{"given real workers=2; group 0; timer 0 in=3600000 group=0; group_cancel 0", "0 cancelled"},
      {"timer 1 in=0 group=0 {stand 1}; begun 1; members 0; let 1; group_wait 0",
       "run 1, members=1 running=1, 1 fired, CANCELLED"}}},
};

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

Test(group, follows_the_scripts)
{
	tw_set_misuse_hook(hear);
	PLAY(&timer_stage, NULL, scripts);
	cr_assert_str_eq(heard, "tw_cancel_wait: called from inside what it would wait for");
	tw_set_misuse_hook(NULL);
}

Test(group, follows_the_scripts_beside_members_that_run)
{
	PLAY(&timer_stage, NULL, beside);
}
