/*
 * on_stuck in real time: the tick thread wakes up for a run that is no timer's, though no timer is
 * due; and sleeps while nothing runs.
 */
#include <semaphore.h>
#include <unistd.h>

#include "test/support/rig.h"

enum { STUCK_NS = 20 * MS };

static sem_t begun, go_on, ended;

static void init(void)
{
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	sem_init(&ended, 0, 0);
}

TestSuite(runs_watchdog_real_wake, .init = init, .timeout = 30);

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void blocks(void *arg)
{
	(void)arg;
	sem_post(&begun);
	sem_await(&go_on);
	sem_post(&ended);
}

/* Returns when the run that blocks is over: a later one would take its place at go_on. */
static void let_return(void)
{
	sem_post(&go_on);
	sem_await(&ended);
}

static void returns(void *arg)
{
	(void)arg;
	sem_post(&begun);
}

struct told {
	atomic_int times;
	struct tw_service_liveness last;
};

static void on_stuck(void *arg, const struct tw_service_liveness *seen)
{
	struct told *told = arg;
	told->last = *seen;
	told->times++;
}

static tw_service *open_watched(tw_executor *executor, struct told *told)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof cfg,
					.workers = executor ? 0 : 1,
					.executor = executor,
					.stuck_ns = STUCK_NS,
					.on_stuck = on_stuck,
					.stuck_arg = told};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static uint64_t wakeups_of(tw_service *service)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	expect_eq(tw_service_stats(service, &stats), 0);
	return stats.wakeups;
}

/* Until the tick thread has slept through five times the span after which it would look at runs. */
static void await_sleep(tw_service *service)
{
	uint64_t before;
	do {
		before = wakeups_of(service);
		usleep(5 * STUCK_NS / 1000);
	} while (wakeups_of(service) != before);
}

static void await_told(struct told *told, int times)
{
	while (told->times < times)
		usleep(1000);
}

Test(runs_watchdog_real_wake, a_strand_task_is_told_though_no_timer_is_due)
{
	struct told told = {0};
	tw_service *service = open_watched(NULL, &told);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int round = 1; round <= 3; round++) {
		await_sleep(service);
		expect_eq(tw_strand_submit(strand, blocks, NULL), 0);
		sem_await(&begun);
		await_told(&told, round);
		expect_eq(told.last.longest_kind, TW_RUN_KIND_STRAND_TASK);
		cr_assert(told.last.longest_fn == blocks);
		expect_ge(told.last.longest_ns, STUCK_NS);
		await_sleep(service); /* the run was reported, so there is nothing to wake up for */
		expect_eq(told.times, round);
		let_return();
	}
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(runs_watchdog_real_wake, a_pool_task_is_told_to_each_service_of_the_pool_once)
{
	struct told told[2] = {{0}};
	tw_pool *pool;
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	expect_eq(tw_pool_create(&pool, &config), 0);
	tw_service *services[2];
	for (int i = 0; i < 2; i++)
		services[i] = open_watched(tw_pool_executor(pool), &told[i]);
	for (int round = 1; round <= 3; round++) {
		await_sleep(services[0]);
		await_sleep(services[1]);
		expect_eq(tw_pool_submit(pool, blocks, NULL), 0);
		sem_await(&begun);
		for (int i = 0; i < 2; i++) {
			await_told(&told[i], round);
			expect_eq(told[i].last.longest_kind, TW_RUN_KIND_POOL_TASK);
			cr_assert(told[i].last.longest_fn == blocks);
			expect_ge(told[i].last.longest_ns, STUCK_NS);
		}
		await_sleep(services[0]);
		await_sleep(services[1]);
		expect_eq(told[0].times, round);
		expect_eq(told[1].times, round);
		let_return();
	}
	for (int i = 0; i < 2; i++)
		expect_eq(tw_service_destroy(services[i]), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

/*
 * Quick tasks wake the tick thread at most once in a while, and once they have ended it sleeps for
 * good.
 */
static void expect_quiet(uint32_t max_workers)
{
	struct told told = {0};
	tw_pool *pool;
	struct tw_pool_config config = {
	    .size = sizeof config, .workers = 1, .max_workers = max_workers};
	expect_eq(tw_pool_create(&pool, &config), 0);
	tw_service *service = open_watched(tw_pool_executor(pool), &told);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int round = 0; round < 3; round++) {
		expect_eq(tw_pool_submit(pool, returns, NULL), 0);
		expect_eq(tw_strand_submit(strand, returns, NULL), 0);
		sem_await(&begun);
		sem_await(&begun);
		await_sleep(service);
	}
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(runs_watchdog_real_wake, nothing_wakes_where_nothing_runs)
{
	expect_quiet(64);
}

Test(runs_watchdog_real_wake, nothing_wakes_where_nothing_runs_on_a_pool_of_one)
{
	expect_quiet(1);
}

/* --------------------------------------------------- who is told of a task that is stuck */

enum { MANY = 35 };

static tw_pool *pool_with_stuck_task(void)
{
	tw_pool *pool;
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	expect_eq(tw_pool_create(&pool, &config), 0);
	expect_eq(tw_pool_submit(pool, blocks, NULL), 0);
	sem_await(&begun);
	return pool;
}

Test(runs_watchdog_real_wake, a_task_that_is_stuck_is_told_to_each_of_many_services_once)
{
	static struct told told[MANY];
	tw_service *services[MANY];
	tw_pool *pool = pool_with_stuck_task();
	for (int i = 0; i < MANY; i++)
		services[i] = open_watched(tw_pool_executor(pool), &told[i]);
	for (int i = 0; i < MANY; i++)
		await_told(&told[i], 1);
	await_sleep(services[MANY - 1]);
	for (int i = 0; i < MANY; i++) {
		expect_eq(told[i].times, 1);
		expect_eq(tw_service_destroy(services[i]), 0);
	}
	let_return();
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(runs_watchdog_real_wake, a_task_that_is_stuck_is_told_to_services_one_after_the_other)
{
	tw_pool *pool = pool_with_stuck_task();
	for (int i = 0; i < 3; i++) {
		struct told told = {0};
		tw_service *service = open_watched(tw_pool_executor(pool), &told);
		await_told(&told, 1);
		cr_assert(told.last.longest_fn == blocks);
		await_sleep(service);
		expect_eq(told.times, 1);
		expect_eq(tw_service_destroy(service), 0);
	}
	let_return();
	expect_eq(tw_pool_destroy(pool), 0);
}
