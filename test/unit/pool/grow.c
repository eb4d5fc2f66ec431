/* Pools that grow while callbacks block, and what one can see of it. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "pools.h"
#include "test/support/faults.h"
#include "test/support/rig.h"
#include "test/support/threads.h"

TestSuite(pool_grow, .timeout = 120);

/* -------------------------------------------------------------------- growing */

/* All block at the same time, and what is submitted behind them runs, if there is a worker left. */
static void expect_all_inside(int jobs)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	tw_pool *pool = pool_up_to(2, 0);
	occupy(pool, &gate, jobs);
	if (jobs < 64) {
		run_task_of(pool, count, &behind, &behind);
	}
	struct tw_pool_stats stats;
	do
		stats = pool_stats(pool);
	/* until `count` has returned */
	while (stats.workers != stats.grown + 2 || stats.running > (uint64_t)jobs);
	expect_eq(stats.running, jobs);
	/* perhaps more: a look may come before a new thread has run */
	expect_ge(stats.workers, jobs + (jobs < 64));
	expect_le(stats.workers, 64);
	expect_eq(stats.start_failures, 0);
	let_go(&gate, jobs);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(gate.passed, jobs);
}

/* Fewer jobs than workers, as many, one more; one less than the maximum, and the maximum. */
Test(pool_grow, runs_beside_blocking_jobs_up_to_the_maximum)
{
	static const int jobs[] = {1, 2, 3, 63, 64};
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		expect_all_inside(jobs[i]);
}

Test(pool_grow, at_the_maximum_a_job_waits_for_one_that_ends)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	tw_pool *pool = pool_up_to(2, 5);
	occupy(pool, &gate, 5);
	expect_eq(tw_pool_submit(pool, count, &behind), 0);
	while (pool_stats(pool).at_max == 0)
		sched_yield();
	expect_eq(pool_stats(pool).workers, 5);
	expect_eq(pool_stats(pool).queued, 1);
	expect_eq(behind, 0);
	let_go(&gate, 1);
	await_value(&behind, 1);
	expect_eq(pool_stats(pool).at_max, 1);
	let_go(&gate, 4);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_grow, a_pool_whose_maximum_is_its_size_has_no_further_thread)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	int before = threads_alive();
	tw_pool *pool = pool_up_to(1, 1);
	expect_eq(threads_alive(), before + 1);
	occupy(pool, &gate, 1);
	expect_eq(tw_pool_submit(pool, count, &behind), 0);
	let_go(&gate, 1);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(behind, 1);
}

static tw_pool *busy_pool;
static atomic_int goes_on;

/* It is always in the queue again when the next one begins. */
static void come_again(void *arg)
{
	if (atomic_load(&goes_on))
		(void)tw_pool_submit(busy_pool, come_again, arg); /* or the pool is closed by now */
}

/* One worker goes on with the short tasks; the pool makes up for the other one. */
Test(pool_grow, a_blocked_callback_beside_short_ones_counts_after_a_while)
{
	struct gate gate = {0};
	busy_pool = pool_up_to(2, 3);
	occupy(busy_pool, &gate, 1);
	atomic_store(&goes_on, 1);
	for (int i = 0; i < 4; i++)
		expect_eq(tw_pool_submit(busy_pool, come_again, NULL), 0);
	while (pool_stats(busy_pool).grown == 0)
		sched_yield();
	atomic_store(&goes_on, 0);
	let_go(&gate, 1);
	expect_eq(tw_pool_destroy(busy_pool), 0);
}

/* ThreadSanitizer makes a callback wait for its own lock in any other order: it would block. */
static void count_relaxed(void *arg)
{
	atomic_fetch_add_explicit((atomic_int *)arg, 1, memory_order_relaxed);
}

Test(pool_grow, a_long_backlog_of_short_callbacks_does_not_grow_it)
{
	enum { TASKS = 300000 };
	atomic_int ran = 0;
	/* longer than this machine keeps all threads from running */
	tw__pool_times.look_ns = 200 * MS;
	tw_pool *pool = pool_up_to(2, 0);
	for (int i = 0; i < TASKS; i++)
		expect_eq(tw_pool_submit_wait(pool, count_relaxed, &ran, TW_FOREVER), 0);
	await_value(&ran, TASKS);
	expect_eq(pool_stats(pool).grown, 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* The rest of a batch is behind the callback that blocks; so is the service's next one. */
Test(pool_grow, timers_behind_blocked_callbacks_of_their_own_batch_run)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	tw_service *service;
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 0), 0);
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .workers = 1, .clock = clock, .drive = TW_DRIVE_MANUAL};
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int i = 0; i < 10; i++)
		expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
	expect_eq(tw_schedule(service, 0, count, &behind, NULL), 0);
	tw_service_advance(service, TW_NO_LIMIT);
	await_value(&behind, 1);
	await_value(&gate.inside, 10);
	let_go(&gate, 10);
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(gate.passed, 10);
	expect_eq(tw_service_destroy(service), 0);
	tw_clock_manual_destroy(clock);
}

