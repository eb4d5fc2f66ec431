/* The trampoline: now if idle, else after what runs, without recursion. */
#include "test/support/action_suite.h"

static void open_trampoline(void)
{
	open_scheduler((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_QUEUE});
}

TestSuite(action_queue, .init = open_trampoline, .fini = close_left, .timeout = 30);

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
