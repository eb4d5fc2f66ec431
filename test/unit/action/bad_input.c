/* Bad input: each documented answer, and nothing has changed. */
#include <string.h>

#include "executor/action/internal.h"
#include "test/support/action_suite.h"
#include "test/support/misuse_text.h"

TestSuite(action_bad_input, .fini = close_left, .timeout = 30);

static bool locked;

/* The text of the hook, and whether the hook could call the scheduler. */
static void keep_text_and_look(const char *told)
{
	locked = !tw__tiny_try_lock(&scheduler->object.lock);
	if (!locked)
		tw__tiny_unlock(&scheduler->object.lock);
	keep_text(told);
}

Test(action_bad_input, of_frames_at_the_end_of_the_clock_is_told_without_a_lock)
{
	struct work work = {0};
	open_on(TW_ACTION_KIND_FRAME);
	expect_eq(tw_action_create(&work.action, scheduler, work_run, NULL), 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + TW_MAX_DELAY_NS), 0);
	tw_set_misuse_hook(keep_text_and_look);
	work.error = tw_action_schedule(work.action, &work, 0);
	expect_eq(work.error, -ERANGE);
	cr_assert_str_eq(text, "tw_action_schedule: the clock is at the end of its range");
	expect_eq(locked, false);
	expect_eq(submit_immediate(scheduler, free, NULL), -ERANGE);
	cr_assert_str_eq(text, "tw_immediate_submit: the clock is at the end of its range");
	expect_eq(locked, false);
	tw_set_misuse_hook(NULL);
	expect_eq(action_stats(scheduler).refused, 2);
	expect_eq(action_stats(scheduler).turns, 0);
	tw_action_destroy(work.action);
}
