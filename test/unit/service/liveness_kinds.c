/*
 * Every kind of user code that blocks is counted by tw_service_liveness, with its function, its
 * argument, its name and its date, and is listed by tw_service_dump. The blocked function runs on a
 * pool's worker; the test's thread moves the clock and drives the service, so nothing depends on
 * real time.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/liveness.h"
#include "test/support/user_code.h"

static sem_t begun, go_on;
static struct rig rig;
static tw_pool *pool;

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void open_on_pool(void)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	expect_eq(tw_pool_create(&pool, &config), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_pool_executor(pool);
	rig_open(&rig, &cfg);
}

static void close_on_pool(void)
{
	expect_in_fini();
	rig_close(&rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

TestSuite(service_liveness_kinds, .init = open_on_pool, .fini = close_on_pool, .timeout = 60);

/* --------------------------------------------------------------- user functions */

static void block(void)
{
	sem_post(&begun);
	sem_await(&go_on);
}

/* ---------------------------------------------------------------------- looks */

static void expect_listed(const struct tw_service_liveness *seen, const char *name)
{
	char *dump = dump_of(rig.service), line[64];
	cr_assert(strstr(dump, "\nrunning for ") != NULL, "%s", dump);
	snprintf(line, sizeof line, ", thread %u, ", seen->longest_thread);
	cr_assert(strstr(dump, line) != NULL, "%s", dump);
	snprintf(line, sizeof line, ", \"%s\", fn ", name ? name : "");
	cr_assert((strstr(dump, line) != NULL) == (name != NULL), "%s", dump);
	free(dump);
}

static bool is_seen(const struct tw_service_liveness *seen, tw_fn *fn, const char *name)
{
	bool is_named = name ? seen->longest_name && strcmp(seen->longest_name, name) == 0
			     : !seen->longest_name;
	return seen->running == 1 && seen->longest_fn == fn && seen->longest_arg == rig.service &&
	       is_named && seen->longest_thread && seen->longest_thread != (uint32_t)gettid();
}

static void await_running(uint64_t running)
{
	while (liveness_of(rig.service).running != running)
		usleep(100);
}

/* One user function blocks: liveness shows it immediately, and for as long as it lasts. */
static void expect_seen(tw_fn *fn, const char *name)
{
	sem_await(&begun);
	struct tw_service_liveness seen = liveness_of(rig.service);
	cr_assert(is_seen(&seen, fn, name));
	uint64_t since_ns = seen.longest_since_ns;
	expect_le(since_ns, rig_now(&rig));
	rig_advance(&rig, 10 * SECOND);
	seen = liveness_of(rig.service);
	cr_assert(is_seen(&seen, fn, name));
	expect_eq(seen.longest_since_ns, since_ns);
	expect_eq(seen.longest_ns, rig_now(&rig) - since_ns);
	expect_listed(&seen, name);
	sem_post(&go_on);
	await_running(0);
	cr_assert(!liveness_of(rig.service).longest_fn && !liveness_of(rig.service).longest_name);
}

Test(service_liveness_kinds, are_seen_while_they_run)
{
	user_code_open(rig.service, block, NULL);
	for (int i = 0; i < USER_CODES; i++) {
		user_codes[i].begin();
		rig_advance(&rig, 2 * MS);
		expect_seen(user_codes[i].fn, user_codes[i].name);
		user_code_end();
	}
}

static tw_limiter *limiter;
static tw_job cancelled;

static int job_until_cancelled(void *arg, struct tw_job_run *run)
{
	while (tw_job_state(limiter, run->job) == TW_JOB_STATE_RUNNING)
		usleep(100);
	return 0;
}

static void stop_blocks(void *arg, tw_job job, enum tw_job_status why)
{
	block();
}

static void *cancel_job(void *arg)
{
	return (void *)(intptr_t)tw_job_cancel(limiter, cancelled);
}

/* The job runs on until it is cancelled; then `stop` blocks, on the thread that cancels it. */
Test(service_liveness_kinds, stop_of_a_job_is_seen)
{
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = job_until_cancelled,
				       .arg = rig.service,
				       .stop = stop_blocks};
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	pthread_t canceller;
	expect_eq(tw_limiter_create(&limiter, rig.service, &config), 0);
	expect_eq(tw_limiter_submit_task(limiter, &task, &cancelled), 0);
	await_running(1);
	expect_eq(pthread_create(&canceller, NULL, cancel_job, NULL), 0);
	sem_await(&begun);
	await_running(1); /* the job sees the cancel and returns; its stop runs on */
	sem_post(&begun);
	expect_seen((tw_fn *)(void (*)(void))stop_blocks, NULL);
	pthread_join(canceller, NULL);
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
}

static void blocks(void *arg)
{
	block();
}

/*
 * A task of the pool is nobody's in particular: each service that uses the pool sees it. Its age is
 * that of real time.
 */
Test(service_liveness_kinds, pool_task_is_seen_by_each_service_of_the_pool)
{
	struct rig second, other;
	struct tw_service_config cfg = rig_config();
	rig_open(&other, NULL);
	cfg.executor = tw_pool_executor(pool);
	rig_open(&second, &cfg);
	expect_eq(tw_pool_submit(pool, blocks, rig.service), 0);
	sem_await(&begun);
	struct tw_service_liveness seen[] = {liveness_of(rig.service), liveness_of(second.service)};
	cr_assert(is_seen(&seen[0], blocks, NULL) && is_seen(&seen[1], blocks, NULL));
	expect_eq(liveness_of(other.service).running, 0);
	sem_post(&go_on);
	await_running(0);
	rig_close(&second);
	rig_close(&other);
}
