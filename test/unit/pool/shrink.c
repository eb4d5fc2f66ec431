/* Pools that may grow: they shrink when they are idle, and they end by a close or in a fork. */
#include <errno.h>

#include "pools.h"
#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/rig.h"
#include "test/support/threads.h"

TestSuite(pool_shrink, .timeout = 120);

static void await_size(tw_pool *pool, uint64_t workers)
{
	while (pool_stats(pool).workers != workers)
		sched_yield();
}

/* ------------------------------------------------------------------ shrinking */

Test(pool_shrink, shrinks_to_the_permanent_workers_when_idle)
{
	struct gate gate = {0};
	tw__pool_times.idle_ns = 5 * MS;
	tw_pool *pool = pool_up_to(2, 0);
	int threads = threads_alive();
	for (int round = 1; round <= 3; round++) {
		occupy(pool, &gate, 20);
		expect_ge(threads_alive(), threads + 18);
		let_go(&gate, 20);
		await_size(pool, 2);
		while (threads_alive() != threads)
			sched_yield();
		expect_le(tw_load_relaxed(&pool->slots), 64);
	}
	expect_eq(tw_pool_destroy(pool), 0);
}

/* idle_ns 0: each worker beyond the permanent ones ends as soon as it finds nothing. */
Test(pool_shrink, ten_thousand_rounds_leave_no_thread_no_memory_no_descriptor)
{
	enum { ROUNDS = 10000 };
	struct gate gate = {0};
	tw__pool_times.idle_ns = 0;
	tw__pool_times.look_ns = 20000;
	tw_pool *pool = pool_up_to(1, 3);
	int threads = threads_alive(), descriptors = descriptors_open();
	long memory = 0;
	for (int round = 1; round <= ROUNDS; round++) {
		occupy(pool, &gate, 2);
		let_go(&gate, 2);
		await_size(pool, 1);
		if (round == 10)
			memory = faults_outstanding();
	}
	while (threads_alive() != threads)
		sched_yield();
	expect_eq(descriptors_open(), descriptors);
	/* records of what threads run are kept for the next threads */
	expect_le(faults_outstanding(), memory + 3);
	expect_ge(pool_stats(pool).grown, ROUNDS);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* The lanes and magazines of workers that end go back to the service. */
Test(pool_shrink, workers_that_end_leave_nothing_in_the_service)
{
	struct gate gate = {0};
	tw__pool_times.idle_ns = 0;
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 1};
	expect_eq(tw_service_create(&service, &cfg), 0);
	uint64_t memory = 0;
	for (int round = 1; round <= 20; round++) {
		for (int i = 0; i < 8; i++)
			expect_eq(tw_schedule(service, 0, pass, &gate, NULL), 0);
		await_value(&gate.inside, 8 * round);
		let_go(&gate, 8);
		await_value(&gate.passed, 8 * round);
		struct tw_service_stats stats;
		do {
			sched_yield();
			stats = stats_of(service);
		} while (stats.threads >
			 3); /* this one, the tick thread's, and the permanent worker's */
		if (round == 1)
			memory = stats.memory_bytes;
		expect_le(stats.memory_bytes, 2 * memory);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* ----------------------------------------------------------------------- ends */

static void let_one_go(void *gate)
{
	let_go(gate, 1);
}

Test(pool_shrink, close_runs_what_waits_behind_blocked_workers)
{
	struct gate gate = {0};
	tw_pool *pool = pool_up_to(2, 0);
	block(pool, &gate, 10);
	/* The last ones let all others go: close must find them a worker. */
	for (int i = 0; i < 10; i++)
		expect_eq(tw_pool_submit(pool, let_one_go, &gate), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(gate.passed, 10);
	expect_eq(tw_pool_destroy(pool), 0);
}

struct creation {
	struct gate gate;
	atomic_int begun, closing;
};

static void stay_in_creation(void *arg)
{
	struct creation *creation = arg;
	atomic_store(&creation->begun, 1);
	await_value(&creation->closing, 1);
}

static void *let_on(void *arg)
{
	struct creation *creation = arg;
	atomic_store(&creation->closing, 1);
	let_go(&creation->gate, 3);
	return NULL;
}

/*
 * Else the starter takes workers that a close has woken for sleepers, and does not grow while jobs
 * wait for each other.
 */
Test(pool_shrink, close_leaves_no_worker_counted_as_asleep_or_searching)
{
	tw_pool *pool = pool_up_to(3, 4);
	while (!pool_sleeps(pool, 3))
		sched_yield();
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(pool_sleeps(pool, 0), true);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_shrink, close_waits_for_a_thread_that_is_being_started)
{
	for (int round = 0; round < 20; round++) {
		struct creation creation = {0};
		pthread_t helper;
		int threads = threads_alive();
		tw_pool *pool = pool_up_to(2, 0);
		faults_only("pthread_create");
		faults_call_at(0, stay_in_creation, &creation);
		block(pool, &creation.gate, 3);
		await_value(&creation.begun, 1);
		expect_eq(pthread_create(&helper, NULL, let_on, &creation), 0);
		expect_eq(tw_pool_destroy(pool), 0);
		pthread_join(helper, NULL);
		faults_disarm();
		expect_eq(creation.gate.passed, 3);
		while (threads_alive() != threads)
			sched_yield();
	}
}

static void check_in_child(void *arg)
{
	tw_pool *pool = arg;
	struct tw_pool_stats stats = {.size = sizeof(stats)};
	child_eq(tw_pool_submit_wait(pool, count, NULL, TW_FOREVER), -EPERM);
	child_eq(tw_pool_stats(pool, &stats), -EPERM);
	child_eq(tw_pool_destroy(pool), 0);
}

Test(pool_shrink, a_child_of_a_grown_pool_is_refused_and_frees_it)
{
	struct gate gate = {0};
	tw_pool *pool = pool_up_to(2, 0);
	occupy(pool, &gate, 8);
	expect_in_child(check_in_child, pool);
	let_go(&gate, 8);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(gate.passed, 8);
}
