/* Immediates: at most once, by number. */
#include <malloc.h>

#include "executor/action/internal.h"
#include "test/support/actions.h"

TestSuite(action_immediate, .timeout = 30);

static tw_action_scheduler *open_asap(void)
{
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_ASAP,
						 .flags = TW_ACTION_FLAG_BY_CALLER});
}

static void count(void *arg)
{
	++*(int *)arg;
}

Test(action_immediate, runs_once_in_the_next_turn_and_is_numbered_from_one)
{
	tw_action_scheduler *asap = open_asap();
	int runs = 0;
	expect_eq(submit_immediate(asap, count, &runs), 1);
	expect_eq(submit_immediate(asap, count, &runs), 2);
	expect_eq(runs, 0);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(runs, 2);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(runs, 2);
	expect_eq(submit_immediate(asap, count, &runs), 3);
	expect_eq(cancel_immediate(asap, 3), TW_CANCELLED);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_immediate, cleared_does_not_run_and_clearing_again_or_afterwards_is_harmless)
{
	tw_action_scheduler *asap = open_asap();
	int runs = 0;
	int64_t first = submit_immediate(asap, count, &runs),
		second = submit_immediate(asap, count, &runs);
	expect_eq(cancel_immediate(asap, first), TW_CANCELLED);
	expect_eq(cancel_immediate(asap, first), TW_GONE);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(runs, 1);
	expect_eq(cancel_immediate(asap, second), TW_GONE);
	expect_eq(cancel_immediate(asap, second), TW_GONE);
	expect_eq(cancel_immediate(asap, 0), TW_GONE);
	expect_eq(cancel_immediate(asap, -1), TW_GONE);
	expect_eq(cancel_immediate(asap, INT64_MAX), TW_GONE);
	expect_eq(cancel_immediate(asap, INT64_MIN), TW_GONE);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

struct clearer {
	tw_action_scheduler *asap;
	int64_t self, other;
	int answer_self, answer_other, runs;
	int64_t set;
};

static void clear_both(void *arg)
{
	struct clearer *clearer = arg;
	clearer->runs++;
	clearer->answer_self = cancel_immediate(clearer->asap, clearer->self);
	clearer->answer_other = cancel_immediate(clearer->asap, clearer->other);
	clearer->set = submit_immediate(clearer->asap, count, &clearer->runs);
}

Test(action_immediate, cleared_inside_a_turn_pulls_no_later_one_in)
{
	tw_action_scheduler *asap = open_asap();
	struct clearer clearer = {.asap = asap};
	int runs = 0;
	clearer.self = submit_immediate(asap, clear_both, &clearer);
	clearer.other = submit_immediate(asap, count, &runs);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(clearer.runs, 1);
	expect_eq(clearer.answer_self, TW_GONE);
	expect_eq(clearer.answer_other, TW_CANCELLED);
	expect_eq(runs, 0);
	expect_eq(clearer.set, 3);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(clearer.runs, 2);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_immediate, takes_its_turn_among_actions_and_is_closed_by_their_failure)
{
	tw_action_scheduler *asap = scheduler_of(&(struct tw_action_scheduler_config){
	    .size = sizeof(struct tw_action_scheduler_config),
	    .kind = TW_ACTION_KIND_ASAP,
	    .flags = TW_ACTION_FLAG_BY_CALLER | TW_ACTION_FLAG_CANCEL_BATCH});
	struct work fails = {.answer = 1};
	int before = 0, after = 0;
	submit_immediate(asap, count, &before);
	work_schedule(&fails, asap, 0);
	int64_t id = submit_immediate(asap, count, &after);
	expect_eq(tw_action_scheduler_flush(asap), 1);
	expect_eq(before, 1);
	expect_eq(after, 0);
	expect_eq(cancel_immediate(asap, id), TW_GONE);
	expect_eq(action_stats(asap).actions, 1);
	tw_action_destroy(fails.action);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_immediate, many_are_set_and_cleared_in_any_order)
{
	tw_action_scheduler *asap = open_asap();
	enum { MANY = 1000 };
	static int64_t ids[MANY];
	static int runs[MANY];
	uint64_t seed = 1;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < MANY; i++) {
			runs[i] = 0;
			ids[i] = submit_immediate(asap, count, &runs[i]);
			expect_eq(ids[i], round * MANY + i + 1);
		}
		bool cleared[MANY] = {false};
		for (int i = 0; i < MANY / 2; i++) {
			int which = (int)random_below(&seed, MANY);
			expect_eq(cancel_immediate(asap, ids[which]),
				  cleared[which] ? TW_GONE : TW_CANCELLED);
			cleared[which] = true;
		}
		expect_eq(tw_action_scheduler_flush(asap), 0);
		for (int i = 0; i < MANY; i++)
			expect_eq(runs[i], !cleared[i]);
	}
	expect_eq(action_stats(asap).actions, 0);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_immediate, scheduler_with_one_waiting_is_busy)
{
	tw_action_scheduler *asap = open_asap();
	int runs = 0;
	int64_t id = submit_immediate(asap, count, &runs);
	expect_eq(tw_action_scheduler_destroy(asap), -EBUSY);
	expect_eq(cancel_immediate(asap, id), TW_CANCELLED);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_immediate, bad_input)
{
	tw_action_scheduler *asap = open_asap();
	tw_action_scheduler *queue = scheduler_of(&(struct tw_action_scheduler_config){
	    .size = sizeof(struct tw_action_scheduler_config), .kind = TW_ACTION_KIND_QUEUE});
	expect_eq(submit_immediate(NULL, count, NULL), -EINVAL);
	expect_eq(submit_immediate(asap, NULL, NULL), -EINVAL);
	expect_eq(submit_immediate(queue, count, NULL), -EINVAL);
	expect_eq(cancel_immediate(NULL, 1), -EINVAL);
	expect_eq(cancel_immediate(queue, 1), -EINVAL);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
}

