/* Releases of actions: called exactly once when an action has ended, whatever ends it. */
#include <string.h>

#include "test/support/actions.h"

TestSuite(action_release, .timeout = 30);

struct end {
	int releases, runs;
	enum tw_fate fate;
	void *state;
	int answer;            /* what the work returns */
	bool closes, destroys; /* what the work does to its own action */
	bool destroys_in_release;
	bool running;            /* inside of the work */
	bool released_too_early; /* while the work ran */
	int destroyed;           /* what destroying in the release answered */
	int waited;              /* what closing with a wait in the release answered */
	int ended;               /* what destroying the scheduler in the release answered */
	tw_action_scheduler *scheduler;
};

static int run_end(tw_action *action, void *state)
{
	struct end *end = state;
	end->runs++;
	end->running = true;
	if (end->closes)
		tw_action_close(action, 0);
	if (end->destroys)
		tw_action_destroy(action);
	end->running = false;
	return end->answer;
}

static void release_end(tw_action *action, void *state, enum tw_fate fate)
{
	struct end *end = state;
	end->releases++;
	end->fate = fate;
	end->state = state;
	end->released_too_early |= end->running;
	end->waited = tw_action_close(action, 0);
	end->ended = tw_action_scheduler_destroy(end->scheduler);
	if (end->destroys_in_release)
		end->destroyed = tw_action_destroy(action);
}

static tw_action *make(tw_action_scheduler *scheduler, struct end *end)
{
	tw_action *action = NULL;
	int error = 1;
	end->scheduler = scheduler;
	expect_eq(tw_action_create(&action, scheduler, run_end, release_end), 0);
	error = tw_action_schedule(action, end, 0);
	expect_eq(error, 0);
	return action;
}

static tw_action_scheduler *open_asap(uint32_t flags)
{
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_ASAP,
						 .flags = TW_ACTION_FLAG_BY_CALLER | flags});
}

static void expect_end(const struct end *end, enum tw_fate fate)
{
	expect_eq(end->releases, 1);
	expect_eq(end->fate, fate);
	expect_eq(end->waited, TW_SELF);
	expect_eq(end->ended, -EDEADLK);
	cr_assert_eq(end->state, end);
	cr_assert_not(end->released_too_early);
}

