/* Schedulers with a manual host, on a manual clock: order, slices, delays. */
#include "tickwheel/scheduler.h"

#include <errno.h>

#include "test/support/work_suite.h"

TestSuite(scheduler, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ the worked checks */

Test(scheduler, immediate_task_of_ten_units_does_all_in_one_call)
{
	struct job job = JOB(&rig, 1);
	job.units = 10, job.unit_ns = 2 * MS;
	job_post(&job, TW_PRIORITY_IMMEDIATE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.turns, 1);
	expect_eq(job.timed_out, 1);
	expect_eq(job.units, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
}

Test(scheduler, user_blocking_task_of_ten_units_takes_four_calls)
{
	struct job job = JOB(&rig, 1);
	const unsigned left[] = {7, 4, 1, 0};
	job.units = 10, job.unit_ns = 2 * MS;
	job_post(&job, TW_PRIORITY_USER_BLOCKING);
	for (unsigned call = 0; call < 4; call++) {
		expect_eq(run(), call < 3 ? TW_SCHEDULER_RUN_MORE : TW_SCHEDULER_RUN_IDLE);
		expect_eq(job.turns, call + 1);
		expect_eq(job.left[call], left[call]);
	}
	expect_eq(job.timed_out, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
}

/* ------------------------------------------------------------------------ order */

Test(scheduler, tasks_run_by_priority_and_equals_in_the_order_of_posting)
{
	static const enum tw_priority priorities[] = {
	    TW_PRIORITY_IDLE,   TW_PRIORITY_LOW,       TW_PRIORITY_NORMAL,
	    TW_PRIORITY_NORMAL, TW_PRIORITY_IMMEDIATE, TW_PRIORITY_USER_BLOCKING,
	    TW_PRIORITY_LOW,    TW_PRIORITY_IMMEDIATE};
	struct job jobs[8];
	for (int i = 0; i < 8; i++) {
		jobs[i] = JOB(&rig, i);
		job_post(&jobs[i], priorities[i]);
	}
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 4, 7, 5, 2, 3, 1, 6, 0);
}

Test(scheduler, low_task_that_has_waited_goes_before_a_fresh_normal_one)
{
	struct job low = JOB(&rig, 1), normal = JOB(&rig, 2), later = JOB(&rig, 3);
	job_post(&low, TW_PRIORITY_LOW);
	work_rig_spend(&rig, 4999 * MS);
	job_post(&later, TW_PRIORITY_NORMAL); /* expires 1 ms before */
	work_rig_spend(&rig, 2 * MS);
	job_post(&normal, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 3, 1, 2);
}

Test(scheduler, timeouts_are_those_of_the_priorities)
{
	static const struct {
		enum tw_priority priority;
		uint64_t timeout_ns;
	} table[] = {
	    {TW_PRIORITY_USER_BLOCKING, 250 * MS}, {TW_PRIORITY_NORMAL, 5000 * MS},
	    {TW_PRIORITY_LOW, 10000 * MS},         {TW_PRIORITY_IDLE, UINT64_C(1073741823) * MS},
	    {TW_PRIORITY_NONE, 5000 * MS},         {(enum tw_priority)6, 5000 * MS},
	    {(enum tw_priority) - 1, 5000 * MS}};
	for (int i = 0; i < 7; i++) {
		struct job early = JOB(&rig, 0), late = JOB(&rig, 1);
		job_post(&early, table[i].priority);
		work_rig_spend(&rig, table[i].timeout_ns - 1);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_eq(early.timed_out, 0);
		job_post(&late, table[i].priority);
		work_rig_spend(&rig, table[i].timeout_ns);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_eq(late.timed_out, 1);
	}
}

static enum tw_priority seen_priority;

static int see_priority(struct job *job, struct tw_turn *turn)
{
	(void)job;
	seen_priority = tw_priority_current();
	return turn->priority == seen_priority ? TW_TURN_DONE : -EFAULT;
}

Test(scheduler, unknown_priority_is_normal)
{
	const int unknown[] = {0, 6, -1, 1000};
	for (int i = 0; i < 4; i++) {
		struct job job = JOB(&rig, 0);
		job.act = see_priority;
		job_post(&job, (enum tw_priority)unknown[i]);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_eq(seen_priority, TW_PRIORITY_NORMAL);
		expect_told(&job, TW_FATE_FIRED, 0);
	}
}

Test(scheduler, own_timeout_overrides_the_priority)
{
	struct job urgent = JOB(&rig, 1), patient = JOB(&rig, 2), expired = JOB(&rig, 3),
		   block = JOB(&rig, 4);
	job_post_timeout(&patient, (int64_t)(20 * SECOND));
	job_post(&block, TW_PRIORITY_USER_BLOCKING);
	job_post_timeout(&urgent, (int64_t)MS);
	job_post_timeout(&expired, 0);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 3, 1, 4, 2);
	expect_eq(expired.timed_out, 1);
	expect_eq(urgent.timed_out, 0);
}

/* ---------------------------------------------------------------------- slices */

static int spend_two_ms(struct job *job, struct tw_turn *turn)
{
	(void)turn;
	work_rig_spend(job->rig, 2 * MS);
	return TW_TURN_DONE;
}

static void post_many(struct job *jobs, int n, enum tw_priority priority)
{
	for (int i = 0; i < n; i++) {
		jobs[i] = JOB(&rig, i);
		jobs[i].act = spend_two_ms;
		job_post(&jobs[i], priority);
	}
}

Test(scheduler, slice_of_five_ms_ends_between_tasks)
{
	struct job jobs[7];
	post_many(jobs, 7, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(rig.ran, 3);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(rig.ran, 6);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(rig.ran, 7);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
}

Test(scheduler, expired_tasks_run_whatever_the_slice)
{
	struct job jobs[20];
	post_many(jobs, 20, TW_PRIORITY_IMMEDIATE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(rig.ran, 20);
}

Test(scheduler, task_that_expires_during_the_slice_runs_in_it)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2), third = JOB(&rig, 3);
	first.units = 1, first.unit_ns = 10 * MS;
	job_post_timeout(&first, (int64_t)(1 * MS));
	job_post_timeout(&second, (int64_t)(10 * MS));
	job_post_timeout(&third, (int64_t)(10 * MS) + 1);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	EXPECT_ORDER(&rig, 1, 2);
	expect_eq(second.timed_out, 1);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(third.timed_out, 0);
}

Test(scheduler, slice_is_the_configs)
{
	struct job jobs[20];
	struct tw_scheduler_config config = work_rig_config(&rig);
	config.slice_ns = 10 * MS;
	work_rig_close(&rig);
	work_rig_open(&rig, &config);
	post_many(jobs, 20, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(rig.ran, 5);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
}

Test(scheduler, budget_bounds_the_turns_of_expired_tasks_too)
{
	struct job jobs[5];
	post_many(jobs, 5, TW_PRIORITY_IMMEDIATE);
	expect_eq(tw_scheduler_run(rig.scheduler, 2), TW_SCHEDULER_RUN_MORE);
	expect_eq(rig.ran, 2);
	expect_eq(tw_scheduler_run(rig.scheduler, 3), TW_SCHEDULER_RUN_IDLE);
	expect_eq(tw_scheduler_run(rig.scheduler, 0), -EINVAL);
}

/* ---------------------------------------------------------------------- delays */

static uint64_t service_timers(void)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	expect_eq(tw_service_stats(rig.rig.service, &stats), 0);
	return stats.pending;
}

Test(scheduler, delayed_task_runs_after_its_delay_and_expires_a_timeout_later)
{
	struct job job = JOB(&rig, 1), late = JOB(&rig, 2);
	job_post_delayed(&job, TW_PRIORITY_USER_BLOCKING, 100 * MS);
	job_post_delayed(&late, TW_PRIORITY_USER_BLOCKING, 100 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	rig_advance(&rig.rig, 100 * MS - 1);
	expect_eq(rig.wanted, 0);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(rig.ran, 0);
	rig_advance(&rig.rig, 1);
	expect_eq(rig.wanted, 1);
	work_rig_spend(&rig, 250 * MS - 1);
	expect_eq(tw_scheduler_run(rig.scheduler, 1), TW_SCHEDULER_RUN_MORE);
	work_rig_spend(&rig, 1);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.timed_out, 0);
	expect_eq(late.timed_out, 1);
}

Test(scheduler, delayed_tasks_become_ready_by_start_and_run_by_expiration)
{
	struct job low = JOB(&rig, 1), normal = JOB(&rig, 2), soon = JOB(&rig, 3);
	job_post_delayed(&low, TW_PRIORITY_LOW, 10 * MS);
	job_post_delayed(&normal, TW_PRIORITY_NORMAL, 20 * MS);
	job_post_delayed(&soon, TW_PRIORITY_IDLE, 5 * MS);
	rig_advance(&rig.rig, 20 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 2, 1, 3);
}

Test(scheduler, host_timer_is_one_for_the_earliest_and_a_newer_earliest_moves_it)
{
	struct job jobs[4];
	const uint64_t delays_ms[] = {300, 400, 200, 100};
	for (int i = 0; i < 4; i++) {
		jobs[i] = JOB(&rig, i);
		job_post_delayed(&jobs[i], TW_PRIORITY_NORMAL, delays_ms[i] * MS);
		expect_eq(service_timers(), 1);
	}
	expect_eq(work_rig_stats(&rig).timers_armed, 3); /* not for 400 */
	rig_advance(&rig.rig, 99 * MS);
	expect_eq(rig.wanted, 0);
	rig_advance(&rig.rig, 1 * MS);
	expect_eq(rig.wanted, 1);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 3);
	expect_eq(service_timers(), 1);
	rig_advance(&rig.rig, 300 * MS);
	expect_eq(rig.wanted, 2); /* once until it is run */
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 3, 2, 0, 1);
	expect_eq(service_timers(), 0);
}

