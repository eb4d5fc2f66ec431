/* The misuse hook gets the reason why a call that would wait for its own caller is refused. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(service_misuse_waits, .timeout = 60);

enum { TEXTS = 16 };

/*
 * Each call is made on one thread, and read by the test after that thread has said that it is done.
 */
static char texts[TEXTS][256];
static int answers[TEXTS];
static int calls, heard;
static atomic_int done;

static void hear(const char *text)
{
	if (heard < TEXTS)
		strncpy(texts[heard++], text, sizeof texts[0] - 1);
}

static void note(int answer)
{
	if (calls < TEXTS)
		answers[calls++] = answer;
}

static void await_done(int wanted)
{
	while (atomic_load(&done) != wanted)
		sched_yield();
}

/* Each of n calls was refused, with a text that names it. */
static void expect_inside(int n, const char *const *names)
{
	char wanted[sizeof texts[0]];
	expect_eq(calls, n);
	expect_eq(heard, n);
	for (int i = 0; i < n; i++) {
		expect_eq(answers[i], -EDEADLK);
		snprintf(wanted, sizeof wanted, "%s: called from inside what it would wait for",
			 names[i]);
		cr_assert_str_eq(texts[i], wanted);
	}
}

static tw_service *open_service(void)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 1, .max_workers = 1};
	tw_set_misuse_hook(hear);
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static void close_service(tw_service *service)
{
	tw_set_misuse_hook(NULL);
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(service), 0);
}

/* --------------------------------------------------------------------- limiter */

static tw_limiter *limiter;
static tw_job job;

static int wait_in_job(void *arg, struct tw_job_run *run)
{
	(void)arg;
	(void)run;
	note(tw_job_wait(limiter, job, TW_FOREVER, NULL));
	note(tw_limiter_wait_idle(limiter, TW_FOREVER));
	note(tw_limiter_close(limiter, TW_CLOSE_DRAIN, TW_FOREVER));
	note(tw_limiter_destroy(limiter));
	return 0;
}

static tw_limiter *open_limiter(tw_service *service, uint32_t flags)
{
	tw_limiter *opened;
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING | flags};
	expect_eq(tw_limiter_create(&opened, service, &config), 0);
	return opened;
}

Test(service_misuse_waits, of_a_limiter_in_its_own_job)
{
	static const char *const wanted[] = {
	    "tw_job_wait",
	    "tw_limiter_wait_idle",
	    "tw_limiter_close",
	    "tw_limiter_destroy",
	};
	tw_service *service = open_service();
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = wait_in_job, .flags = TW_LIMITER_TASK_KEEP};
	limiter = open_limiter(service, TW_LIMITER_PAUSED);
	expect_eq(tw_limiter_submit_task(limiter, &task, &job), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	expect_eq(tw_job_wait(limiter, job, TW_FOREVER, NULL), 0);
	expect_inside(4, wanted);
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	close_service(service);
}

/* --------------------------------------------------------------------- service */

static void end_service(void *arg)
{
	note(tw_service_close(arg, TW_CLOSE_DROP, TW_FOREVER));
	note(tw_service_destroy(arg));
	atomic_store(&done, 1);
}

Test(service_misuse_waits, of_a_service_in_its_own_callback)
{
	static const char *const inside[] = {
	    "tw_service_close",
	    "tw_service_destroy",
	};
	tw_service *service = open_service();
	expect_eq(tw_schedule(service, 0, end_service, service, NULL), 0);
	await_done(1);
	expect_inside(2, inside);
	close_service(service);
}

Test(service_misuse_waits, of_a_drain_on_a_clock_that_only_the_caller_moves)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_set_misuse_hook(hear);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	note(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER));
	expect_eq(answers[0], -EDEADLK);
	cr_assert_str_eq(texts[0],
			 "tw_service_close: TW_CLOSE_DRAIN would wait for timers on a clock that "
			 "only the caller advances; advance it first");
	tw_set_misuse_hook(NULL);
	rig_advance(&rig, SECOND);
	rig_close(&rig);
}

/* ------------------------------------------------------------- the other layers */

static void end_strand(void *arg)
{
	note(tw_strand_close(arg, TW_FOREVER));
	atomic_store(&done, 1);
}

static int end_scheduler(struct tw_turn *turn, void *arg)
{
	(void)turn;
	note(tw_scheduler_close(arg, TW_FOREVER));
	note(tw_scheduler_destroy(arg));
	atomic_store(&done, 2);
	return TW_TURN_DONE;
}

static void end_pool(void *arg)
{
	note(tw_pool_close(arg, TW_CLOSE_DRAIN, NULL, NULL));
	note(tw_pool_destroy(arg));
	atomic_store(&done, 3);
}

static void advance_clock(void *arg)
{
	note(tw_clock_manual_advance_by(arg, 1));
	atomic_store(&done, 4);
}

Test(service_misuse_waits, of_every_other_object_in_its_own_callback)
{
	static const char *const wanted[] = {
	    "tw_strand_close", "tw_scheduler_close", "tw_scheduler_destroy",
	    "tw_pool_close",   "tw_pool_destroy",    "tw_clock_manual_advance_by",
	};
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 3};
	struct rig rig;
	tw_service *service;
	tw_strand *strand;
	tw_scheduler *scheduler;
	tw_pool *pool;
	tw_set_misuse_hook(hear);
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	expect_eq(tw_pool_create(&pool, NULL), 0);
	expect_eq(tw_strand_submit(strand, end_strand, strand), 0);
	await_done(1);
	expect_eq(
	    tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, end_scheduler, scheduler, NULL), 0);
	await_done(2);
	expect_eq(tw_pool_submit(pool, end_pool, pool), 0);
	await_done(3);
	rig_open(&rig, NULL);
	expect_eq(tw_schedule(rig.service, 0, advance_clock, rig.clock, NULL), 0);
	rig_advance(&rig, MS);
	await_done(4);
	expect_inside(6, wanted);
	tw_set_misuse_hook(NULL);
	rig_close(&rig);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(tw_service_destroy(service), 0);
}

/* --------------------------------------------------------- objects of one thread */

static int end_actions(tw_action *action, void *state)
{
	(void)action;
	note(tw_action_scheduler_destroy(state));
	return 0;
}

static void step_again(void *arg)
{
	note(tw_sim_step(arg));
	note(tw_sim_destroy(arg));
}

Test(service_misuse_waits, of_objects_that_run_on_their_callers_thread)
{
	static const char *const wanted[] = {
	    "tw_action_scheduler_destroy",
	    "tw_sim_step",
	    "tw_sim_destroy",
	};
	struct tw_action_scheduler_config config = {.size = sizeof config,
						    .kind = TW_ACTION_KIND_QUEUE};
	tw_action_scheduler *queue;
	tw_action *action;
	tw_sim *sim;
	tw_set_misuse_hook(hear);
	expect_eq(tw_action_scheduler_create(&queue, &config), 0);
	expect_eq(tw_action_create(&action, queue, end_actions, NULL), 0);
	expect_eq(tw_action_schedule(action, queue, 0), 0);
	expect_eq(tw_sim_create(&sim, NULL), 0);
	expect_eq(tw_sim_submit(sim, step_again, sim), 0);
	expect_eq(tw_sim_run_until_idle(sim, SECOND), 0);
	expect_inside(3, wanted);
	tw_set_misuse_hook(NULL);
	tw_action_destroy(action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
	expect_eq(tw_sim_destroy(sim), 0);
}
