/*
 * What a failure does: it closes its action, and the others only if the scheduler is configured to.
 * Each failure is reported once.
 */
#include "test/support/action_suite.h"

TestSuite(action_failure, .fini = close_left, .timeout = 30);

/* ------------------------------------------------------------------ refusals */

static struct {
	int inside, overlaps, told, last;
} hook;

static void tell_slowly(void *arg, tw_action *action, int failure, size_t closed)
{
	hook.overlaps += hook.inside++ != 0;
	hook.told++;
	hook.last = failure;
	queue_executor_run_all(&tickets); /* what else waits runs meanwhile, if it may */
	hook.inside--;
}

static int note_overlap(tw_action *action, void *state)
{
	hook.overlaps += hook.inside++ != 0;
	queue_executor_run_all(&tickets);
	hook.inside--;
	return 0;
}

/*
 * The releases of all refused timers come while the hook is inside, or an action's run: the
 * service's executor, a queue, calls them.
 */
Test(action_failure, refusals_are_told_one_at_a_time_and_beside_no_work)
{
	tw_strand *strand;
	tw_action *actions[3];
	open_queue();
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	scheduler = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .service = rig.service,
						 .executor = tw_strand_executor(strand),
						 .failed = tell_slowly});
	expect_eq(tw_strand_close(strand, 0), 0);
	expect_eq(tw_action_create(&actions[2], scheduler, note_overlap, NULL), 0);
	for (int i = 0; i < 2; i++)
		schedule_new(scheduler, note_overlap, NULL, MS, &actions[i]);
	rig_advance(&rig, MS);
	queue_executor_run_next(&tickets);
	expect_eq(hook.told, 2);
	for (int i = 0; i < 2; i++) {
		expect_eq(tw_action_state(actions[i]), TW_ACTION_STATE_IDLE);
		expect_eq(tw_action_schedule(actions[i], NULL, MS), 0);
	}
	rig_advance(&rig, MS);
	expect_eq(hook.told, 2);
	expect_eq(tw_action_run(actions[2], NULL), 0);
	expect_eq(hook.told, 4);
	expect_eq(hook.last, -ESHUTDOWN);
	expect_eq(hook.overlaps, 0);
	expect_eq(action_stats(scheduler).refused, 4);
	expect_eq(action_stats(scheduler).runs, 1);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	close_scheduler();
	expect_eq(tw_strand_destroy(strand), 0);
}
