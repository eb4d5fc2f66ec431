/*
 * [ITEMS=n] pool SECONDS [SEED]: a shared pool under fire; before it, n items from four submitters
 * to four workers.
 *
 * Threads submit plain tasks, with and without waiting for room, while others make services on the
 * same pool, let their timers run, and destroy them; in the middle of it the main thread closes the
 * pool, in a random mode, and makes the next one. Each accepted task runs or is reported as
 * dropped, exactly once. No timer is lost with its service.
 *
 * Some tasks and timers block, so the pools grow, and shrink again: within less than a millisecond
 * here. Now and then a pool grows and shrinks many times in a row, with nothing else going on.
 */
#include <limits.h>
#include <semaphore.h>

#include "executor/pool/parts.h"
#include "test/stress/stress.h"

enum {
	SUBMITTERS = 2,
	OWNERS = 2,
	SERVICE_TIMERS = 100,
	FLOOD = 10000,
	FLOOD_THREADS = 4,
	BREATHS = 100,
	BLOCKS_ONE_IN = 64
};

static tw_pool *pool;
static atomic_ulong accepted, ran, told, timers, fired, services, grown;
static atomic_bool enough;

static void run_task(void *arg)
{
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static void run_blocking_task(void *arg)
{
	usleep(300);
	run_task(arg);
}

static void run_timer(void *arg)
{
	if (arg)
		usleep(300);
	atomic_fetch_add_explicit(&fired, 1, memory_order_relaxed);
}

static void tell(void *arg, tw_fn *fn, void *task_arg)
{
	if (fn != run_task && fn != run_blocking_task)
		violation("a dropped task that nobody submitted", 0);
	atomic_fetch_add(&told, 1);
}

static void submit(unsigned number, uint64_t seed)
{
	static const uint64_t timeouts_ns[] = {0, 20000, TW_FOREVER};
	while (!atomic_load(&enough)) {
		tw_fn *fn = random_below(&seed, BLOCKS_ONE_IN) ? run_task : run_blocking_task;
		int r = tw_pool_submit_wait(pool, fn, NULL, timeouts_ns[random_below(&seed, 3)]);
		if (r == -ESHUTDOWN)
			return;
		if (r == 0)
			atomic_fetch_add(&accepted, 1);
		else if (r != -EAGAIN && r != -ETIMEDOUT)
			violation("submit", r);
	}
}

/* False: the pool is closed. */
static bool own_one(uint64_t *seed)
{
	tw_service *service;
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .tick_ns = 50000, .executor = tw_pool_executor(pool)};
	int r = tw_service_create(&service, &cfg);
	if (r == -ESHUTDOWN)
		return false;
	if (r)
		violation("create", r);
	for (int i = 0; i < SERVICE_TIMERS; i++)
		if ((r = tw_schedule(service, random_below(seed, 300000), run_timer,
				     random_below(seed, BLOCKS_ONE_IN) ? NULL : service, NULL)))
			violation("schedule", r);
	wanted("close", tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	wanted("destroy", tw_service_destroy(service), 0);
	atomic_fetch_add(&timers, SERVICE_TIMERS);
	atomic_fetch_add(&services, 1);
	return true;
}

static void own(unsigned number, uint64_t seed)
{
	while (own_one(&seed) && !atomic_load(&enough)) {
	}
}

static long long missing(void)
{
	return (long long)(atomic_load(&accepted) - atomic_load(&ran) - atomic_load(&told));
}

/* Nobody submits any more: what was accepted runs, with no further help from outside. */
static void await_all_run(void)
{
	atomic_store(&enough, true);
	join_all_threads();
	AWAIT(missing() == 0, "tasks wait, and no worker comes");
}

/*
 * Submitters and workers at full speed: workers are called, and go to sleep, as often as can be.
 * Nobody else comes to wake a worker that sleeps through a call, but a submitter's wait for room
 * ends, and so does the wait for what was accepted.
 */
static atomic_long flood_items; /* still to be submitted */
static uint64_t flood_end_ns;

static void flood_submit(unsigned number, uint64_t seed)
{
	while (stress_now_ns() < flood_end_ns && atomic_fetch_sub(&flood_items, FLOOD) > 0) {
		for (int i = 0; i < FLOOD; i++)
			wanted("flood", tw_pool_submit_wait(pool, run_task, NULL, 20 * TW_SECOND),
			       0);
		atomic_fetch_add(&accepted, FLOOD);
	}
}

/* As many submitters as workers. */
static void flood(unsigned threads, long items, uint64_t time_ns, uint64_t *seed)
{
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = threads, .max_workers = threads};
	wanted("create", tw_pool_create(&pool, &cfg), 0);
	atomic_store(&flood_items, items);
	flood_end_ns = stress_now_ns() + time_ns;
	start_threads(threads, flood_submit, seed);
	await_all_run();
	wanted("destroy", tw_pool_destroy(pool), 0);
}