/* ------------------------------------------------------------------- memory */

enum { LOOPS = 200000 };

/* Whether setting and clearing in a loop, while one old immediate waits, takes memory. */
static void expect_constant_memory(tw_action_scheduler *scheduler)
{
	int runs = 0;
	int64_t oldest = submit_immediate(scheduler, count, &runs);
	size_t before = 0;
	for (int i = 0; i < LOOPS; i++) {
		int64_t id = submit_immediate(scheduler, count, &runs);
		if (cancel_immediate(scheduler, id) != TW_CANCELLED)
			cr_assert_fail("an immediate cannot be cleared");
		if (i == LOOPS / 10)
			before = mallinfo2().uordblks;
	}
	expect_lt(mallinfo2().uordblks, before + 64 * 1024);
	expect_le(scheduler->immediates.room, 16);
	expect_eq(cancel_immediate(scheduler, oldest), TW_CANCELLED);
	expect_eq(runs, 0);
}

Test(action_immediate, set_and_cleared_in_a_loop_holds_constant_memory)
{
	tw_action_scheduler *asap = open_asap();
	expect_constant_memory(asap);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

/*
 * The loop calls the frame off each time but the first; without the old one it does so every time.
 */
Test(action_immediate, frames_asked_for_and_called_off_in_a_loop_hold_constant_memory)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_action_scheduler *frames = scheduler_on(rig.service, TW_ACTION_KIND_FRAME);
	expect_constant_memory(frames);
	size_t before = 0;
	for (int i = 0; i < LOOPS; i++) {
		expect_eq(cancel_immediate(frames, submit_immediate(frames, count, NULL)),
			  TW_CANCELLED);
		if (i % 1000 == 0)
			rig_advance(&rig, MS);
		if (i == LOOPS / 2)
			before = mallinfo2().uordblks;
	}
	expect_lt(mallinfo2().uordblks, before + 64 * 1024);
	expect_eq(tw_action_scheduler_destroy(frames), 0);
	rig_close(&rig);
}
