/* Immediates: at most once, by number. */
#include <malloc.h>

#include "executor/action/internal.h"
#include "test/support/action_suite.h"

TestSuite(action_immediate, .fini = close_left, .timeout = 30);

static void count(void *arg)
{
	++*(int *)arg;
}

Test(action_immediate, runs_once_in_the_next_turn_and_is_numbered_from_one)
{
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	int runs = 0;
	expect_eq(submit_immediate(scheduler, count, &runs), 1);
	expect_eq(submit_immediate(scheduler, count, &runs), 2);
	expect_eq(runs, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(runs, 2);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(runs, 2);
	expect_eq(submit_immediate(scheduler, count, &runs), 3);
	expect_eq(cancel_immediate(scheduler, 3), TW_CANCELLED);
}

Test(action_immediate, cleared_does_not_run_and_clearing_again_or_afterwards_is_harmless)
{
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	int runs = 0;
	int64_t first = submit_immediate(scheduler, count, &runs),
		second = submit_immediate(scheduler, count, &runs);
	expect_eq(cancel_immediate(scheduler, first), TW_CANCELLED);
	expect_eq(cancel_immediate(scheduler, first), TW_GONE);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(runs, 1);
	expect_eq(cancel_immediate(scheduler, second), TW_GONE);
	expect_eq(cancel_immediate(scheduler, second), TW_GONE);
	expect_eq(cancel_immediate(scheduler, 0), TW_GONE);
	expect_eq(cancel_immediate(scheduler, -1), TW_GONE);
	expect_eq(cancel_immediate(scheduler, INT64_MAX), TW_GONE);
	expect_eq(cancel_immediate(scheduler, INT64_MIN), TW_GONE);
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
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	struct clearer clearer = {.asap = scheduler};
	int runs = 0;
	clearer.self = submit_immediate(scheduler, clear_both, &clearer);
	clearer.other = submit_immediate(scheduler, count, &runs);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(clearer.runs, 1);
	expect_eq(clearer.answer_self, TW_GONE);
	expect_eq(clearer.answer_other, TW_CANCELLED);
	expect_eq(runs, 0);
	expect_eq(clearer.set, 3);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(clearer.runs, 2);
}

Test(action_immediate, takes_its_turn_among_actions_and_is_closed_by_their_failure)
{
	open_by_caller(TW_ACTION_KIND_ASAP, TW_ACTION_FLAG_CANCEL_BATCH);
	struct work fails = {.answer = 1};
	int before = 0, after = 0;
	submit_immediate(scheduler, count, &before);
	arm(&fails, 0);
	int64_t id = submit_immediate(scheduler, count, &after);
	expect_eq(tw_action_scheduler_flush(scheduler), 1);
	expect_eq(before, 1);
	expect_eq(after, 0);
	expect_eq(cancel_immediate(scheduler, id), TW_GONE);
	expect_eq(action_stats(scheduler).actions, 1);
}

Test(action_immediate, many_are_set_and_cleared_in_any_order)
{
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	enum { MANY = 1000 };
	static int64_t ids[MANY];
	static int runs[MANY];
	uint64_t seed = 1;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < MANY; i++) {
			runs[i] = 0;
			ids[i] = submit_immediate(scheduler, count, &runs[i]);
			expect_eq(ids[i], round * MANY + i + 1);
		}
		bool cleared[MANY] = {false};
		for (int i = 0; i < MANY / 2; i++) {
			int which = (int)random_below(&seed, MANY);
			expect_eq(cancel_immediate(scheduler, ids[which]),
				  cleared[which] ? TW_GONE : TW_CANCELLED);
			cleared[which] = true;
		}
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		for (int i = 0; i < MANY; i++)
			expect_eq(runs[i], !cleared[i]);
	}
	expect_eq(action_stats(scheduler).actions, 0);
}

Test(action_immediate, scheduler_with_one_waiting_is_busy)
{
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	int runs = 0;
	int64_t id = submit_immediate(scheduler, count, &runs);
	expect_eq(tw_action_scheduler_destroy(scheduler), -EBUSY);
	expect_eq(cancel_immediate(scheduler, id), TW_CANCELLED);
}

/* ------------------------------------------------------------------- memory */

enum { LOOPS = 200000 };

/* Whether setting and clearing in a loop, while one old immediate waits, takes memory. */
static void expect_constant_memory(void)
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
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	expect_constant_memory();
}

/*
 * The loop calls the frame off each time but the first; without the old one it does so every time.
 */
Test(action_immediate, frames_asked_for_and_called_off_in_a_loop_hold_constant_memory)
{
	open_on(TW_ACTION_KIND_FRAME);
	expect_constant_memory();
	size_t before = 0;
	for (int i = 0; i < LOOPS; i++) {
		expect_eq(cancel_immediate(scheduler, submit_immediate(scheduler, count, NULL)),
			  TW_CANCELLED);
		if (i % 1000 == 0)
			rig_advance(&rig, MS);
		if (i == LOOPS / 2)
			before = mallinfo2().uordblks;
	}
	expect_lt(mallinfo2().uordblks, before + 64 * 1024);
}
