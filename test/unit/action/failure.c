/*
 * What a failure does: it closes its action, and the others only if the scheduler is configured to.
 * Each failure is reported once.
 */
#include "test/support/action_script.h"
#include "test/support/action_suite.h"

TestSuite(action_failure, .fini = close_left, .timeout = 30);

static const struct script failures[] = {
    {"a failure spares its batch, and the flush of asap returns the first",
     "asap caller",
     {{"arm 0; arm 1 fails=11; arm 2; arm 3 fails=13; arm 4; flush",
       "wanted, run 0, run 1, run 2, run 3, failed 13 of 3, run 4, 11"},
      {"state 0..4; stats failures closed_by_failure untold",
       "IDLE, CLOSED, IDLE, CLOSED, IDLE, failures=2, closed_by_failure=0, untold=0"}}},
    {"a failure spares its batch, and the flush of frame returns the first",
     "frame caller",
     {{"arm 0; arm 1 fails=11; arm 2; arm 3 fails=13; arm 4; flush",
       "wanted, run 0, run 1, run 2, run 3, failed 13 of 3, run 4, 11"},
      {"state 0..4; stats failures closed_by_failure untold",
       "IDLE, CLOSED, IDLE, CLOSED, IDLE, failures=2, closed_by_failure=0, untold=0"}}},
    {"one that no call returns is told each time",
     "frame",
     {{"arm 0; arm 1 fails=11; arm 2; arm 3 fails=13; arm 4; drive 1000; state 0..4",
       "@17 run 0, run 1, failed 11 of 1, run 2, run 3, failed 13 of 3, run 4, @1000 IDLE, "
       "CLOSED, IDLE, CLOSED, IDLE"}}},
};

Test(action_failure, failures)
{
	PLAY(&action_stage, NULL, failures);
}

/* ------------------------------------------------------------------ refusals */

static struct {
	int inside, overlaps, told, last;
	tw_action *rearm;
} hook;

static void tell_slowly(void *arg, tw_action *action, int failure, size_t closed)
{
	hook.overlaps += hook.inside++ != 0;
	hook.told++;
	hook.last = failure;
	if (arg)
		queue_executor_run_all(arg); /* what else waits runs meanwhile, if it may */
	if (action && action == hook.rearm)
		tw_action_schedule(action, NULL, MS);
	hook.inside--;
}

static int note_overlap(tw_action *action, void *state)
{
	hook.overlaps += hook.inside++ != 0;
	if (state)
		queue_executor_run_all(state);
	hook.inside--;
	return 0;
}

static tw_strand *strand;

/*
 * ASYNC actions on a strand that is closed. The service's executor, a queue, calls the releases of
 * their timers.
 */
static void open_refusing(void)
{
	open_queue();
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	scheduler = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .service = rig.service,
						 .executor = tw_strand_executor(strand),
						 .failed = tell_slowly,
						 .failed_arg = &tickets});
	expect_eq(tw_strand_close(strand, 0), 0);
}

static void close_strand(void)
{
	close_scheduler();
	expect_eq(tw_strand_destroy(strand), 0);
}

/* The releases of all refused timers come while the hook is inside, or an action's run. */
Test(action_failure, refusals_are_told_one_at_a_time_and_beside_no_work)
{
	open_refusing();
	tw_action *actions[3];
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
	expect_eq(tw_action_run(actions[2], &tickets), 0);
	expect_eq(hook.told, 4);
	expect_eq(hook.last, -ESHUTDOWN);
	expect_eq(hook.overlaps, 0);
	expect_eq(action_stats(scheduler).refused, 4);
	expect_eq(action_stats(scheduler).runs, 1);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	close_strand();
}

Test(action_failure, refused_action_may_be_armed_again_where_it_is_told)
{
	open_refusing();
	schedule_new(scheduler, note_overlap, NULL, MS, &hook.rearm);
	for (int told_before = 0; told_before < 3; told_before++) {
		expect_eq(tw_action_state(hook.rearm), TW_ACTION_STATE_ARMED);
		expect_eq(hook.told, told_before);
		rig_advance(&rig, MS);
		queue_executor_run_all(&tickets);
	}
	expect_eq(hook.told, 3);
	tw_action_destroy(hook.rearm);
	close_strand();
}

static void count_run(void *arg)
{
	++*(int *)arg;
}

/*
 * ASYNC and FRAME on a strand that is closed under them: told once for each action, and nothing
 * asks again.
 */
Test(action_failure, closed_strand_ends_the_frame_with_a_notification)
{
	int runs = 0;
	rig_open(&rig, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	scheduler = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_FRAME,
						 .service = rig.service,
						 .executor = tw_strand_executor(strand),
						 .failed = tell_slowly});
	tw_action *actions[2];
	for (int i = 0; i < 2; i++)
		schedule_new(scheduler, note_overlap, NULL, 0, &actions[i]);
	expect_eq(submit_immediate(scheduler, count_run, &runs), 1);
	expect_eq(tw_strand_close(strand, 0), 0);
	rig_advance(&rig, 50 * MS);
	expect_eq(hook.told, 3);
	expect_eq(hook.last, -ESHUTDOWN);
	struct tw_action_scheduler_stats stats = action_stats(scheduler);
	expect_eq(stats.turns, 1);
	expect_eq(stats.armed, 0);
	expect_eq(stats.runs, 0);
	rig_advance(&rig, SECOND);
	expect_eq(hook.told, 3);
	expect_eq(runs, 0);
	for (int i = 0; i < 2; i++) {
		expect_ne(tw_action_state(actions[i]), TW_ACTION_STATE_CLOSED);
		tw_action_schedule(actions[i], NULL, MS);
	}
	rig_advance(&rig, 50 * MS);
	expect_eq(hook.told, 5);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_action_destroy(actions[i]), TW_GONE);
	close_strand();
}
