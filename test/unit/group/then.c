/* tw_group_close_then: the completion is called once, when all members have ended. */
#include <errno.h>

#include "test/support/ending.h"
#include "wheel/core/service.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(group_then, .init = open_rig, .fini = close_rig, .timeout = 60);

Test(group_then, is_called_after_the_releases_of_pending_members)
{
	enum { COUNT = 1000 }; /* more than one hold of the lock */
	struct ending ending = ending_of(&rig);
	static struct probe members[COUNT];
	add_members(&ending, members, COUNT, HOUR);
	rig_advance(&rig, MS);
	expect_eq(end(&ending), 0);
	for (int i = 0; i < COUNT; i++)
		expect_released(&members[i], TW_FATE_CANCELLED);
	expect_eq(ending.calls, 0); /* not inside the call */
	rig_advance(&rig, MS);
	expect_complete(&ending);
	struct probe late = PROBE(&rig, COUNT);
	expect_eq(schedule_in(&late, ending.group, MS, true), -ESHUTDOWN);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
}

/* ------------------------------------------------------------ what it may do */

static int answers[5];

static void do_much(struct ending *ending)
{
	tw_service *service = ending->rig->service;
	answers[0] = tw_group_cancel_wait(service, ending->group, TW_FOREVER);
	answers[1] = end(ending);
	answers[2] = tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER);
	answers[3] = tw_group_destroy(service, ending->group);
	answers[4] = tw_group_create(&ending->group, service);
}

Test(group_then, may_destroy_its_group_and_make_another)
{
	struct ending ending = ending_of(&rig);
	tw_group first = ending.group;
	struct probe members[2];
	add_members(&ending, members, 2, HOUR);
	ending.act = do_much;
	expect_eq(end(&ending), 0);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_eq(answers[0], TW_CANCELLED);
	expect_eq(answers[1], -EALREADY);
	expect_eq(answers[2], -EDEADLK);
	expect_eq(answers[3], 0);
	expect_eq(answers[4], 0);
	expect_eq(ending.group.id & 0xffffff, first.id & 0xffffff); /* the storage is free again */
	struct probe next = PROBE(&rig, 7);
	expect_eq(schedule_in(&next, ending.group, MS, true), 0);
	rig_advance(&rig, MS);
	expect_released(&next, TW_FATE_FIRED);
	expect_eq(ending.calls, 1);
}

Test(group_then, is_called_though_the_group_is_destroyed_before)
{
	struct ending ending = ending_of(&rig), empty = ending_of(&rig);
	struct probe members[2];
	add_members(&ending, members, 2, HOUR);
	expect_eq(end(&ending), 0);
	expect_eq(end(&empty), 0);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
	expect_eq(tw_group_destroy(rig.service, empty.group), 0);
	tw_group other = group_of(&rig); /* not in the place of one whose completion is pending */
	expect_ne(other.id & 0xffffff, ending.group.id & 0xffffff);
	expect_ne(other.id & 0xffffff, empty.group.id & 0xffffff);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_complete(&empty);
	tw_group again[2] = {group_of(&rig), group_of(&rig)};
	expect_lt(again[0].id & 0xffffff, other.id & 0xffffff);
	expect_lt(again[1].id & 0xffffff, other.id & 0xffffff);
}

/* ------------------------------------------------------------ when it is called */

static const struct script scripts[] = {
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