static void pass(void *permits)
{
	while (sem_wait(permits) != 0) {
	}
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static struct tw_pool_stats stats_now(void)
{
	struct tw_pool_stats stats = {.size = sizeof stats};
	wanted("stats", tw_pool_stats(pool, &stats), 0);
	return stats;
}

/* Three tasks block the one worker, so two more come; let go, they end. */
static void breathe(void)
{
	sem_t permits;
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 1, .max_workers = 4};
	sem_init(&permits, 0, 0);
	int r = tw_pool_create(&pool, &cfg);
	for (int i = 0; r == 0 && i < BREATHS; i++) {
		for (int n = 0; r == 0 && n < 3; n++, atomic_fetch_add(&accepted, 1))
			r = tw_pool_submit(pool, pass, &permits);
		while (stats_now().running < 3)
			sched_yield();
		for (int n = 0; n < 3; n++)
			sem_post(&permits);
		while (stats_now().workers > 1)
			sched_yield();
	}
	atomic_fetch_add(&grown, stats_now().grown);
	if (r || (r = tw_pool_destroy(pool)))
		violation("breathe", r);
}

static void round_of(uint64_t *seed)
{
	if (atomic_load(&stress_rounds) == 0 && getenv("ITEMS"))
		flood(FLOOD_THREADS, atol(getenv("ITEMS")), TW_FOREVER / 2, seed);
	if (atomic_load(&stress_rounds) % 100 == 0) {
		flood(1, LONG_MAX, TW_SECOND / 4, seed);
		flood(FLOOD_THREADS, LONG_MAX, TW_SECOND / 4, seed);
		breathe();
	}
	struct tw_pool_config cfg = {.size = sizeof cfg,
				     .workers = 1 + (uint32_t)random_below(seed, 3),
				     .queue = 16u << random_below(seed, 4)};
	cfg.max_workers = cfg.workers + (uint32_t)random_below(seed, 8);
	wanted("create", tw_pool_create(&pool, &cfg), 0);
	atomic_store(&enough, false);
	start_threads(OWNERS, own, seed);
	start_threads(SUBMITTERS, submit, seed);
	usleep((useconds_t)random_below(seed, 30000));
	bool quietly = random_below(seed, 2);
	if (quietly)
		await_all_run();
	enum tw_close_mode mode = random_below(seed, 2) ? TW_CLOSE_DRAIN : TW_CLOSE_DROP;
	int r = tw_pool_close(pool, mode, tell, NULL);
	atomic_store(&enough, true);
	if (!quietly)
		join_threads(OWNERS);
	if (r == -EBUSY)
		r = tw_pool_close(pool, mode, tell, NULL);
	join_all_threads(); /* submitters may have met the close */
	wanted("close", r, 0);
	atomic_fetch_add(&grown, stats_now().grown);
	wanted("destroy", tw_pool_destroy(pool), 0);
	wanted("tasks lost or run twice", missing(), 0);
	wanted("timers lost or run twice", (long long)(atomic_load(&timers) - atomic_load(&fired)),
	       0);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %lu services with %lu timers, %lu tasks, %lu of them dropped, %lu "
	       "threads grown\n",
	       word, stress_rounds, services, timers, accepted, told, grown);
}

int main(int argc, char **argv)
{
	tw__pool_times.look_ns = 100000;
	tw__pool_times.blocked_ns = 500000;
	tw__pool_times.idle_ns = 200000;
	return stress_play(argc, argv, round_of, report);
}
