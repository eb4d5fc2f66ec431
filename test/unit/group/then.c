/* tw_group_close: the completion is called once, when all members have ended. */
#include "test/support/members.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(group_then, .init = open_rig, .fini = close_rig, .timeout = 60);

static void count(void *calls)
{
	++*(int *)calls;
}

/* Its group's storage is free when the completion has been called, and not before. */
Test(group_then, keeps_the_storage_of_its_group)
{
	int calls = 0;
	tw_group ending = group_of(&rig), empty = group_of(&rig);
	struct probe member = PROBE(&rig, 1);
	expect_eq(schedule_in(&member, ending, HOUR, true), 0);
	expect_eq(tw_group_close(rig.service, ending, count, &calls), 0);
	expect_eq(tw_group_close(rig.service, empty, count, &calls), 0);
	expect_eq(tw_group_destroy(rig.service, ending), 0);
	expect_eq(tw_group_destroy(rig.service, empty), 0);
	tw_group other = group_of(&rig);
	expect_ne(other.id & 0xffffff, ending.id & 0xffffff);
	expect_ne(other.id & 0xffffff, empty.id & 0xffffff);
	expect_eq(calls, 0);
	rig_advance(&rig, MS);
	expect_eq(calls, 2);
	expect_released(&member, TW_FATE_CANCELLED);
	for (int i = 0; i < 2; i++)
		expect_lt(group_of(&rig).id & 0xffffff, other.id & 0xffffff);
}

/* ------------------------------------------------------------ when it is called */

static const struct script scripts[] = {
    /* more than one hold of the lock; not inside the call */
    {"after the releases of pending members",
     {{"group 0; timer 0..59 in=9 plain group=0; timer 60 in=9 group=0; drive 1; then 0; -",
       "@1 60 cancelled, -"},
      {"members 0; timer 61 in=1 group=0; stats cancelled; poll; group_destroy 0",
       "members=0, ESHUTDOWN, cancelled=61, done 0"}}},
    {"may destroy its group and make another",
     {{"group 0; timer 0 1 in=9 group=0; then 0 {group_wait 0; then 0; close drop; group_destroy "
       "0; "
       "group 0; timer 2 in=1 group=0}; drive 2",
       "0 cancelled, 1 cancelled, done 0, CANCELLED, EALREADY, EDEADLK, @1 run 2, 2 fired"}}},
    {"not for a group that is not, or is gone",
     {{"then 0; group 0; timer 0 in=1 group=0; group_destroy 0; then 0; drive 9",
       "ENOENT, 0 cancelled, ENOENT"}}},
    /* a completion is no callback of a timer */
    {"for a group without members, in the next poll",
     {{"group 0; then 0; -; poll", "-, done 0"}, {"drive 9", ""}}},
    {"asked for in a member's callback, when all have ended",
     {{"group 0; timer 0 in=1 group=0; timer 1 in=1 group=0 {then 0; -}; timer 2 in=1 group=0; "
       "drive 9",
       "@1 run 0, 0 fired, run 1, 2 cancelled, -, 1 fired, done 0"}}},
    {"asked for in a member's release",
     {{"group 0; timer 0 in=1 group=0 [then 0; -]; timer 1 in=9 group=0; drive 9",
       "@1 run 0, 0 fired, 1 cancelled, -, done 0"},
      {"group 1; timer 2 in=1 group=1 [then 1; -]; timer 3 in=9 group=1; cancel 2; drive 1",
       "@9 2 cancelled, 3 cancelled, -, CANCELLED, done 1"}}},
    {"a member that has armed itself again ends first",
     {{"group 0; timer 0 in=1 group=0 {reset 0 by=1; then 0}; drive 9",
       "@1 run 0, 0 cancelled, done 0"}}},
    {"is given once, also to a closed group",
     {{"group 0; group_close 0; then 0; then 0; drive 1; then 0",
       "EALREADY, done 0, @1 EALREADY"}}},
    {"does not wait for members that have ended",
     {{"group 0; timer 0 1 in=1 plain group=0; cancel 0 1; then 0; drive 1",
       "CANCELLED, CANCELLED, done 0"},
      {"timer 2 in=1 group=0; group_destroy 0", "@1 ESHUTDOWN"}}},
    {"waits for a member that runs",
     {{"given queued; group 0; timer 0 in=1 group=0 {next; poll; waiting}; timer 1 in=1 group=0 "
       "{then 0}",
       ""},
      {"hold; drive 1", ""},
      {"next", "@1 run 0, run 1, 1 fired, 0 wait, 0 fired"},
      {"advance 1", "@2 done 0"}}},
    {"is offered again to an executor that refuses, or gives back",
     {{"given queued; group 0 1; then 0; refuse -1; hold; drive 5; waiting", "@5 0 wait"},
      {"refuse 0; advance 1", "@6 done 0"},
      {"then 1; hold; drive 1; give_back; waiting", "@7 0 wait"},
      {"advance 1", "@8 done 1"}}},
};

Test(group_then, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