Test(scheduler, host_timer_is_set_only_while_nothing_is_ready)
{
	static struct job delayed; /* told by the rig's end */
	struct job ready = JOB(&rig, 2), more = JOB(&rig, 3);
	delayed = JOB(&rig, 1);
	job_post_delayed(&delayed, TW_PRIORITY_NORMAL, 100 * MS);
	expect_eq(service_timers(), 1);
	job_post(&ready, TW_PRIORITY_NORMAL);
	expect_eq(service_timers(), 0);
	job_post_delayed(&more, TW_PRIORITY_NORMAL, 50 * MS);
	expect_eq(service_timers(), 0);
	expect_eq(work_rig_stats(&rig).host_timer, 0);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(service_timers(), 1);
	rig_advance(&rig.rig, 50 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 2, 3);
}

Test(scheduler, loop_promotes_what_comes_due_between_tasks)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2), delayed = JOB(&rig, 3);
	first.act = second.act = spend_two_ms;
	job_post(&first, TW_PRIORITY_NORMAL);
	job_post(&second, TW_PRIORITY_NORMAL);
	job_post_delayed(&delayed, TW_PRIORITY_IMMEDIATE, 1 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 1, 3, 2);
}

static int ask_before_and_after_due(struct job *job, struct tw_turn *turn)
{
	bool before = tw_scheduler_should_yield(turn->scheduler);
	work_rig_spend(job->rig, 2 * MS);
	job->answer = !before && tw_scheduler_should_yield(turn->scheduler);
	return TW_TURN_DONE;
}

