/* Immediates: at most once, by number. */
#include <malloc.h>

#include "executor/action/internal.h"
#include "test/support/action_suite.h"

TestSuite(action_immediate, .fini = close_left, .timeout = 30);

static void count(void *arg)
{
	++*(int *)arg;
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

/* ------------------------------------------------------------------- memory */

enum { LOOPS = 200000 };

Test(action_immediate, frames_asked_for_and_called_off_in_a_loop_hold_constant_memory)
{
	size_t before = 0;
	open_on(TW_ACTION_KIND_FRAME);
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
