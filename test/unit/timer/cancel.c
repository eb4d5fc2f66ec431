/* Cancelling among other timers. outcomes.c has each answer, test/stress several threads. */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_cancel, .init = open_rig, .fini = close_rig, .timeout = 30);

/* -------------------------------------------------- handed over, not yet claimed */

/* Three due in the same tick: the first has run, the third has not. */
static const struct script scripts[] = {
    {"of a neighbor wins until it has run",
     {{"timer 0 in=1 plain; timer 1 in=1 {cancel 0 2} plain; timer 2 in=1 plain; drive 9",
       "@1 run 0, run 1, GONE, CANCELLED"}}},
    {"a neighbor's reset to later wins until it has run",
     {{"timer 0 in=10 {reset 1 by=50} plain; timer 1 in=10 plain; drive 100",
       "@10 run 0, @60 run 1"}}},
};

Test(timer_cancel, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* The slot of a cancelled run may serve a new timer; the old ticket must not run it. */
Test(timer_cancel, during_hand_over_keeps_the_ticket_off_the_next_timer)
{
	reopen_on_queue();
	static struct probe probes[300];
	struct probe victim = PROBE(&rig, 1000);
	probe_schedule(&victim, MS);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, victim.timer), TW_CANCELLED);
	for (int i = 0; i < 300; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], MS);
	}
	expect_eq(queue_executor_run_all(&queue), 0);
	expect_eq(rig.ran, 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_all(&queue), 300);
	expect_ids_ascend(&rig);
}

/* ------------------------------------------------------------ several at once */
