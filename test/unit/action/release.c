/* Releases of actions: called exactly once when an action has ended, whatever ends it. */
#include <string.h>

#include "test/support/action_script.h"
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

static const struct script releases[] = {
    {"follows a close or a destroy at once, and may not wait for the action or end its scheduler",
     "asap caller",
     {{"arm 1 release [close_wait 1; destroy_scheduler]; close 1",
       "wanted, unwanted, 1 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 2 release [close 2; destroy_scheduler]; close_wait 2",
       "wanted, unwanted, 2 released cancelled, SELF, EDEADLK, CANCELLED"},
      {"arm 3 release [close 3; destroy_scheduler]; destroy 3; destroy 1 2",
       "wanted, unwanted, 3 released cancelled, SELF, EDEADLK, CANCELLED, GONE, GONE"}}},
    {"waits for the run that ends its own action",
     "asap caller",
     {{"arm 1 release {close 1; -}; flush; destroy 1",
       "wanted, run 1, SELF, -, 1 released cancelled, GONE"},
      {"arm 2 release {destroy 2; -}; flush", "wanted, run 2, RUNNING, -, 2 released cancelled"},
      {"arm 3 release fails=3 {close 3; destroy 3; -}; flush",
       "wanted, run 3, SELF, RUNNING, -, 3 released cancelled, 3"}}},
    {"is not called for an action that rests",
     "asap caller",
     {{"arm 1 release; flush", "wanted, run 1"}, {"destroy 1", "1 released cancelled, GONE"}}},
    {"tells of a failure",
     "asap caller",
     {{"arm 1 release fails=5; arm 2 release fails=6; run 2; flush; destroy 1 2",
       "wanted, run 2, 2 released fired, 6, run 1, 1 released fired, 5, GONE, GONE"}}},
    {"lets actions go that another one's failure closes",
     "asap caller cancel_batch",
     {{"arm 1 release {destroy 1} [destroy 1]; arm 2 fails=9 release {destroy 2} [destroy 2]",
       "wanted"},
      {"arm 3 release [destroy 3]; arm 4 release [destroy 4]; flush",
       "run 1, RUNNING, 1 released cancelled, RUNNING, run 2, RUNNING, 3 released dropped, "
       "RUNNING, 4 released dropped, RUNNING, 2 released cancelled, RUNNING, 9"},
      {"stats actions", "actions=0"}}},
    {"the same of a frame",
     "frame caller cancel_batch",
     {{"arm 1 release {destroy 1} [destroy 1]; arm 2 fails=9 release {destroy 2} [destroy 2]",
       "wanted"},
      {"arm 3 release [destroy 3]; arm 4 release [destroy 4]; flush",
       "run 1, RUNNING, 1 released cancelled, RUNNING, run 2, RUNNING, 3 released dropped, "
       "RUNNING, 4 released dropped, RUNNING, 2 released cancelled, RUNNING, 9"},
      {"stats actions", "actions=0"}}},
    {"none is wanted", "asap caller", {{"create 1; destroy 1", "GONE"}}},
};

Test(action_release, releases)
{
	PLAY(&action_stage, NULL, releases);
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
