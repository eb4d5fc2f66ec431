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
    /* closes */
    {"cancels tasks that have not run, and refuses new ones",
     {{"submit 1 4; submit 2 delay=1; submit 3 every=1 first=1; cancel 4; close; cancel 1",
       "4 cancelled, CANCELLED, 1 cancelled, 3 cancelled, 2 cancelled, GONE"},
      {"stats cancelled closed; submit 5 plain; submit 5; submit 6 delay=1",
       "cancelled=4, closed=1, ESHUTDOWN, ESHUTDOWN, ESHUTDOWN"},
      {"close; close_wait; advance 5", ""}}},
    {"from a task, nothing follows; the task fires",
     {{"submit 1 {close}; submit 2", "run 1, 2 cancelled, ETIMEDOUT"}}},
    {"a series that closes ends as cancelled",
     {{"submit 1 every=1 {close}; advance 5", "run 1, ETIMEDOUT, 1 cancelled"}}},
    {"waiting for oneself is refused and changes nothing",
     {{"submit 1 {close_wait}; submit 2", "run 1, EDEADLK, run 2"}}},
    {"touches no other strand", {{"other 1; close", "run 1"}}},
    {"a release cannot submit any more",
     {{"submit 1 [submit 2]; close", "1 cancelled, ESHUTDOWN"}}},
    /* destroys */
    {"a task may destroy its strand",
     {{"submit 1 {destroy}; submit 2; submit 3 delay=10", "run 1, 2 cancelled, 3 cancelled"}}},
    {"a task that has destroyed its strand cannot close the service, for which it would wait",
     {{"submit 1 {close_service; destroy; close_service}", "run 1, EBUSY, EDEADLK"}}},
    {"the same on the inline executor",
     {{"given inline; submit 1 {close_service; destroy; close_service}; advance 1",
       "run 1, EBUSY, EDEADLK"}}},
    {"what is handed over keeps the service until it has been",
     {{"submit 1 plain; destroy; close_service 1; close_service 0; schedule",
       "ETIMEDOUT, ETIMEDOUT, ESHUTDOWN"},
      {"close_service 0", ""}}},
    {"a close of the service with a manual drive gets through with what a destroyed strand left",
     {{"given inline; submit 1; destroy; close_service", "1 cancelled"}}},
    {"the timer of a destroyed strand is gone",
     {{"submit 1 delay=1; destroy; advance 5", "1 cancelled"}}},
    {"leaves no timer behind when some tasks have come due",
     {{"submit 1 delay=1; submit 2 delay=3600000; drive 3; destroy",
       "@3 1 cancelled, 2 cancelled"}}},
    /* contexts */
    {"each of three tasks runs under its own; what a run sets is over with it",
     {{"set_context 1; submit 1 {context; set_context 9}", "run 1, context 1"},
      {"set_context 2; submit 2 {context}; set_context 3; submit 3 delay=500 {context} [context]",
       "run 2, context 2"},
      {"set_context 9; advance 503; context", "@500 run 3, context 3, context 3, @503 context 9"}}},
    {"a task without one has none",
     {{"submit 1 {context}; submit 2 delay=10 {context}; set_context 9; advance 12",
       "run 1, context 0, @10 run 2, context 0"}}},
    {"a series keeps it to its end",
     {{"set_context 1; submit 1 every=10 {context; set_context 8} [context]; set_context 9",
       "run 1, context 1"},
      {"advance 20; cancel 1; context", "@10 run 1, context 1, @20 run 1, context 1, 1 cancelled, "
					"context 1, CANCELLED, context 9"}}},
    {"a series runs under the one that its spec names",
     {{"set_context 9; submit 1 every=10 skip named=3 {context} [context]; advance 10",
       "run 1, context 3, @10 run 1, context 3"},
      {"cancel 1; context", "1 cancelled, context 3, CANCELLED, context 9"}}},
    {"it surrounds a release by cancel and close",
     {{"set_context 1; submit 1 [context]; submit 2 delay=10 [context]; hold", ""},
      {"set_context 2; submit 3 [context]; submit 4 delay=10 [context]; hold", ""},
      {"set_context 9; cancel 1 2; close; context",
       "1 cancelled, context 1, CANCELLED, 2 cancelled, context 1, CANCELLED, 3 cancelled, "
       "context 2, 4 cancelled, context 2, context 9"},
      {"set_context 3; submit 6 plain", "ESHUTDOWN"}}},
    /* bounds */
    {"a strand gives its worker back after five milliseconds",
     {{"submit 0..7 stays=2; next; waiting; hold", "run 0, @2 run 1, @4 run 2, @6 1 wait"},
      {"next; hold", "run 3, @8 run 4, @10 run 5"},
      {"pump", "@12 run 6, @14 run 7"}}},
    {"a task longer than the slice is the only one of its turn",
     {{"submit 0..2 stays=10; next; hold", "run 0"},
      {"next; hold", "@10 run 1"},
      {"next; waiting", "@20 run 2, @30 0 wait"}}},
    {"delayed tasks do not wait for the service's executor",
     {{"given stuck; submit 1 delay=10; submit 2 every=10 first=10; advance 32; cancel 2",
       "@10 run 1, run 2, @20 run 2, @30 run 2, @32 2 cancelled, CANCELLED"}}},
    {"a refusing executor does not keep the service from closing",
     {{"refuse -1; submit 1; submit 2 delay=1; submit 3 every=1; advance 5", ""},
      {"destroy; close_service 1000", "@5 1 cancelled, 3 cancelled, 2 cancelled"}}},
    {"a refusing executor below two strands does not either",
     {{"refuse -1; upper 1; submit 2; advance 5", ""},
      {"destroy_others; destroy; close_service 1000", "@5 1 cancelled, 2 cancelled"}}},
    /* executors */
    {"timers that name it run on it in order",
     {{"timer 0..3 delay=1 {where}; timer 4 5 delay=2 {where}; advance 6; stats runs",
       "@1 run 0, on it, run 1, on it, run 2, on it, run 3, on it, @2 run 4, on it, run 5, on "
       "it, @6 runs=6"}}},
    {"timers and tasks share the queue",
     {{"timer 2 delay=1; submit 1; drive 3; next; submit 3", "@3 run 1, run 2, run 3"}}},
    {"cancelled timers do not run",
     {{"timer 1 2 delay=1; drive 3; cancel_timer 1", "@3 1 cancelled, CANCELLED, run 2"}}},
    {"timers that come due after a close end as cancelled",
     {{"timer 1 delay=5; close", ""}, {"advance 8", "@5 1 cancelled"}}},
    {"timers may outlive a destroyed strand",
     {{"timer 1 delay=5; drive 1; destroy; timer 2 delay=5; advance 10",
       "@5 1 cancelled, @6 2 cancelled"}}},
    {"after the end, the service's executor calls the releases, in its own time",
     {{"given queued; timer 1 delay=1; close; refuse 1; drive 5; waiting",
       "@5 1 wait, 1 cancelled"}}},
    {"a strand may use a strand as its executor, also a closed one",
     {{"submit 1; upper 2; submit 3", "run 1, run 2, run 3"},
      {"upper 4 5; close", "run 4, run 5"}}},
    {"the driver runs a strand on the inline executor",
     {{"given inline; submit 2 delay=2; submit 1; -; drive 5", "-, run 1, @2 run 2"}}},
    {"refusals lose nothing: what is refused comes a tick later",
     {{"given queued; submit 2 delay=4; refuse 2; submit 1; advance 3; refuse 3; advance 10",
       "@1 run 1, @5 run 2"}}},
    {"a strand on a strand that waits for a timer in vain may come again when both have gone",
     {{"given small; upper 1 every=10; fill", "run 1"},
      {"destroy_others; destroy", "1 cancelled"},
      {"advance 3; waiting; empty", "@3 0 wait"}}},
    /* instants in the past */
    {"a deadline in the past is due immediately", {{"submit 1 at=-1000; advance 2", "@1 run 1"}}},
    {"instants before the service's start run first, as they came",
     {{"submit 1 delay=1; submit 2 at=-999999; submit 3 at=-1000000; drive 10",
       "@10 run 2, run 3, run 1"}}},
    {"a series that begins in the past may make up for its runs",
     {{"drive 3600000; submit 1 at=0 every=600000; advance 2",
       "@3600001 run 1, run 1, run 1, run 1, run 1, run 1, run 1"},
      {"advance 600000; cancel 1", "@4200000 run 1, @4200002 1 cancelled, CANCELLED"}}},
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
