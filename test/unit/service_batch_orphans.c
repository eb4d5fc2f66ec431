/* A batch whose group ends between its two passes: it was accepted, and these members are cancelled; once each, whatever their releases do. */
#include <errno.h>

#include "test/support/faults.h"
#include "test/support/members.h"

TestSuite(batch_orphans, .timeout = 30);

enum { MANY = 40000, MEMBERS = 200 };

static struct probe probes[MANY], extra[MANY];
static struct tw_task tasks[MANY];
static tw_timer timers[MANY];

struct ending {
	struct rig *rig;
	tw_group group;
	int (*end)(tw_service *service, tw_group group);
	int answer;
};

static void end_group(void *arg)
{
	struct ending *ending = arg;
	ending->answer = ending->end(ending->rig->service, ending->group);
}

/* Members first: later than their look at the group the batch needs memory, and at that moment the group ends. */
static void make_batch(struct rig *rig, tw_group group)
{
	for (int i = 0; i < MANY; i++) {
		probes[i] = PROBE(rig, i);
		tasks[i] = probe_task(&probes[i]);
		tasks[i].when_ns = 5 * MS;
		if (i < MEMBERS)
			tasks[i].group = group;
		else
			tasks[i].release = NULL;
	}
}

static void schedule_while_group_ends(struct ending *ending)
{
	faults_call_at(0, end_group, ending);
	int answer = tw_schedule_batch(ending->rig->service, tasks, MANY, timers);
	expect_eq(faults_disarm(), true);
	expect_eq(answer, 0);
	expect_eq(ending->answer, 0);
}

static void open_touched(struct rig *rig, struct ending *ending)
{
	rig_open(rig, NULL);
	struct probe first = PROBE(rig, -1);
	probe_schedule(&first, MS); /* makes this thread known: that needs memory too */
	expect_eq(tw_cancel(rig->service, first.timer), TW_CANCELLED);
	rig_advance(rig, MS);
	ending->rig = rig;
	ending->group = group_of(rig);
	make_batch(rig, ending->group);
}

static void end_meanwhile(int (*end)(tw_service *, tw_group))
{
	struct rig rig;
	struct ending ending = {.end = end};
	open_touched(&rig, &ending);
	struct tw_stats before = stats_of(rig.service);
	schedule_while_group_ends(&ending);
	expect_eq(stats_of(rig.service).scheduled - before.scheduled, MANY);
	expect_eq(stats_of(rig.service).pending, MANY - MEMBERS);
	if (end == tw_group_close)
		expect_eq(gauges(&rig, ending.group).members, 0);
	for (int i = 0; i < MEMBERS; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED); /* on this thread, before the call returned */
	expect_eq(tw_group_destroy(rig.service, ending.group), end == tw_group_close ? 0 : -ENOENT);
	rig_advance(&rig, 5 * MS);
	expect_eq(rig.ran, MANY - MEMBERS);
	expect_ids_ascend(&rig);
	expect_eq(stats_of(rig.service).cancelled - before.cancelled, MEMBERS);
	rig_close(&rig);
}

Test(batch_orphans, of_a_group_closed_meanwhile_are_cancelled)
{
	end_meanwhile(tw_group_close);
}

Test(batch_orphans, of_a_group_destroyed_meanwhile_are_cancelled)
{
	end_meanwhile(tw_group_destroy);
}

/* A cancel comes before what is scheduled after it: the batch is, as a whole. */
Test(batch_orphans, are_none_when_the_group_is_only_cancelled)
{
	struct rig rig;
	struct ending ending = {.end = tw_group_cancel};
	open_touched(&rig, &ending);
	schedule_while_group_ends(&ending);
	expect_eq(gauges(&rig, ending.group).members, MEMBERS);
	rig_advance(&rig, 5 * MS);
	expect_eq(rig.ran, MANY);
	for (int i = 0; i < MEMBERS; i++)
		expect_released(&probes[i], TW_FATE_FIRED);
	rig_close(&rig);
}

/* The first release has the lane emptied, and then writes over it. */
static void drive_and_schedule(struct probe *probe)
{
	static const struct tw_task plain = {.size = sizeof(plain), .fn = probe_run};
	if (probe->id != 0)
		return;
	probe->answer = tw_advance(probe->rig->service, TW_NO_LIMIT);
	for (int i = 0; i < MANY && probe->answer >= 0; i++) {
		struct tw_task task = plain;
		extra[i] = PROBE(probe->rig, i);
		task.arg = &extra[i];
		task.when_ns = HOUR;
		probe->answer = tw_schedule_task(probe->rig->service, &task, &extra[i].timer);
	}
}

Test(batch_orphans, are_released_each_though_a_release_schedules)
{
	struct rig rig;
	struct ending ending = {.end = tw_group_close};
	open_touched(&rig, &ending);
	probes[0].act_in_release = drive_and_schedule;
	schedule_while_group_ends(&ending);
	expect_eq(probes[0].answer, 0);
	for (int i = 0; i < MEMBERS; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED);
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_cancel(rig.service, extra[i].timer), TW_CANCELLED);
	rig_close(&rig);
}
