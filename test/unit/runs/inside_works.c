/*
 * What would wait for its own caller is refused in the works of a service's layers, too: tasks of
 * strands and schedulers, jobs, functions of semaphores. The driver runs them here.
 */
#include <errno.h>

#include "test/support/rig.h"

static struct rig rig;
static tw_strand *strand;
static tw_limiter *limiter;
static tw_scheduler *scheduler;
static tw_semaphore *semaphore;
static int (*act)(void);
static int answer, calls;

static void open_layers(void)
{
	struct tw_limiter_config one = {.size = sizeof one, .max_concurrency = 1};
	rig_open(&rig, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, rig.service, &one), 0);
	expect_eq(tw_scheduler_create(&scheduler, rig.service, NULL), 0);
	expect_eq(tw_semaphore_create(&semaphore, rig.service, NULL, 1), 0);
}

static void close_layers(void)
{
	expect_in_fini();
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	rig_close(&rig);
}

TestSuite(runs_inside_works, .init = open_layers, .fini = close_layers, .timeout = 30);

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

/* ------------------------------------------------------------ the works */

static int in_a_task(void)
{
	return tw_strand_submit(strand, call, NULL);
}

static int in_a_delayed_task(void)
{
	return tw_strand_schedule(strand, MS, call, NULL, NULL);
}

static int in_a_series(void)
{
	struct tw_period once = rate_of(MS, MS, 1);
	struct tw_strand_task task = {.size = sizeof task, .fn = call, .period = &once};
	return tw_strand_submit_task(strand, &task, NULL);
}

static int in_a_release(void)
{
	struct tw_strand_task task = {
	    .size = sizeof task, .fn = nothing, .release = call_in_release};
	return tw_strand_submit_task(strand, &task, NULL);
}

static int in_a_job(void)
{
	return tw_limiter_submit(limiter, call_in_job, NULL, NULL);
}

static int in_a_turn(void)
{
	return tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, call_in_turn, NULL, NULL);
}

static int in_a_function_of_a_semaphore(void)
{
	return tw_semaphore_acquire_async(semaphore, 1, call, NULL, NULL);
}

static void expect_in_each_work(int (*what)(void), int wanted)
{
	static int (*const submits[])(void) = {
	    in_a_task, in_a_delayed_task,           in_a_series, in_a_release, in_a_job,
	    in_a_turn, in_a_function_of_a_semaphore};
	act = what;
	for (size_t i = 0; i < sizeof submits / sizeof *submits; i++) {
		calls = 0;
		expect_eq(submits[i](), 0);
		rig_advance(&rig, 10 * MS);
		expect_eq(calls, 1);
		expect_eq(answer, wanted);
	}
}

Test(runs_inside_works, the_clock_cannot_be_advanced)
{
	expect_in_each_work(advance_the_clock, -EDEADLK);
}

Test(runs_inside_works, validate_is_busy)
{
	expect_in_each_work(validate_the_service, -EBUSY);
}

/* -------------------------------------------------------- two services on one clock */

Test(runs_inside_works, the_clock_of_another_service_can_be_advanced)
{
	struct rig other;
	tw_strand *on_other;
	act = advance_the_clock;
	rig_open(&other, NULL);
	expect_eq(tw_strand_create(&on_other, other.service, NULL), 0);
	expect_eq(tw_strand_submit(on_other, call, NULL), 0);
	rig_advance(&other, 10 * MS);
	expect_eq(calls, 1);
	expect_eq(answer, 0);
	expect_eq(rig_now(&rig), RIG_START_NS + MS);
	expect_eq(tw_strand_destroy(on_other), 0);
	rig_close(&other);
}
