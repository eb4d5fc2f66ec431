/* Simulations: closing, configs, runs without memory, forks, contexts. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/rig.h"
#include "test/support/current.h"

TestSuite(sim_end, .timeout = 30);

static tw_sim *sim;
static int ran, closing, dropped;

static void count(void *arg)
{
	ran++;
	closing += current_run().closing;
}

static void release(void *arg, enum tw_fate fate)
{
	dropped += fate == TW_FATE_DROPPED;
}

static void open_sim(void)
{
	ran = closing = dropped = 0;
	expect_eq(tw_sim_create(&sim, NULL), 0);
}

static void schedule_released(uint64_t delay_ns)
{
	struct tw_task task = {
	    .size = sizeof task, .fn = count, .when_ns = delay_ns, .release = release};
	expect_eq(tw_schedule_task(tw_sim_service(sim), &task, NULL), 0);
}

/* ---------------------------------------------------------------------- close */

Test(sim_end, close_drops_what_is_pending_and_what_waits)
{
	open_sim();
	for (int i = 0; i < 100; i++)
		schedule_released(MS);
	schedule_released(HOUR);
	expect_eq(tw_sim_step(sim), 1); /* handed over */
	expect_eq(tw_sim_step(sim), 1); /* one is taken */
	expect_eq(tw_sim_close(sim, TW_CLOSE_DROP), 0);
	expect_eq(ran, 0);
	expect_eq(dropped, 101);
	expect_eq(tw_schedule(tw_sim_service(sim), 0, count, NULL, NULL), -ESHUTDOWN);
	expect_eq(tw_sim_close(sim, TW_CLOSE_DROP), 0);
	expect_eq(tw_sim_run(sim, TW_FOREVER), 0);
	expect_eq(tw_sim_destroy(sim), 0);
}

Test(sim_end, close_runs_more_than_the_steps_of_a_call)
{
	struct tw_sim_config config = {.size = sizeof config, .max_steps = 10};
	ran = 0;
	expect_eq(tw_sim_create(&sim, &config), 0);
	for (int i = 0; i < 40; i++)
		expect_eq(tw_schedule(tw_sim_service(sim), MS, count, NULL, NULL), 0);
	expect_eq(tw_sim_close(sim, TW_CLOSE_RUN), 0);
	expect_eq(ran, 40);
	expect_eq(tw_sim_destroy(sim), 0);
}

/* ---------------------------------------------------- what stands on its service */

static int count_job(void *arg, struct tw_job_run *run)
{
	count(arg);
	return 0;
}

static int count_turn(struct tw_turn *turn, void *arg)
{
	count(arg);
	return TW_TURN_DONE;
}

/* What would wait for the workers is asked not to; they move; then everything can be freed. */
Test(sim_end, layers_end_in_the_middle_once_the_workers_have_moved)
{
	open_sim();
	tw_service *service = tw_sim_service(sim);
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 2};
	tw_scheduler *scheduler;
	tw_limiter *limiter;
	tw_semaphore *semaphore;
	tw_strand *strand;
	tw_waiter waiter;
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_semaphore_create(&semaphore, service, NULL, 1), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, count_turn, NULL, NULL), 0);
	expect_eq(tw_limiter_submit(limiter, count_job, NULL, NULL), 0);
	expect_eq(tw_semaphore_acquire_async(semaphore, 1, count, NULL, &waiter), 0);
	expect_eq(tw_strand_submit(strand, count, NULL), 0);
	expect_eq(tw_sim_step(sim), 1); /* handed over */
	expect_eq(tw_sim_step(sim), 1); /* one is taken */

	expect_eq(tw_scheduler_close(scheduler, 0), -ETIMEDOUT);
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_semaphore_cancel(semaphore, waiter), TW_CANCELLED);
	expect_eq(tw_semaphore_destroy(semaphore), -EBUSY);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_sim_destroy(sim), -EBUSY);

	expect_eq(tw_sim_run(sim, 2 * MS), 0);
	expect_eq(tw_scheduler_close(scheduler, 0), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	expect_eq(ran, 0);
	expect_eq(tw_sim_destroy(sim), 0);
}

