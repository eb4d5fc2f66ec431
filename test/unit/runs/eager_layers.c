/*
 * Layers on an executor that runs tickets inside submit, as executor.h allows: no user code runs
 * inside a call that submits.
 */
#include "test/support/actions.h"
#include "test/support/eager_executor.h"

static struct rig rig;
static bool inside; /* a call of the library, from the test or from user code */
static int runs, runs_inside;
static const char *highest, *lowest;

static void open_eager(void)
{
	struct tw_service_config cfg = rig_config();
	cfg.executor = &eager_executor;
	rig_open(&rig, &cfg);
}

static void close_eager(void)
{
	expect_in_fini();
	rig_close(&rig);
}

TestSuite(runs_eager_layers, .init = open_eager, .fini = close_eager, .timeout = 60);

static void note_run(void)
{
	const char *frame = __builtin_frame_address(0);
	runs++;
	runs_inside += inside;
	highest = !highest || frame > highest ? frame : highest;
	lowest = !lowest || frame < lowest ? frame : lowest;
}

static void drive_until(int wanted)
{
	for (int turns = 0; runs < wanted && turns < 2 * wanted + 10; turns++)
		tw_service_advance(rig.service, TW_NO_LIMIT);
	expect_eq(runs, wanted);
	expect_eq(runs_inside, 0);
	expect_lt(highest - lowest, 16384);
}

enum { LINKS = 50000 };

static int arm_again(tw_action *action, void *state)
{
	note_run();
	if (runs < LINKS) {
		inside = true;
		tw_action_schedule(action, state, 0);
		inside = false;
	}
	return 0;
}

static void set_again(void *asap)
{
	note_run();
	if (runs < LINKS) {
		inside = true;
		submit_immediate(asap, set_again, asap);
		inside = false;
	}
}

Test(runs_eager_layers, actions_and_immediates_do_not_run_inside_the_call_that_arms_them)
{
	tw_action_scheduler *asap = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	inside = true;
	tw_action *action;
	schedule_new(asap, arm_again, NULL, 0, &action);
	inside = false;
	expect_eq(runs, 0);
	drive_until(LINKS);
	runs = 0;
	inside = true;
	submit_immediate(asap, set_again, asap);
	inside = false;
	drive_until(LINKS);
	expect_eq(tw_action_destroy(action), TW_GONE);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

/* Each action of a chain is on a scheduler of its own. */
struct link {
	tw_action_scheduler *scheduler;
	tw_action *action;
};

static int arm_next(tw_action *action, void *state)
{
	struct link *next = (struct link *)state + 1;
	(void)action;
	note_run();
	if (next->action) {
		inside = true;
		tw_action_schedule(next->action, next, 0);
		inside = false;
	}
	return 0;
}

Test(runs_eager_layers, chain_over_many_schedulers_needs_no_stack)
{
	enum { SCHEDULERS = 2000 };
	static struct link links[SCHEDULERS + 1];
	for (int i = 0; i < SCHEDULERS; i++) {
		links[i].scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
		expect_eq(tw_action_create(&links[i].action, links[i].scheduler, arm_next, NULL),
			  0);
	}
	inside = true;
	tw_action_schedule(links[0].action, &links[0], 0);
	inside = false;
	drive_until(SCHEDULERS);
	for (int i = 0; i < SCHEDULERS; i++) {
		expect_eq(tw_action_destroy(links[i].action), TW_GONE);
		expect_eq(tw_action_scheduler_destroy(links[i].scheduler), 0);
	}
}

static int post_again(struct tw_turn *turn, void *arg)
{
	note_run();
	if (runs < LINKS) {
		inside = true;
		tw_scheduler_submit(turn->scheduler, TW_PRIORITY_NORMAL, post_again, arg, NULL);
		inside = false;
	}
	return TW_TURN_DONE;
}

Test(runs_eager_layers, tasks_of_a_scheduler_do_not_run_inside_post)
{
	tw_scheduler *scheduler;
	expect_eq(tw_scheduler_create(&scheduler, rig.service, NULL), 0);
	inside = true;
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, post_again, NULL, NULL), 0);
	inside = false;
	drive_until(LINKS);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
}

static tw_semaphore *semaphore;

static void release_it(void *arg)
{
	(void)arg;
	note_run();
	inside = true;
	expect_eq(tw_semaphore_release(semaphore, 1), 0);
	inside = false;
}

Test(runs_eager_layers, functions_of_a_semaphore_do_not_run_inside_acquire_or_release)
{
	enum { WAITERS = 20000 };
	expect_eq(tw_semaphore_create(&semaphore, rig.service, NULL, 1), 0);
	inside = true;
	for (int i = 0; i < WAITERS; i++)
		expect_eq(tw_semaphore_acquire_async(semaphore, 1, release_it, NULL, NULL), 0);
	inside = false;
	drive_until(WAITERS);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
}
