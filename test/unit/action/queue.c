/* The trampoline: now if idle, else after what runs, without recursion. */
#include "test/support/action_script.h"
#include "test/support/action_suite.h"

static void open_trampoline(void)
{
	open_scheduler((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_QUEUE});
}

TestSuite(action_queue, .init = open_trampoline, .fini = close_left, .timeout = 30);

static const struct script trampolines[] = {
    {"runs at once while idle", {{"given queue alone; arm 1; again 1", "run 1, run 1"}}},
    {"finishes the parent before the child begins",
     {{"given queue alone; create 3; create 2 {again 3; -}; arm 1 {again 2; -}",
       "run 1, -, run 2, -, run 3"}}},
    {"keeps the order in which things were armed",
     {{"given queue alone; create 2 3; arm 1 rearms=1 {again 2 3}",
       "run 1, run 1, run 2, run 3"}}}, /* the others again, to the end */
    {"returns a failure to the call that drove it, closes what waits, and goes on",
     {{"given queue alone cancel_batch; create 2 3; arm 1 fails=9 {again 2 3}", "run 1, 9"},
      {"state 2 3; arm 4; stats closed_by_failure untold",
       "CLOSED, CLOSED, run 4, closed_by_failure=2, untold=0"}}},
    {"a failure spares what waits; the later ones are told",
     {{"given queue alone; create 1 2 4; create 3 fails=13; arm 0 fails=10 {again 1..4}",
       "run 0, run 1, run 2, run 3, failed 13 of 3, run 4, 10"}}},
    {"with a delay it does as async",
     {{"given queue; arm 1 delay=5 rearms=2 every=5; arm 2; advance 100",
       "run 2, @5 run 1, @10 run 1, @15 run 1"}}},
};

Test(action_queue, trampolines)
{
	PLAY(&action_stage, NULL, trampolines);
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