struct noted {
	cpu_set_t cpus;
	atomic_int done;
};

static void note_affinity(void *arg)
{
	struct noted *noted = arg;
	expect_eq(sched_getaffinity(0, sizeof noted->cpus, &noted->cpus), 0);
	atomic_store(&noted->done, 1);
}

Test(pool_grow, a_new_worker_has_the_affinity_of_the_config)
{
	struct gate gate = {0};
	struct noted mine, noted = {0};
	cpu_set_t wanted;
	note_affinity(&mine);
	CPU_ZERO(&wanted);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&wanted) == 0; cpu++)
		if (CPU_ISSET(cpu, &mine.cpus))
			CPU_SET(cpu, &wanted);
	struct tw_pool_config config = TW_INIT(tw_pool_config);
	config.workers = 1;
	config.max_workers = 2;
	config.affinity = &wanted;
	config.affinity_size = sizeof wanted;
	tw_pool *pool;
	expect_eq(tw_pool_create(&pool, &config), 0);
	occupy(pool, &gate, 1);
	run_task_of(pool, note_affinity, &noted, &noted.done);
	while (pool_stats(pool).grown < 1) /* the worker may run before it is counted */
		sched_yield();
	cr_assert(CPU_EQUAL(&noted.cpus, &wanted));
	let_go(&gate, 1);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* ------------------------------------------------------- threads that are refused */

Test(pool_grow, goes_on_while_no_thread_can_be_started_and_grows_later)
{
	struct gate gate = {0};
	atomic_int behind = 0;
	tw_pool *pool = pool_up_to(2, 0);
	faults_only("pthread_create");
	faults_arm(0, true);
	block(pool, &gate, 3);
	await_value(&gate.inside, 2); /* on a busy machine the starter may look between the two */
	while (tw_load_relaxed(&pool->starter.start_failures) < 2)
		sched_yield();
	expect_eq(gate.inside, 2);
	expect_eq(faults_disarm(), true);
	await_value(&gate.inside, 3); /* the need has lasted */
	run_task_of(pool, count, &behind, &behind);
	expect_ge(pool_stats(pool).start_failures, 2);
	let_go(&gate, 3);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_grow, a_thread_refused_at_any_moment_is_made_up_for)
{
	for (long nth = 0; nth < 12; nth++) {
		struct gate gate = {0};
		atomic_int first = 0;
		tw_pool *pool = pool_up_to(2, 0);
		run_task_of(pool, count, &first, &first); /* a thread's first submit allocates */
		faults_arm(nth, false);
		block(pool, &gate, 14);
		await_value(&gate.inside, 14);
		bool refused = faults_disarm();
		bool thread_refused = refused && strcmp(faults_refused(), "pthread_create") == 0;
		expect_eq(pool_stats(pool).start_failures, thread_refused);
		let_go(&gate, 14);
		expect_eq(tw_pool_destroy(pool), 0);
	}
}

/* -------------------------------------------------------------- what one can see */

Test(pool_grow, a_services_own_pool_shows_its_counters)
{
	struct gate gate = {0};
	struct tw_pool_stats stats = {.size = sizeof stats};
	tw_service *service, *without;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	struct tw_service_config none = {.size = sizeof none, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_service_create(&without, &none), 0);
	for (int i = 0; i < 6; i++)
		expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
	await_value(&gate.inside, 6);
	do
		expect_eq(tw_service_pool_stats(service, &stats), 0);
	while (stats.workers != stats.grown + 2);
	expect_ge(stats.workers, 6);
	expect_eq(stats.running, 6);
	expect_eq(stats.services, 1);
	expect_eq(tw_service_pool_stats(without, &stats), -ENOENT);
	let_go(&gate, 6);
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(tw_service_pool_stats(service, &stats), -ENOENT);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_service_destroy(without), 0);
}
