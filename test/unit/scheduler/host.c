/* Schedulers whose host is an executor: when it gets work, and the timer for delayed tasks. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/eager_executor.h"
#include "test/support/host_suite.h"

TestSuite(scheduler_host, .fini = close_left, .timeout = 60);

Test(scheduler_host, executor_gets_one_piece_of_work_and_another_for_each_slice)
{
	struct job jobs[2];
	open_on(&queue.base);
	for (int i = 0; i < 2; i++) {
		jobs[i] = JOB(&rig, i);
		jobs[i].units = 4, jobs[i].unit_ns = 2 * MS;
		job_post(&jobs[i], TW_PRIORITY_NORMAL);
		expect_eq(queue_executor_waiting(&queue), 1);
	}
	expect_eq(work_rig_stats(&rig).host_requested, 1);
	unsigned slices = 0;
	while (queue_executor_run_next(&queue) == 1) {
		slices++;
		expect_le(queue_executor_waiting(&queue), 1);
	}
	/* 6 ms of the first; its last unit and two of the second; two of the second */
	expect_eq(slices, 3);
	EXPECT_ORDER(&rig, 0, 0, 1, 1);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.host_requests, slices);
	expect_eq(stats.slices, slices);
	expect_eq(stats.host_requested, 0);
}

static int post_from_inside(struct job *job, struct tw_turn *turn)
{
	job_post(job->other, TW_PRIORITY_NORMAL);
	job->answer = (int)queue_executor_waiting(&queue);
	return TW_TURN_DONE;
}

Test(scheduler_host, nothing_is_requested_while_the_loop_runs)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2);
	open_on(&queue.base);
	first = JOB(&rig, 1), first.act = post_from_inside, first.other = &second,
	first.answer = -1;
	job_post(&first, TW_PRIORITY_NORMAL);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(first.answer, 0);
	EXPECT_ORDER(&rig, 1, 2);
	expect_eq(work_rig_stats(&rig).host_requests, 1);
}

Test(scheduler_host, host_timer_requests_the_host)
{
	struct job job = JOB(&rig, 1);
	open_on(&queue.base);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, 3 * MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(queue_executor_run_all(&queue), 1);
	EXPECT_ORDER(&rig, 1);
}

/* It was set for an instant that had passed, and so fired in each tick. */
Test(scheduler_host, host_timer_waits_for_a_far_task_however_old_the_service_is)
{
	struct job job = JOB(&rig, 1);
	open_on(&queue.base);
	rig_advance(&rig.rig, (UINT64_C(1) << 60) + SECOND);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, SECOND);
	for (int i = 0; i < 10; i++)
		rig_advance(&rig.rig, MS);
	expect_eq(work_rig_stats(&rig).timers_armed, 1);
	rig_advance(&rig.rig, SECOND);
	expect_eq(queue_executor_run_all(&queue), 1);
	EXPECT_ORDER(&rig, 1);
}

Test(scheduler_host, refused_work_is_offered_again)
{
	struct job job = JOB(&rig, 1);
	open_on(&queue.base);
	queue.refuse = 3;
	job_post(&job, TW_PRIORITY_NORMAL);
	for (int i = 0; i < 3; i++) {
		expect_eq(queue_executor_waiting(&queue), 0);
		tw_service_advance(rig.rig.service, TW_NO_LIMIT);
	}
	expect_eq(queue_executor_run_all(&queue), 1);
	EXPECT_ORDER(&rig, 1);
}

Test(scheduler_host, inline_host_runs_a_slice_in_each_of_the_drivers_turns)
{
	struct job job = JOB(&rig, 1);
	open_on(tw_executor_inline());
	job = JOB(&rig, 1), job.units = 6, job.unit_ns = 2 * MS;
	job_post(&job, TW_PRIORITY_NORMAL);
	expect_eq(job.turns, 0);
	for (unsigned turn = 1; turn <= 2; turn++) {
		tw_service_advance(rig.rig.service, TW_NO_LIMIT);
		expect_ge(job.turns, turn);
	}
	tw_service_advance(rig.rig.service, TW_NO_LIMIT);
	expect_told(&job, TW_FATE_FIRED, 0);
}

static char *lowest;

static int many_slices(struct job *job, struct tw_turn *turn)
{
	char here;
	lowest = !lowest || &here < lowest ? &here : lowest;
	job->answer = job->answer > (int)(&here - lowest) ? job->answer : (int)(&here - lowest);
	work_rig_spend(job->rig, 6 * MS);
	return job->turns < 2000 ? TW_TURN_AGAIN : TW_TURN_DONE;
}

