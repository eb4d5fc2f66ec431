/*
 * What would wait for its own caller is refused in the works of a service's layers, too: tasks of
 * strands and schedulers, jobs, functions of semaphores. The driver runs them here.
 */
#include <errno.h>

#include "test/support/rig.h"

TestSuite(runs_inside_works, .timeout = 30);

static struct rig rig;
static int (*act)(void);
static int answer, calls;

static int advance_the_clock(void)
{
	return tw_clock_manual_advance_by(rig.clock, MS);
}

static int validate_the_service(void)
{
	return tw_service_validate(rig.service, NULL, 0);
}

/* ------------------------------------------------------------ user code of each kind */

static void call(void *arg)
{
	(void)arg;
	answer = act();
	calls++;
}

static void call_in_release(void *arg, enum tw_fate fate)
{
	(void)fate;
	call(arg);
}

static int call_in_job(void *arg, struct tw_job_run *run)
{
	(void)run;
	call(arg);
	return 0;
}

static int call_in_turn(struct tw_turn *turn, void *arg)
{
	(void)turn;
	call(arg);
	return TW_TURN_DONE;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* ------------------------------------------------------------ layers */

/* Opens the rig and sets up one call of `act`, which is due within 10 ms. */
static void open_for(int (*what)(void))
{
	act = what;
	answer = calls = 0;
	rig_open(&rig, NULL);
}

static void expect_answer(int wanted)
{
	rig_advance(&rig, 10 * MS);
	expect_eq(calls, 1);
	expect_eq(answer, wanted);
	rig_advance(&rig, 10 * MS);
}

static void in_a_strand(struct tw_strand_task task, int (*what)(void), int wanted)
{
	tw_strand *strand;
	open_for(what);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	task.size = sizeof task;
	expect_eq(tw_strand_submit_task(strand, &task, NULL), 0);
	expect_answer(wanted);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&rig);
}

static void in_each_task_of_a_strand(int (*what)(void), int wanted)
{
	struct tw_period once = rate_of(MS, MS, 1);
	in_a_strand((struct tw_strand_task){.fn = call}, what, wanted);
	in_a_strand((struct tw_strand_task){.fn = call, .delay_ns = MS}, what, wanted);
	in_a_strand((struct tw_strand_task){.fn = call, .period = &once}, what, wanted);
	in_a_strand((struct tw_strand_task){.fn = nothing, .release = call_in_release}, what,
		    wanted);
}

static void in_a_job(int (*what)(void), int wanted)
{
	struct tw_limiter_config cfg = {.size = sizeof cfg, .max_concurrency = 1};
	tw_limiter *limiter;
	open_for(what);
	expect_eq(tw_limiter_create(&limiter, rig.service, &cfg), 0);
	expect_eq(tw_limiter_submit(limiter, call_in_job, NULL, NULL), 0);
	expect_answer(wanted);
	expect_eq(tw_limiter_destroy(limiter), 0);
	rig_close(&rig);
}

static void in_a_task_of_a_scheduler(int (*what)(void), int wanted)
{
	tw_scheduler *scheduler;
	open_for(what);
	expect_eq(tw_scheduler_create(&scheduler, rig.service, NULL), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, call_in_turn, NULL, NULL), 0);
	expect_answer(wanted);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
}

static void in_a_function_of_a_semaphore(int (*what)(void), int wanted)
{
	tw_semaphore *semaphore;
	open_for(what);
	expect_eq(tw_semaphore_create(&semaphore, rig.service, NULL, 1), 0);
	expect_eq(tw_semaphore_acquire_async(semaphore, 1, call, NULL, NULL), 0);
	expect_answer(wanted);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	rig_close(&rig);
}

static void in_each_work(int (*what)(void), int wanted)
{
	in_each_task_of_a_strand(what, wanted);
	in_a_job(what, wanted);
	in_a_task_of_a_scheduler(what, wanted);
	in_a_function_of_a_semaphore(what, wanted);
}

/* ------------------------------------------------------------ the calls */

Test(runs_inside_works, the_clock_cannot_be_advanced)
{
	in_each_work(advance_the_clock, -EDEADLK);
}

Test(runs_inside_works, validate_is_busy)
{
	in_each_work(validate_the_service, -EBUSY);
}

/* -------------------------------------------------------- two services on one clock */

Test(runs_inside_works, the_clock_of_another_service_can_be_advanced)
{
	struct rig other;
	tw_strand *strand;
	open_for(advance_the_clock);
	rig_open(&other, NULL);
	expect_eq(tw_strand_create(&strand, other.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, call, NULL), 0);
	rig_advance(&other, 10 * MS);
	expect_eq(calls, 1);
	expect_eq(answer, 0);
	expect_eq(rig_now(&rig), RIG_START_NS + MS);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&other);
	rig_close(&rig);
}