/* No worker has moved yet: the simulation's own end plays them. */
Test(sim_end, strands_and_schedulers_are_destroyed_at_any_time)
{
	open_sim();
	tw_service *service = tw_sim_service(sim);
	tw_scheduler *scheduler;
	tw_strand *strand;
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, count_turn, NULL, NULL), 0);
	expect_eq(tw_strand_submit(strand, count, NULL), 0);
	expect_eq(tw_strand_schedule(strand, MS, count, NULL, NULL), 0);
	expect_eq(tw_sim_step(sim), 1);
	expect_eq(tw_sim_destroy(sim), -EBUSY);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_sim_destroy(sim), -EBUSY);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_sim_destroy(sim), 0);
	expect_eq(ran, 0);
}

Test(sim_end, close_runs_what_is_pending_on_its_workers)
{
	open_sim();
	for (int i = 0; i < 300; i++)
		schedule_released((uint64_t)(i + 1) * SECOND);
	expect_eq(tw_sim_close(sim, TW_CLOSE_RUN), 0);
	expect_eq(ran, 300);
	expect_eq(closing, 300);
	expect_eq(dropped, 0);
	expect_eq(tw_service_now(tw_sim_service(sim)), 0);
	expect_eq(tw_sim_destroy(sim), 0);
}

/* -------------------------------------------------------------------- configs */

Test(sim_end, knobs_of_the_service_are_taken)
{
	struct tw_service_config config = {
	    .size = sizeof config, .tick_ns = SECOND, .max_timers = 1};
	struct tw_sim_config cfg = {.size = sizeof cfg, .service = &config};
	ran = 0;
	expect_eq(tw_sim_create(&sim, &cfg), 0);
	expect_eq(tw_schedule(tw_sim_service(sim), 1, count, NULL, NULL), 0);
	expect_eq(tw_sim_run(sim, SECOND - 1), 1);
	expect_eq(ran, 0);
	expect_eq(tw_sim_run(sim, 1), 0);
	expect_eq(ran, 1);
	expect_eq(tw_sim_destroy(sim), 0);
}

Test(sim_end, null_and_zero_have_answers)
{
	open_sim();
	expect_eq(tw_sim_trace(NULL), 0);
	tw_sim_spend(NULL, 1);
	tw_sim_spend(sim, 1);
	cr_assert_null(tw_sim_service(NULL));
	expect_eq(tw_sim_destroy(sim), 0);
}

/* --------------------------------------------------------------------- memory */

Test(sim_end, run_without_memory_goes_on_when_there_is_some)
{
	open_sim();
	for (int i = 0; i < 5000; i++)
		schedule_released(MS);
	int r;
	long refusals = 0;
	for (long nth = 0;; nth++) {
		faults_arm(nth % 7, false);
		r = tw_sim_step(sim);
		refusals += faults_disarm();
		cr_assert(r == 1 || r == 0 || r == -ENOMEM);
		if (r == 0)
			break;
	}
	expect_gt(refusals, 0);
	expect_eq(ran, 5000);
	expect_eq(tw_sim_destroy(sim), 0);
}

/* ----------------------------------------------------------------------- fork */

static void check_in_child(void *arg)
{
	child_eq(tw_schedule(tw_sim_service(sim), 0, count, NULL, NULL), -EPERM);
	child_eq(tw_sim_destroy(sim), 0);
	open_sim();
	child_eq(tw_schedule(tw_sim_service(sim), MS, count, NULL, NULL), 0);
	child_eq(tw_sim_run(sim, TW_FOREVER), 0);
	child_eq(ran, 1);
	child_eq(tw_sim_destroy(sim), 0);
}

Test(sim_end, forked_child_is_refused_and_the_parent_untouched)
{
	open_sim();
	schedule_released(MS);
	schedule_released(MS);
	expect_eq(tw_sim_step(sim), 1);
	expect_in_child(check_in_child, NULL);
	expect_eq(tw_sim_run(sim, TW_FOREVER), 0);
	expect_eq(ran, 2);
	expect_eq(tw_sim_destroy(sim), 0);
}

static pid_t forked;

static void fork_inside(void *arg)
{
	forked = child_fork();
	if (forked)
		return;
	child_eq(tw_sim_step(sim), -EPERM);
	child_eq(tw_schedule(tw_sim_service(sim), 0, count, NULL, NULL), -EPERM);
	_Exit(0);
}

Test(sim_end, callback_that_forks_is_refused_in_its_child)
{
	open_sim();
	expect_eq(tw_schedule(tw_sim_service(sim), MS, fork_inside, NULL, NULL), 0);
	expect_eq(tw_sim_run(sim, TW_FOREVER), 0);
	expect_child_well(forked);
	expect_eq(tw_sim_destroy(sim), 0);
}
