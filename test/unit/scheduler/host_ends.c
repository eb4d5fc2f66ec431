/*
 * Ends of schedulers whose host is an executor: close and destroy wait for work that the executor
 * holds, and for `wanted`. A destroy does not make a thread wait for itself.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/host_suite.h"

TestSuite(scheduler_host_ends, .fini = close_left, .timeout = 60);

static int nothing(struct tw_turn *turn, void *arg)
{
	return TW_TURN_DONE;
}

static struct {
	tw_scheduler *scheduler;
	tw_scheduler_task_id task;
	atomic_bool begun, go_on, over;
} other; /* the other scheduler, and how far what another thread does in it is */

static void stand_still(void *arg)
{
	atomic_store(&other.begun, true);
	while (!atomic_load(&other.go_on))
		sched_yield();
	atomic_store(&other.over, true);
}

static void begin_other(void)
{
	atomic_store(&other.begun, false);
	atomic_store(&other.go_on, false);
	atomic_store(&other.over, false);
}

static void *let_go_on(void *arg)
{
	for (int i = 0; i < 2000; i++)
		sched_yield();
	atomic_store(&other.go_on, true);
	return NULL;
}

static int close_it(tw_scheduler *scheduler)
{
	return tw_scheduler_close(scheduler, TW_FOREVER);
}

/* The other scheduler ends when the thread that stands still has gone on. */
static void expect_waits(int (*end)(tw_scheduler *scheduler))
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, let_go_on, NULL), 0);
	expect_eq(end(other.scheduler), 0);
	expect_eq(atomic_load(&other.over), true);
	pthread_join(thread, NULL);
}

/* --------------------------------------------------------- work that the executor holds */

static void destroy_in_callback(struct probe *probe)
{
	probe->answer = tw_scheduler_destroy(rig.scheduler);
	rig.scheduler = NULL;
}

/*
 * The driver holds the work in this moment, so destroy cannot take it back. The executor never
 * takes it, so the driver does the rest.
 */
Test(scheduler_host_ends, executor_that_refuses_for_good_does_not_hold_up_the_service)
{
	struct job job = JOB(&rig, 1);
	open_on(&queue.base);
	struct probe probe = PROBE(&rig.rig, 2);
	probe.act = destroy_in_callback;
	queue.refuse = SIZE_MAX;
	job_post(&job, TW_PRIORITY_NORMAL);
	rig_advance(&rig.rig, 2 * MS);
	probe_schedule(&probe, MS);
	rig_advance(&rig.rig, 2 * MS);
	expect_eq(probe.answer, 0);
	expect_told(&job, TW_FATE_DROPPED, -ESHUTDOWN);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(job.turns, 0);
}

/* ------------------------------------------------------- the only thread that could run it */

static int close_other(struct job *job, struct tw_turn *turn)
{
	job->answer = tw_scheduler_close(other.scheduler, TW_FOREVER);
	return TW_TURN_DONE;
}

/* The driver runs both, one after the other: the second one's work is taken back. */
Test(scheduler_host_ends, close_on_the_driver_takes_back_what_it_would_run_next)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2);
	open_on(tw_executor_inline());
	expect_eq(tw_scheduler_create(&other.scheduler, rig.rig.service, NULL), 0);
	first.act = close_other;
	first.answer = 1;
	job_post(&first, TW_PRIORITY_NORMAL);
	struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = job_turn, .arg = &second, .done = job_done};
	expect_eq(tw_scheduler_submit_task(other.scheduler, &post, NULL), 0);
	rig_advance(&rig.rig, MS);
	expect_eq(first.answer, 0);
	expect_told(&second, TW_FATE_DROPPED, -ESHUTDOWN);
	expect_eq(second.turns, 0);
	expect_eq(tw_scheduler_destroy(other.scheduler), 0);
}

struct closing {
	tw_scheduler *scheduler;
	bool destroys;
	atomic_int answer, over;
};

static void post_and_end(void *arg)
{
	struct closing *closing = arg;
	tw_scheduler_submit(closing->scheduler, TW_PRIORITY_NORMAL, nothing, NULL, NULL);
	atomic_store(&closing->answer, closing->destroys
					   ? tw_scheduler_destroy(closing->scheduler)
					   : tw_scheduler_close(closing->scheduler, 10 * MS));
	atomic_store(&closing->over, 1);
}

Test(scheduler_host_ends, close_by_the_task_of_a_strand_that_its_work_waits_behind_ends_in_time)
{
	struct closing closing = {0};
	tw_strand *strand;
	open_on(NULL);
	expect_eq(tw_strand_create(&strand, rig.rig.service, NULL), 0);
	struct tw_scheduler_config config = {.size = sizeof config,
					     .executor = tw_strand_executor(strand)};
	expect_eq(tw_scheduler_create(&closing.scheduler, rig.rig.service, &config), 0);
	expect_eq(tw_strand_submit(strand, post_and_end, &closing), 0);
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(atomic_load(&closing.answer), -ETIMEDOUT);
	expect_eq(tw_scheduler_close(closing.scheduler, 0), 0);
	expect_eq(tw_scheduler_destroy(closing.scheduler), 0);
	expect_eq(tw_strand_destroy(strand), 0);
}

