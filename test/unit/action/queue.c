/* The trampoline: now if idle, else after what runs, without recursion. */
#include "test/support/actions.h"

TestSuite(action_queue, .timeout = 30);

static tw_action_scheduler *open_queue(void)
{
	return scheduler_of(&(struct tw_action_scheduler_config){
	    .size = sizeof(struct tw_action_scheduler_config), .kind = TW_ACTION_KIND_QUEUE});
}

Test(action_queue, runs_at_once_while_idle)
{
	tw_action_scheduler *queue = open_queue();
	struct log log = {0};
	struct work work = {.log = &log, .id = 1};
	work_schedule(&work, queue, 0);
	expect_log(&log, 1);
	tw_action_schedule(work.action, &work, 0);
	expect_log(&log, 1, 1);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
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
	tw_action_scheduler *queue = open_queue();
	struct log log = {0};
	struct work grandchild = {.log = &log, .id = 3};
	struct work child = {.log = &log, .id = 2, .act = arm_other_and_note, .other = &grandchild};
	struct work parent = {.log = &log, .id = 1, .act = arm_other_and_note, .other = &child};
	expect_eq(tw_action_create(&grandchild.action, queue, work_run, NULL), 0);
	expect_eq(tw_action_create(&child.action, queue, work_run, NULL), 0);
	grandchild.scheduler = child.scheduler = queue;
	work_schedule(&parent, queue, 0);
	expect_log(&log, 1, 101, 2, 102, 3);
	tw_action_destroy(parent.action);
	tw_action_destroy(child.action);
	tw_action_destroy(grandchild.action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
}

static void arm_two_others(struct work *work)
{
	tw_action_schedule(work->other[0].action, &work->other[0], 0);
	tw_action_schedule(work->other[1].action, &work->other[1], 0);
}

Test(action_queue, keeps_the_order_in_which_things_were_armed)
{
	tw_action_scheduler *queue = open_queue();
	struct log log = {0};
	struct work others[2] = {{.log = &log, .id = 2}, {.log = &log, .id = 3}};
	struct work parent = {
	    .log = &log, .id = 1, .act = arm_two_others, .other = others, .rearms = 1};
	for (int i = 0; i < 2; i++) {
		others[i].scheduler = queue;
		expect_eq(tw_action_create(&others[i].action, queue, work_run, NULL), 0);
	}
	work_schedule(&parent, queue, 0);
	/* it has armed itself first, and the others again, which moves them to the end */
	expect_log(&log, 1, 1, 2, 3);
	tw_action_destroy(parent.action);
	tw_action_destroy(others[0].action);
	tw_action_destroy(others[1].action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
}

static char *lowest, *highest;

/* Each schedules the next, a new one. */
static tw_action_scheduler *chain_queue;
static int chain_left;

static int chain(tw_action *action, void *state)
{
	char here;
	char *volatile at = &here;
	lowest = !lowest || at < lowest ? at : lowest;
	highest = !highest || at > highest ? at : highest;
	if (chain_left-- > 0)
		tw_action_scheduler_schedule(chain_queue, chain, state, 0, NULL);
	tw_action_destroy(action);
	return 0;
}

Test(action_queue, chains_a_million_actions_in_constant_stack)
{
	chain_queue = open_queue();
	chain_left = 1000000;
	expect_eq(tw_action_scheduler_schedule(chain_queue, chain, NULL, 0, NULL), 0);
	expect_eq(chain_left, -1);
	expect_lt(highest - lowest, 1024);
	expect_eq(action_stats(chain_queue).runs, 1000001);
	expect_eq(action_stats(chain_queue).actions, 0);
	expect_eq(tw_action_scheduler_destroy(chain_queue), 0);
}

static void arm_others_and_fail(struct work *work)
{
	arm_two_others(work);
	work->answer = 9;
}

Test(action_queue, returns_a_failure_to_the_call_that_drove_it_closes_what_waits_and_goes_on)
{
	tw_action_scheduler *queue = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_QUEUE,
						 .flags = TW_ACTION_FLAG_CANCEL_BATCH});
	struct log log = {0};
	struct work others[2] = {{.log = &log, .id = 2}, {.log = &log, .id = 3}},
		    next = {.log = &log, .id = 4};
	struct work parent = {
	    .log = &log, .id = 1, .act = arm_others_and_fail, .other = others, .scheduler = queue};
	for (int i = 0; i < 2; i++) {
		others[i].scheduler = queue;
		expect_eq(tw_action_create(&others[i].action, queue, work_run, NULL), 0);
	}
	parent.error = tw_action_scheduler_schedule(queue, work_run, &parent, 0, &parent.action);
	cr_assert_not_null(parent.action);
	expect_eq(parent.error, 9);
	expect_log(&log, 1);
	expect_eq(tw_action_state(others[0].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_state(others[1].action), TW_ACTION_STATE_CLOSED);
	work_schedule(&next, queue, 0);
	expect_log(&log, 1, 4);
	expect_eq(action_stats(queue).closed_by_failure, 2);
	expect_eq(action_stats(queue).untold, 0);
	tw_action_destroy(parent.action);
	tw_action_destroy(others[0].action);
	tw_action_destroy(others[1].action);
	tw_action_destroy(next.action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
}

Test(action_queue, with_a_delay_does_as_async)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *queue = scheduler_on(rig.service, TW_ACTION_KIND_QUEUE);
	struct log log = {0};
	struct work late = {.log = &log, .id = 1, .rearms = 2, .delay_ns = 5 * MS},
		    now = {.log = &log, .id = 2};
	work_schedule(&late, queue, 5 * MS);
	work_schedule(&now, queue, 0);
	expect_log(&log, 2);
	rig_advance(&rig, SECOND);
	expect_log(&log, 2, 1, 1, 1);
	expect_eq(log.at_ns[3], RIG_START_NS + 15 * MS);
	tw_action_destroy(late.action);
	tw_action_destroy(now.action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
	rig_close(&rig);
}
