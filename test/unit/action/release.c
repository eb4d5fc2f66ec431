/* Releases of actions: called exactly once when an action has ended, whatever ends it. */
#include "test/support/action_script.h"
#include "test/support/actions.h"

TestSuite(action_release, .timeout = 30);

static const struct script releases[] = {
    {"follows a close or a destroy at once, and may not wait for the action or end its scheduler",
     {{"given asap caller; arm 1 release [close_wait 1; destroy_scheduler]; close 1",
       "wanted, unwanted, 1 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 2 release [close 2; destroy_scheduler]; close_wait 2",
       "wanted, unwanted, 2 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 3 release [close 3; destroy_scheduler]; destroy 3; destroy 1 2",
       "wanted, unwanted, 3 released cancelled, SELF, EDEADLK, CANCELLED, GONE, GONE"}}},
    {"waits for the run that ends its own action",
     {{"given asap caller; arm 1 release {close 1; -}; flush; destroy 1",
       "wanted, run 1, SELF, -, 1 released cancelled, GONE"},
      {"arm 2 release {destroy 2; -}; flush", "wanted, run 2, RUNNING, -, 2 released cancelled"},
      {"arm 3 release fails=3 {close 3; destroy 3; -}; flush",
       "wanted, run 3, SELF, RUNNING, -, 3 released cancelled, 3"}}},
    {"is not called for an action that rests",
     {{"given asap caller; arm 1 release; flush", "wanted, run 1"},
      {"destroy 1", "1 released cancelled, GONE"}}},
    {"tells of a failure",
     {{"given asap caller; arm 1 release fails=5; arm 2 release fails=6; run 2; flush; destroy 1 2",
       "wanted, run 2, 2 released fired, 6, run 1, 1 released fired, 5, GONE, GONE"}}},
    {"lets actions go that another one's failure closes",
     {{"given asap caller cancel_batch; arm 1 release {destroy 1} [destroy 1]; arm 2 fails=9 "
       "release {destroy 2} [destroy 2]",
       "wanted"},
      {"arm 3 release [destroy 3]; arm 4 release [destroy 4]; flush",
       "run 1, RUNNING, 1 released cancelled, RUNNING, run 2, RUNNING, 3 released dropped, "
       "RUNNING, 4 released dropped, RUNNING, 2 released cancelled, RUNNING, 9"},
      {"stats actions", "actions=0"}}},
    {"none is wanted", {{"given asap caller; create 1; destroy 1", "GONE"}}},
};

Test(action_release, releases)
{
	PLAY(&action_stage, NULL, releases);
}

/* -------------------------------------------------------------- in a simulation */

enum { MANY = 40 };

static struct end {
	int releases;
	int answer;            /* what the work returns */
	bool closes, destroys; /* what the work does to its own action */
	bool destroys_in_release;
	bool running;            /* inside of the work */
	bool released_too_early; /* while the work ran */
} many[MANY];

static int run_end(tw_action *action, void *state)
{
	struct end *end = state;
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
	end->released_too_early |= end->running;
	if (end->destroys_in_release)
		tw_action_destroy(action);
}

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
		bool fails = i % 5 == 1;
		tw_action *action;
		many[i] = (struct end){.answer = fails ? 4 : 0,
				       .closes = !fails && i % 2,
				       .destroys = !fails && i % 2 == 0,
				       .destroys_in_release = flags || fails || i % 2};
		expect_eq(tw_action_create(&action, schedulers[i % 3], run_end, release_end), 0);
		expect_eq(tw_action_schedule(action, &many[i], 0), 0);
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