/* ------------------------------------------------------------- workers of a pool */

/* A pool's only worker ends a scheduler whose work waits for it. */
static void end_on_the_only_worker(bool destroys, int answer)
{
	tw_pool *pool;
	struct closing closing = {.answer = 1, .destroys = destroys};
	struct tw_pool_config config = {.size = sizeof config, .workers = 1, .max_workers = 1};
	expect_eq(tw_pool_create(&pool, &config), 0);
	open_on(tw_pool_executor(pool));
	closing.scheduler = rig.scheduler;
	if (destroys)
		rig.scheduler = NULL;
	expect_eq(tw_pool_submit(pool, post_and_end, &closing), 0);
	while (!atomic_load(&closing.over))
		sched_yield();
	expect_eq(atomic_load(&closing.answer), answer);
	close_all();
	expect_eq(tw_pool_destroy(pool), 0);
}

/* A close ends in time; a destroy takes effect when the work has run. */
Test(scheduler_host_ends, ends_by_the_only_worker_that_could_run_the_work_wait_for_nobody)
{
	end_on_the_only_worker(false, -ETIMEDOUT);
	end_on_the_only_worker(true, 0);
}

/* ------------------------------------------------------------------------ `wanted` */

static void *post_nothing(void *scheduler)
{
	tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, nothing, NULL, NULL);
	return NULL;
}

/* delayed: the driver calls `wanted`, else the thread that posts. */
static void destroy_beside_wanted(bool delayed)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 1};
	struct tw_scheduler_config config = {
	    .size = sizeof config, .host = TW_HOST_MANUAL, .wanted = stand_still};
	struct tw_scheduler_task post = {.size = sizeof post, .fn = nothing, .delay_ns = MS};
	tw_service *service;
	pthread_t poster;
	begin_other();
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_scheduler_create(&other.scheduler, service, &config), 0);
	if (delayed)
		expect_eq(tw_scheduler_submit_task(other.scheduler, &post, NULL), 0);
	else
		expect_eq(pthread_create(&poster, NULL, post_nothing, other.scheduler), 0);
	while (!atomic_load(&other.begun))
		sched_yield();
	if (!delayed)
		expect_eq(tw_scheduler_run(other.scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
	expect_waits(tw_scheduler_destroy);
	if (!delayed)
		pthread_join(poster, NULL);
	expect_eq(tw_service_destroy(service), 0);
}

/*
 * The driver tells the loop that a delayed task is due: the scheduler stays until then. And the
 * task runs, and the scheduler is destroyed, while its poster is inside `wanted`.
 */
Test(scheduler_host_ends, destroy_waits_for_the_wanted_that_a_timer_or_a_post_calls)
{
	destroy_beside_wanted(true);
	destroy_beside_wanted(false);
}

/* ------------------------------------------------- done functions of other threads */

static void tell_slowly(void *arg, enum tw_fate fate, int result)
{
	stand_still(arg);
}

static void *cancel_the_task(void *arg)
{
	tw_scheduler_cancel(other.scheduler, other.task);
	return NULL;
}

static void *close_too(void *arg)
{
	close_it(other.scheduler);
	return NULL;
}

static void end_beside(void *(*ender)(void *arg))
{
	tw_service *service;
	pthread_t thread;
	struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = nothing, .delay_ns = HOUR, .done = tell_slowly};
	begin_other();
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_scheduler_create(&other.scheduler, service, NULL), 0);
	expect_eq(tw_scheduler_submit_task(other.scheduler, &post, &other.task), 0);
	expect_eq(pthread_create(&thread, NULL, ender, NULL), 0);
	while (!atomic_load(&other.begun))
		sched_yield();
	expect_eq(tw_scheduler_close(other.scheduler, 0), -ETIMEDOUT);
	expect_waits(close_it);
	pthread_join(thread, NULL);
	expect_eq(tw_scheduler_destroy(other.scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(scheduler_host_ends, close_waits_for_the_done_function_that_a_cancel_or_another_close_calls)
{
	end_beside(cancel_the_task);
	end_beside(close_too);
}

/* ------------------------------------------------- refused while the driver is in a poll */

static int refuse(tw_executor *self, tw_batch *batch, size_t n)
{
	return -EAGAIN;
}

/* The driver has the work in this moment, so close cannot take it back: the driver returns it. */
Test(scheduler_host_ends, close_on_another_thread_leaves_work_that_is_refused_to_the_driver)
{
	static const struct tw_executor_ops ops = {.size = sizeof ops, .submit = refuse};
	tw_executor executor = {&ops};
	tw_service *service;
	struct tw_scheduler_config config = {.size = sizeof config, .executor = &executor};
	struct tw_task task = {
	    .size = sizeof task, .fn = stand_still, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_scheduler_create(&other.scheduler, service, &config), 0);
	expect_eq(tw_scheduler_submit(other.scheduler, TW_PRIORITY_NORMAL, nothing, NULL, NULL), 0);
	while (stats_of(service).refused < 2) /* this thread is refused, then the driver */
		sched_yield();
	expect_eq(tw_schedule_task(service, &task, NULL), 0);
	while (!atomic_load(&other.begun))
		sched_yield();
	expect_waits(close_it);
	expect_eq(tw_scheduler_destroy(other.scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}
