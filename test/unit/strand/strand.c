/*
 * Strands: order, one at a time, delays, series, handles. One thread, exact: the test pumps the
 * executor and moves the clock.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/faults.h"
#include "test/support/strand_script.h"
#include "test/support/strand_suite.h"

TestSuite(strand, .init = opened, .fini = closed, .timeout = 30);

/* ---------------------------------------------------------------------- order */

Test(strand, goes_to_the_back_of_the_queue_after_64_runs)
{
	static const size_t ran_after[] = {64, 128, 130};
	struct noted tasks[130];
	for (int i = 0; i < 130; i++) {
		tasks[i] = NOTED(&rig, i);
		noted_submit(&tasks[i], 0);
	}
	expect_eq(strand_stats(rig.strand).queued, 130);
	for (int i = 0; i < 3; i++) {
		expect_eq(queue_executor_waiting(&rig.queue), 1);
		expect_eq(queue_executor_run_next(&rig.queue), 1);
		expect_eq(rig.rig.ran, ran_after[i]);
	}
	expect_eq(queue_executor_waiting(&rig.queue), 0);
	expect_ids_ascend(&rig.rig);
	expect_eq(strand_stats(rig.strand).queued, 0);
	expect_eq(strand_stats(rig.strand).runs, 130);
}

static const struct script scripts[] = {
    /* order */
    {"delayed tasks run when they are due and not before, in the order of their instants",
     {{"submit 4 delay=40; submit 2 delay=20; submit 3 delay=30; submit 1; stats delayed",
       "delayed=3, run 1"},
      {"advance 19", ""},
      {"advance 26; stats delayed", "@20 run 2, @30 run 3, @40 run 4, @45 delayed=0"}}},
    {"equal delays run in the order of submission",
     {{"submit 1..9 delay=20; advance 25",
       "@20 run 1, run 2, run 3, run 4, run 5, run 6, run 7, run 8, run 9"}}},
    {"what a task submits runs after it and after what waits",
     {{"submit 1 {submit 3; where}; submit 2; where", "on none, run 1, on it, run 2, run 3"}}},
    {"a series may begin at once",
     {{"submit 1 every=10", "run 1"},
      {"advance 12", "@10 run 1"},
      {"cancel 1", "@12 1 cancelled, CANCELLED"}}},
    {"runs of a series that were missed follow in the queue",
     {{"submit 1 every=10 first=10; drive 45; submit 2", "@45 run 1, run 2, run 1, run 1, run 1"},
      {"advance 7", "@50 run 1"},
      {"cancel 1", "@52 1 cancelled, CANCELLED"}}},
    {"a series ends after the run that cancels it",
     {{"submit 1 every=1 first=1 {cancel 1}; advance 10", "@1 run 1, RUNNING, 1 cancelled"},
      {"cancel 1", "@10 GONE"}}},
    {"a series whose timer is refused tries again in each tick and runs when it is due",
     {{"given small; submit 1 every=10; fill", "run 1"},
      {"stats delayed; submit 2; advance 5", "delayed=0, @2 run 2"},
      {"advance 20; empty", "@10 run 1, @20 run 1"},
      {"advance 10; stats delayed; fill", "@30 run 1, @35 delayed=1"},
      {"advance 10; cancel 1; empty", "@40 run 1, @45 1 cancelled, CANCELLED"}}},
    /* cancels */
    {"cancel takes a task alone",
     {{"submit 1 2; submit 3 4 delay=10; cancel 1 3 1",
       "1 cancelled, CANCELLED, 3 cancelled, CANCELLED, GONE, run 2"},
      {"advance 15; cancel 2 4; stats cancelled", "@10 run 4, @15 GONE, GONE, cancelled=2"}}},
    {"waiting for oneself is refused",
     {{"submit 1 {cancel_wait 1}", "run 1, SELF"},
      {"submit 2 [cancel_wait 2]; cancel 2", "2 cancelled, SELF, CANCELLED"}}},
    {"cancel from the strand is final",
     {{"submit 1 {cancel 2}; submit 2", "run 1, 2 cancelled, CANCELLED"}}},
    {"a handle of another strand is gone",
     {{"submit 1; other 2; cancel_foreign 1; cancel 2; cancel_wait 2",
       "GONE, GONE, GONE, run 1, run 2"}}},
};

Test(strand, scripts)
{
	PLAY(&strand_stage, NULL, scripts);
}

static char *lowest, *highest;
static unsigned long rounds;

static void again(void *arg)
{
	char here;
	lowest = !lowest || &here < lowest ? &here : lowest;
	highest = &here > highest ? &here : highest;
	if (--rounds)
		tw_strand_submit(arg, again, arg);
}

Test(strand, a_task_may_submit_itself_for_ever_in_constant_stack)
{
	rounds = 1000000;
	expect_eq(tw_strand_submit(rig.strand, again, rig.strand), 0);
	strand_rig_pump(&rig);
	expect_eq(rounds, 0);
	expect_eq(highest - lowest, 0);
}

/* -------------------------------------------------------------------- handles */

static void pump_in_release(struct noted *noted)
{
	noted->answer = queue_executor_run_next(&noted->rig->queue);
}

/*
 * The runner meets the place of a task whose release is being called. The node of its handle goes
 * back once, when the release has returned.
 */
Test(strand, a_cancelled_tasks_place_may_be_met_while_its_release_runs)
{
	struct noted cancelled = NOTED(&rig, 1), a = NOTED(&rig, 2), b = NOTED(&rig, 3);
	cancelled.act_in_release = pump_in_release;
	noted_submit_released(&cancelled, 0);
	expect_eq(tw_strand_cancel(rig.strand, cancelled.task), TW_CANCELLED);
	expect_eq(cancelled.answer, 1);
	expect_eq(cancelled.releases, 1);
	noted_submit(&a, 0);
	noted_submit(&b, 0);
	expect_ne((uint32_t)a.task.id, (uint32_t)b.task.id);
	strand_rig_pump(&rig);
	expect_order(&rig, 2, 3);
}

Test(strand, a_million_idle_strands_take_128_bytes_each)
{
	tw_strand *strands[100];
	long before = faults_outstanding();
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_create(&strands[i], rig.rig.service, NULL), 0);
	/* one block each, whose size the compiler checks */
	expect_eq(faults_outstanding() - before, 100);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	expect_eq(faults_outstanding(), before);
}
