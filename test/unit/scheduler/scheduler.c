/* Schedulers with a manual host, on a manual clock: order, slices, delays. */
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

/* ---------------------------------------------------------------------- slices */

static int spend_two_ms(struct job *job, struct tw_turn *turn)
{
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