Test(scheduler, should_yield_promotes_what_is_due_first)
{
	struct job job = JOB(&rig, 1), delayed = JOB(&rig, 2);
	job.act = ask_before_and_after_due;
	job_post(&job, TW_PRIORITY_NORMAL);
	job_post_delayed(&delayed, TW_PRIORITY_IMMEDIATE, 2 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.answer, 1);
	EXPECT_ORDER(&rig, 1, 2);
	expect_eq(tw_scheduler_should_yield(rig.scheduler), 0);
	expect_eq(tw_scheduler_should_yield(NULL), 0);
}

Test(scheduler, cancelled_delayed_task_never_becomes_ready)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2), third = JOB(&rig, 3);
	job_post_delayed(&first, TW_PRIORITY_NORMAL, 10 * MS);
	job_post_delayed(&second, TW_PRIORITY_NORMAL, 20 * MS);
	job_post_delayed(&third, TW_PRIORITY_NORMAL, 30 * MS);
	expect_eq(tw_scheduler_cancel(rig.scheduler, first.task), TW_CANCELLED);
	expect_told(&first, TW_FATE_CANCELLED, -ECANCELED);
	rig_advance(&rig.rig, 15 * MS);
	expect_eq(rig.wanted, 0);
	expect_eq(work_rig_stats(&rig).ready, 0);
	expect_eq(service_timers(), 1); /* the timer of the first has fired, and set the second's */
	rig_advance(&rig.rig, 5 * MS);
	expect_eq(rig.wanted, 1);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 2);
	rig_advance(&rig.rig, 10 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 2, 3);
}