Test(action_release, follows_a_close_or_a_destroy_at_once)
{
	tw_action_scheduler *asap = open_asap(0);
	struct end ends[3] = {{0}};
	tw_action *actions[3];
	for (int i = 0; i < 3; i++)
		actions[i] = make(asap, &ends[i]);
	expect_eq(tw_action_close(actions[0], 0), TW_CANCELLED);
	expect_end(&ends[0], TW_FATE_CANCELLED);
	expect_eq(tw_action_close(actions[1], TW_FOREVER), TW_CANCELLED);
	expect_end(&ends[1], TW_FATE_CANCELLED);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_action_destroy(actions[i]), i < 2 ? TW_GONE : TW_CANCELLED);
	for (int i = 0; i < 3; i++)
		expect_end(&ends[i], TW_FATE_CANCELLED);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_release, waits_for_the_run_that_ends_its_own_action)
{
	tw_action_scheduler *asap = open_asap(0);
	struct end ends[3] = {
	    {.closes = true}, {.destroys = true}, {.closes = true, .destroys = true, .answer = 3}};
	tw_action *actions[3];
	for (int i = 0; i < 3; i++)
		actions[i] = make(asap, &ends[i]);
	expect_eq(tw_action_scheduler_flush(asap), 3);
	for (int i = 0; i < 3; i++)
		expect_end(&ends[i], TW_FATE_CANCELLED);
	tw_action_destroy(actions[0]);
	expect_eq(ends[0].releases, 1);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_release, is_not_called_for_an_action_that_rests)
{
	tw_action_scheduler *asap = open_asap(0);
	struct end end = {0};
	tw_action *action = make(asap, &end);
	expect_eq(tw_action_scheduler_flush(asap), 0);
	expect_eq(end.runs, 1);
	expect_eq(end.releases, 0);
	expect_eq(tw_action_destroy(action), TW_GONE);
	expect_end(&end, TW_FATE_CANCELLED);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

Test(action_release, tells_of_a_failure)
{
	tw_action_scheduler *asap = open_asap(0);
	struct end fails = {.answer = 5}, by_hand = {.answer = 6};
	tw_action *first = make(asap, &fails), *second = make(asap, &by_hand);
	expect_eq(tw_action_run(second, &by_hand), 6);
	expect_end(&by_hand, TW_FATE_FIRED);
	expect_eq(tw_action_scheduler_flush(asap), 5);
	expect_end(&fails, TW_FATE_FIRED);
	expect_eq(tw_action_destroy(first), TW_GONE);
	expect_eq(tw_action_destroy(second), TW_GONE);
	expect_eq(fails.releases + by_hand.releases, 2);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

/*
 * Actions that free themselves: without the release those of the batch would be lost, and their
 * scheduler with them.
 */
Test(action_release, lets_actions_go_that_another_one_s_failure_closes)
{
	const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASAP, TW_ACTION_KIND_FRAME};
	for (int k = 0; k < 2; k++) {
		struct end ends[4] = {
		    {.destroys = true}, {.destroys = true, .answer = 9}, {0}, {0}};
		tw_action_scheduler *scheduler = scheduler_of(&(struct tw_action_scheduler_config){
		    .size = sizeof(struct tw_action_scheduler_config),
		    .kind = kinds[k],
		    .flags = TW_ACTION_FLAG_BY_CALLER | TW_ACTION_FLAG_CANCEL_BATCH});
		for (int i = 0; i < 4; i++) {
			ends[i].destroys_in_release = true;
			ends[i].destroyed = 77;
			make(scheduler, &ends[i]);
		}
		expect_eq(tw_action_scheduler_flush(scheduler), 9);
		for (int i = 0; i < 4; i++) {
			expect_end(&ends[i], i < 2 ? TW_FATE_CANCELLED : TW_FATE_DROPPED);
			expect_eq(ends[i].runs, i < 2);
			expect_eq(ends[i].destroyed, TW_RUNNING);
		}
		expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	}
}

Test(action_release, of_an_action_that_was_never_armed_gets_no_state)
{
	tw_action_scheduler *asap = open_asap(0);
	tw_action *action;
	expect_eq(tw_action_create(&action, asap, run_end, NULL), 0); /* none wanted */
	expect_eq(tw_action_destroy(action), TW_GONE);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

/* -------------------------------------------------------------- in a simulation */

enum { MANY = 40 };

static struct end many[MANY];

/*
 * Failing, closing, destroying and well-behaved ones in one flow, on several simulated workers, in
 * many orders.
 */
static void run_seed(uint64_t seed, uint32_t flags)
{
	tw_sim *sim;
	struct tw_sim_config sim_config = {.size = sizeof(sim_config), .seed = seed, .workers = 3};
	expect_eq(tw_sim_create(&sim, &sim_config), 0);
	tw_action_scheduler *schedulers[3];
	const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASYNC, TW_ACTION_KIND_ASAP,
					     TW_ACTION_KIND_FRAME};
	for (int k = 0; k < 3; k++)
		schedulers[k] = scheduler_of(&(struct tw_action_scheduler_config){
		    .size = sizeof(struct tw_action_scheduler_config),
		    .kind = kinds[k],
		    .flags = flags,
		    .service = tw_sim_service(sim)});
	for (int i = 0; i < MANY; i++) {
		many[i] = (struct end){.answer = i % 5 == 1 ? 4 : 0,
				       .closes = i % 5 != 1 && i % 2,
				       .destroys = i % 5 != 1 && i % 2 == 0,
				       .destroys_in_release = i % 5 == 1 || i % 2};
		if (flags)
			many[i].destroys_in_release = true;
		make(schedulers[i % 3], &many[i]);
	}
	expect_ge(tw_sim_run_for(sim, SECOND), 0);
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(many[i].releases, 1, "seed %llu: action %d has %d releases",
			     (unsigned long long)seed, i, many[i].releases);
		cr_assert_not(many[i].released_too_early);
	}
	for (int k = 0; k < 3; k++)
		expect_eq(tw_action_scheduler_destroy(schedulers[k]), 0);
	expect_eq(tw_sim_destroy(sim), 0);
}

Test(action_release, comes_once_for_each_in_any_order_of_events)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		run_seed(seed, seed % 2 ? TW_ACTION_FLAG_CANCEL_BATCH : 0);
}
