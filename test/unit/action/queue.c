/* The trampoline: now if idle, else after what runs, without recursion. */
#include "test/support/action_suite.h"

static void open_trampoline(void)
{
	open_scheduler((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_QUEUE});
}

TestSuite(action_queue, .init = open_trampoline, .fini = close_left, .timeout = 30);

Test(action_queue, runs_at_once_while_idle)
{
	struct work work = {.log = &notes, .id = 1};
	arm(&work, 0);
	expect_log(&notes, 1);
	tw_action_schedule(work.action, &work, 0);
	expect_log(&notes, 1, 1);
}

static void arm_other_and_note(struct work *work)
{
	if (!work->other)
		return;
	work->error = tw_action_schedule(work->other->action, work->other, 0);
	work->log->ids[work->log->count++] = 100 + work->id; /* the end of the parent */
}

Test(action_queue, finishes_the_parent_before_the_child_begins)
{
	struct work grandchild = {.log = &notes, .id = 3};
	struct work child = {
	    .log = &notes, .id = 2, .act = arm_other_and_note, .other = &grandchild};
	struct work parent = {.log = &notes, .id = 1, .act = arm_other_and_note, .other = &child};
	create(&grandchild);
	create(&child);
	arm(&parent, 0);
	expect_log(&notes, 1, 101, 2, 102, 3);
}

static void arm_two_others(struct work *work)
{
	tw_action_schedule(work->other[0].action, &work->other[0], 0);
	tw_action_schedule(work->other[1].action, &work->other[1], 0);
}

Test(action_queue, keeps_the_order_in_which_things_were_armed)
{
	struct work others[2] = {{.log = &notes, .id = 2}, {.log = &notes, .id = 3}};
	struct work parent = {
	    .log = &notes, .id = 1, .act = arm_two_others, .other = others, .rearms = 1};
	create(&others[0]);
	create(&others[1]);
	arm(&parent, 0);
	/* it has armed itself first, and the others again, which moves them to the end */
	expect_log(&notes, 1, 1, 2, 3);
}

static char *lowest, *highest;

/* Each schedules the next, a new one. */
static int chain_left;

static int chain(tw_action *action, void *state)
{
	char here;
	char *volatile at = &here;
	tw_action *next;
	lowest = !lowest || at < lowest ? at : lowest;
	highest = !highest || at > highest ? at : highest;
	if (chain_left-- > 0)
		schedule_new(scheduler, chain, state, 0, &next);
	tw_action_destroy(action);
	return 0;
}

Test(action_queue, chains_a_million_actions_in_constant_stack)
{
	tw_action *first;
	chain_left = 1000000;
	expect_eq(schedule_new(scheduler, chain, NULL, 0, &first), 0);
	expect_eq(chain_left, -1);
	expect_lt(highest - lowest, 1024);
	expect_eq(action_stats(scheduler).runs, 1000001);
	expect_eq(action_stats(scheduler).actions, 0);
}

static void arm_others_and_fail(struct work *work)
{
	arm_two_others(work);
	work->answer = 9;
}

Test(action_queue, returns_a_failure_to_the_call_that_drove_it_closes_what_waits_and_goes_on)
{
	close_scheduler();
	open_scheduler((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_QUEUE,
							   .flags = TW_ACTION_FLAG_CANCEL_BATCH});
	struct work others[2] = {{.log = &notes, .id = 2}, {.log = &notes, .id = 3}},
		    next = {.log = &notes, .id = 4};
	struct work parent = {.log = &notes,
			      .id = 1,
			      .act = arm_others_and_fail,
			      .other = others,
			      .scheduler = scheduler};
	create(&others[0]);
	create(&others[1]);
	parent.error = schedule_new(scheduler, work_run, &parent, 0, &parent.action);
	cr_assert_not_null(parent.action);
	armed_actions[armed_count++] = parent.action;
	expect_eq(parent.error, 9);
	expect_log(&notes, 1);
	expect_eq(tw_action_state(others[0].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_state(others[1].action), TW_ACTION_STATE_CLOSED);
	arm(&next, 0);
	expect_log(&notes, 1, 4);
	expect_eq(action_stats(scheduler).closed_by_failure, 2);
	expect_eq(action_stats(scheduler).untold, 0);
}

Test(action_queue, with_a_delay_does_as_async)
{
	close_scheduler();
	open_on(TW_ACTION_KIND_QUEUE);
	struct work late = {.log = &notes, .id = 1, .rearms = 2, .delay_ns = 5 * MS},
		    now = {.log = &notes, .id = 2};
	arm(&late, 5 * MS);
	arm(&now, 0);
	expect_log(&notes, 2);
	rig_advance(&rig, SECOND);
	expect_log(&notes, 2, 1, 1, 1);
	expect_eq(notes.at_ns[3], RIG_START_NS + 15 * MS);
}