Test(scheduler_host, executor_that_runs_in_submit_runs_nothing_inside_post_and_piles_up_no_stack)
{
	struct job job = JOB(&rig, 1);
	open_on(&eager_executor);
	job = JOB(&rig, 1), job.act = many_slices;
	job_post(&job, TW_PRIORITY_NORMAL); /* low: its expiration comes meanwhile */
	expect_eq(job.turns, 0);
	for (int turns = 0; !job.told && turns < 5000; turns++)
		rig_advance(&rig.rig, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
	expect_eq(job.turns, 2000);
	expect_lt(job.answer, 1000);
	expect_gt(work_rig_stats(&rig).slices, 500);
}

/* ------------------------------------------------------------------ the host timer */

/* A service whose executor does nothing, as if callbacks blocked all of its workers. */
static void open_on_blocked_service(const struct tw_scheduler_config *config)
{
	struct tw_service_config blocked = rig_config();
	queue_executor_open(&queue);
	rig = (struct work_rig){0};
	blocked.executor = &queue.base;
	rig_open(&rig.rig, &blocked);
	expect_eq(tw_scheduler_create(&rig.scheduler, rig.rig.service, config), 0);
}

Test(scheduler_host, delayed_task_wakes_the_loop_though_no_worker_of_the_service_is_free)
{
	struct job job = JOB(&rig, 1);
	struct tw_scheduler_config manual = work_rig_config(&rig);
	open_on_blocked_service(&manual);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, 3 * MS);
	rig_advance(&rig.rig, 2 * MS);
	expect_eq(rig.wanted, 0);
	rig_advance(&rig.rig, 1 * MS);
	expect_eq(rig.wanted, 1);
	expect_eq(tw_scheduler_run(rig.scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 1);
	expect_eq(queue.submits, 0);
}

Test(scheduler_host, delayed_task_reaches_its_own_executor_though_no_worker_of_the_service_is_free)
{
	struct job job = JOB(&rig, 1);
	struct queue_executor own;
	queue_executor_open(&own);
	struct tw_scheduler_config config = {.size = sizeof config, .executor = &own.base};
	open_on_blocked_service(&config);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, 3 * MS);
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(queue_executor_run_all(&own), 1);
	EXPECT_ORDER(&rig, 1);
	expect_eq(queue.submits, 0);
	close_all();
	queue_executor_close(&own);
}

Test(scheduler_host, delayed_task_survives_an_executor_that_refuses)
{
	struct job job = JOB(&rig, 1);
	open_on_blocked_service(NULL);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, 3 * MS);
	queue.refuse = 3;
	for (int i = 0; i < 10; i++) {
		rig_advance(&rig.rig, MS);
		queue_executor_run_all(&queue);
	}
	expect_eq(queue.refuse, 0);
	EXPECT_ORDER(&rig, 1);
}

/* The driver promotes a few of them, the slice the rest, in order. */
Test(scheduler_host, many_delayed_tasks_of_one_instant_run_in_one_slice)
{
	enum { MANY = 1000 };
	static struct job jobs[MANY];
	open_on(&queue.base);
	for (int i = 0; i < MANY; i++) {
		jobs[i] = JOB(&rig, i);
		job_post_delayed(&jobs[i], TW_PRIORITY_NORMAL, 3 * MS);
	}
	rig_advance(&rig.rig, 3 * MS);
	expect_lt(work_rig_stats(&rig).ready, 100);
	expect_eq(queue_executor_run_all(&queue), 1);
	for (int i = 0; i < MANY; i++)
		expect_eq(rig.order[i], i);
	expect_eq(work_rig_stats(&rig).completed, MANY);
	expect_eq(work_rig_stats(&rig).slices, 1);
}

/* ---------------------------------------------------------------- on real threads */

static atomic_uint ran;

static int count(struct tw_turn *turn, void *arg)
{
	atomic_fetch_add(&ran, 1);
	return TW_TURN_DONE;
}

Test(scheduler_host, services_own_pool_runs_ready_and_delayed_tasks)
{
	enum { MANY = 1000 };
	tw_service *service;
	tw_scheduler *scheduler;
	struct tw_scheduler_task post = {.size = sizeof post, .fn = count};
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		post.delay_ns = (uint64_t)(i % 5) * MS;
		expect_eq(tw_scheduler_submit_task(scheduler, &post, NULL), 0);
	}
	while (atomic_load(&ran) < MANY)
		sched_yield();
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}
