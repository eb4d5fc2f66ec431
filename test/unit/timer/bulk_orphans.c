/*
 * A batch whose group ends between its two passes: it was accepted, and these members are
 * cancelled, once each.
 */
#include <errno.h>
#include <sched.h>

#include "test/support/big.h"
#include "test/support/faults.h"
#include "test/support/members.h"

enum { MANY = 40000, MEMBERS = 200 };

/* MANY of each */
static struct probe *probes;
static struct tw_task *tasks;
static tw_timer *timers;

static void allocate(void)
{
	probes = big_array(MANY, sizeof *probes);
	tasks = big_array(MANY, sizeof *tasks);
	timers = big_array(MANY, sizeof *timers);
}

TestSuite(timer_bulk_orphans, .init = allocate, .timeout = 30);

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

/*
 * Members first: later than their look at the group the batch needs memory, and at that moment the
 * group ends.
 */
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
	int answer = tw_schedule_bulk(ending->rig->service, tasks, MANY, timers);
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
	struct tw_service_stats before = stats_of(rig.service);
	schedule_while_group_ends(&ending);
	expect_eq(stats_of(rig.service).scheduled - before.scheduled, MANY);
	expect_eq(stats_of(rig.service).pending, MANY - MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		expect_eq(tw_is_pending(rig.service, timers[i]), false);
	rig_advance(&rig, MS);
	for (int i = 0; i < MEMBERS; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED);
	if (end != tw_group_destroy)
		expect_eq(gauges(&rig, ending.group).members, 0);
	expect_eq(tw_group_destroy(rig.service, ending.group),
		  end == tw_group_destroy ? -ENOENT : 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(rig.ran, MANY - MEMBERS);
	expect_ids_ascend(&rig);
	expect_eq(stats_of(rig.service).cancelled - before.cancelled, MEMBERS);
	rig_close(&rig);
}

Test(timer_bulk_orphans, of_a_group_closed_meanwhile_are_cancelled)
{
	end_meanwhile(tw_group_close);
}

Test(timer_bulk_orphans, of_a_group_destroyed_meanwhile_are_cancelled)
{
	end_meanwhile(tw_group_destroy);
}

/* They had entered the group when it was cancelled; it takes members again. */
Test(timer_bulk_orphans, of_a_group_cancelled_meanwhile_are_cancelled)
{
	end_meanwhile(tw_group_cancel);
}

/*
 * After close and cancel_wait nothing of a member runs, of a batch under way neither: so the wait
 * is for the batch.
 */
struct waiting {
	struct ending *ending;
	pthread_t thread;
	atomic_bool closed;
	int answer, released; /* at the answer */
};

static void *close_and_wait(void *arg)
{
	struct waiting *waiting = arg;
	tw_service *service = waiting->ending->rig->service;
	tw_group group = waiting->ending->group;
	waiting->answer = tw_group_close(service, group);
	atomic_store(&waiting->closed, true);
	if (waiting->answer == 0)
		waiting->answer = tw_group_cancel_wait(service, group, TW_FOREVER);
	for (int i = 0; i < MEMBERS; i++)
		waiting->released += atomic_load(&probes[i].releases);
	return NULL;
}

static struct waiting waiting;

static void start_to_wait(void *arg)
{
	waiting = (struct waiting){.ending = arg};
	pthread_create(&waiting.thread, NULL, close_and_wait, &waiting);
	while (!atomic_load(&waiting.closed))
		sched_yield();
}

Test(timer_bulk_orphans, are_waited_for)
{
	struct rig rig;
	struct ending ending = {0};
	open_touched(&rig, &ending);
	faults_call_at(0, start_to_wait, &ending);
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	expect_eq(faults_disarm(), true);
	pthread_join(waiting.thread, NULL);
	expect_eq(waiting.answer, TW_CANCELLED);
	expect_eq(waiting.released, MEMBERS);
	rig_advance(&rig, 5 * MS);
	expect_eq(rig.ran, MANY - MEMBERS);
	rig_close(&rig);
}
