/* The limiter with threads that wait, and on a pool. No test waits for time to pass. */
#include <errno.h>
#include <sched.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_threads, .timeout = 60);

struct waiter {
	struct load *load;
	_Atomic bool begun;
	int answer;
	struct tw_job_result result;
};

static void *wait_for_job(void *arg)
{
	struct waiter *self = arg;
	atomic_store(&self->begun, true);
	self->answer = tw_job_wait(home.limiter, self->load->job, 50 * SECOND, &self->result);
	return NULL;
}

static void *wait_idle(void *arg)
{
	struct waiter *self = arg;
	atomic_store(&self->begun, true);
	self->answer = tw_limiter_wait_idle(home.limiter, 50 * SECOND);
	return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *), struct waiter *waiter)
{
	expect_eq(pthread_create(thread, NULL, body, waiter), 0);
	while (!atomic_load(&waiter->begun))
		sched_yield();
}

Test(limiter_threads, submit_waits_no_longer_than_asked)
{
	struct load first = LOAD(1), second = LOAD(2);
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 1;
	limited_open(&home, &config);
	load_submit(&first);
	struct tw_limiter_task task = load_task(&second);
	task.wait_ns = 2 * MS;
	uint64_t start_ns = tw_clock_now(tw_clock_monotonic());
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), -ETIMEDOUT);
	expect_ge(tw_clock_now(tw_clock_monotonic()) - start_ns, 2 * MS);
	tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
	close_all();
}

Test(limiter_threads, waits_for_a_job_and_for_idle_return_with_it)
{
	struct load load = LOAD(1, .held = true);
	open_started(1);
	load_submit(&load);
	limited_pump(&home);
	struct waiter waiters[2] = {{.load = &load}, {.load = &load}};
	pthread_t threads[2];
	start(&threads[0], wait_for_job, &waiters[0]);
	start(&threads[1], wait_idle, &waiters[1]);
	complete(&load, 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	cr_assert(waiters[0].answer == 0 || waiters[0].answer == TW_GONE); /* if it came too late */
	if (waiters[0].answer == 0)
		expect_eq(waiters[0].result.value, &load);
	expect_eq(waiters[1].answer, 0);
	close_all();
}

static int count_up(void *arg, struct tw_job_run *run)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	return 0;
}

Test(limiter_threads, on_the_services_own_pool_and_on_its_tick_thread)
{
	for (int inline_too = 0; inline_too < 2; inline_too++) {
		tw_service *service;
		tw_limiter *limiter;
		atomic_int ran = 0;
		struct tw_service_config cfg = {
		    .size = sizeof(cfg), .executor = inline_too ? tw_executor_inline() : NULL};
		struct tw_limiter_config config = limited_config(2);
		expect_eq(tw_service_create(&service, &cfg), 0);
		expect_eq(tw_limiter_create(&limiter, service, &config), 0);
		expect_eq(tw_limiter_set_paused(limiter, false), 0);
		for (int i = 0; i < 1000; i++)
			expect_eq(tw_limiter_submit(limiter, count_up, &ran, NULL), 0);
		expect_eq(tw_limiter_wait_idle(limiter, 50 * SECOND), 0);
		expect_eq(atomic_load(&ran), 1000);
		expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, TW_FOREVER), 0);
		expect_eq(tw_limiter_destroy(limiter), 0);
		expect_eq(tw_service_destroy(service), 0);
	}
}

/* A worker may still have to do with it for a moment. */
Test(limiter_threads, a_kept_job_whose_result_is_taken_is_gone_at_once)
{
	tw_service *service;
	tw_limiter *limiter;
	struct tw_limiter_config config = {.size = sizeof(config), .max_concurrency = 2};
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	for (int i = 0; i < 2000; i++) {
		struct tw_limiter_task task = {
		    .size = sizeof(task), .fn = job_succeeds, .flags = TW_LIMITER_TASK_KEEP};
		tw_job job;
		expect_eq(tw_limiter_submit_task(limiter, &task, &job), 0);
		expect_eq(tw_job_wait(limiter, job, TW_FOREVER, NULL), 0);
		expect_eq(tw_job_state(limiter, job), TW_JOB_STATE_GONE);
		expect_eq(tw_job_wait(limiter, job, 0, NULL), TW_GONE);
	}
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
}

enum { THREADS = 3, EACH = 3000 };

static tw_limiter *threaded;
static atomic_int ran, inside, most;

static int count(void *arg, struct tw_job_run *run)
{
	int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
	}
	atomic_fetch_add(&ran, 1);
	atomic_fetch_sub(&inside, 1);
	return 0;
}

static void *submit_many(void *arg)
{
	int *failed = arg;
	for (int i = 0; i < EACH; i++)
		*failed += tw_limiter_submit(threaded, count, NULL, NULL) != 0;
	return NULL;
}

Test(limiter_threads, none_is_lost_or_run_twice_whoever_brings_them)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2};
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (uint32_t limit = 1; limit <= 3; limit++) {
		struct tw_limiter_config config = limited_config(limit);
		pthread_t threads[THREADS];
		int failed[THREADS] = {0};
		atomic_store(&ran, 0);
		atomic_store(&most, 0);
		expect_eq(tw_limiter_create(&threaded, service, &config), 0);
		expect_eq(tw_limiter_set_paused(threaded, false), 0);
		for (int i = 0; i < THREADS; i++)
			expect_eq(pthread_create(&threads[i], NULL, submit_many, &failed[i]), 0);
		for (int i = 0; i < THREADS; i++) {
			expect_eq(pthread_join(threads[i], NULL), 0);
			expect_eq(failed[i], 0);
		}
		expect_eq(tw_limiter_wait_idle(threaded, TW_FOREVER), 0);
		expect_eq(atomic_load(&ran), THREADS * EACH);
		expect_le(atomic_load(&most), limit);
		struct tw_limiter_stats stats = {.size = sizeof stats};
		expect_eq(tw_limiter_stats(threaded, &stats), 0);
		expect_eq(stats.succeeded, THREADS * EACH);
		expect_eq(tw_limiter_destroy(threaded), 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}
