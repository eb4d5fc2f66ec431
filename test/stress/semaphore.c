/*
 * semaphore SECONDS [SEED]: threads and functions share permits, one or several at a time.
 *
 * Threads try to take permits with and without a timeout, and give them back whole or in parts.
 * Functions wait for permits, and some are cancelled while they wait or while they are handed over.
 * In some rounds the capacity changes. Without such changes the permits in use never exceed the
 * capacity. In all rounds the ledger balances at the end: each permit that was taken was given
 * back, each function ran or was cancelled, and exactly the capacity is available again.
 */
#include "test/stress/stress.h"

enum { THREADS = 4, STEPS = 2000, MOST = 8, FUNCTIONS = 8 };

static tw_service *service;
static tw_semaphore *permits;
static atomic_long out, ran, started, cancelled, operations;
static bool resizing, by_one; /* the round: its capacity changes; it takes one permit at a time */
static int32_t capacity;

static void give_back(int32_t n, int32_t part)
{
	long now = atomic_fetch_add(&out, n) + n;
	if (!resizing && now > capacity)
		violation("more permits out than there are", now);
	atomic_fetch_sub(&out, n);
	if (part && part < n) {
		wanted("release of a part", tw_semaphore_release(permits, part), 0);
		n -= part;
	}
	wanted("release", tw_semaphore_release(permits, n), 0);
}

static void run_function(void *arg)
{
	atomic_fetch_add(&ran, 1);
	give_back((int32_t)(intptr_t)arg, 0);
}

/* Above the capacity of this moment, a request is refused. */
static bool is_too_many(int answer, int32_t n)
{
	return answer == -EINVAL && resizing && n > 1;
}

static void use_functions(uint64_t *seed, int32_t n)
{
	tw_waiter waiters[FUNCTIONS];
	int count = random_percent(seed, 20) ? FUNCTIONS : 1, accepted = 0;
	for (int i = 0; i < count; i++) {
		int r = tw_semaphore_acquire_async(permits, n, run_function, (void *)(intptr_t)n,
						   &waiters[accepted]);
		if (is_too_many(r, n))
			continue;
		wanted("acquire_async", r, 0);
		atomic_fetch_add(&started, 1);
		accepted++;
	}
	for (int i = 0; i < accepted; i++)
		if (random_percent(seed, 50) &&
		    tw_semaphore_cancel(permits, waiters[i]) == TW_CANCELLED)
			atomic_fetch_add(&cancelled, 1);
}

/* While the capacity changes, nobody waits without limit: it may stay below n. */
static void use_thread(uint64_t *seed, int32_t n)
{
	static const uint64_t timeouts_ns[] = {0, 0, 1000, 20000, TW_FOREVER};
	int r = tw_semaphore_acquire(permits, n, timeouts_ns[random_below(seed, resizing ? 4 : 5)]);
	if (r == 0)
		give_back(n, (int32_t)random_below(seed, 3));
	else if (r != -EAGAIN && r != -ETIMEDOUT && !is_too_many(r, n))
		violation("acquire", r);
}

static void work(unsigned number, uint64_t seed)
{
	for (int i = 0; i < STEPS; i++) {
		int32_t n = by_one ? 1 : 1 + (int32_t)random_below(&seed, (uint64_t)capacity);
		if (resizing && random_percent(&seed, 5))
			wanted("set_capacity",
			       tw_semaphore_set_capacity(permits,
							 (int32_t)random_below(&seed, MOST + 1)),
			       0);
		if (random_percent(&seed, 20))
			use_functions(&seed, n);
		else
			use_thread(&seed, n);
	}
	atomic_fetch_add(&operations, STEPS);
}

static bool nobody_waits(struct tw_semaphore_stats *stats)
{
	wanted("stats", tw_semaphore_stats(permits, stats), 0);
	wanted("the ledger", (long long)(stats->capacity + stats->debt),
	       (long long)(stats->available + stats->held));
	return !stats->waiters && !stats->handed;
}

static void await_functions(void)
{
	struct tw_semaphore_stats stats = {.size = sizeof stats};
	wanted("set_capacity at the end", tw_semaphore_set_capacity(permits, capacity), 0);
	AWAIT(nobody_waits(&stats), "functions wait forever");
	wanted("held at the end", (long long)stats.held, 0);
	wanted("available at the end", (long long)stats.available, capacity);
	wanted("over-releases", (long long)stats.over_releases, 0);
	wanted("functions that ran or were cancelled", atomic_load(&ran) + atomic_load(&cancelled),
	       atomic_load(&started));
	wanted("release of nothing", tw_semaphore_release(permits, 1), -EOVERFLOW);
}

static void round_of(uint64_t *seed)
{
	capacity = 1 + (int32_t)random_below(seed, MOST);
	resizing = random_percent(seed, 30);
	by_one = random_percent(seed, 50);
	wanted("create", tw_semaphore_create(&permits, service, NULL, capacity), 0);
	start_threads(THREADS, work, seed);
	join_all_threads();
	await_functions();
	wanted("destroy", tw_semaphore_destroy(permits), 0);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %ld acquires, %ld functions, %ld of them cancelled\n", word,
	       stress_rounds, operations, started, cancelled);
}

int main(int argc, char **argv)
{
	service = open_service((struct tw_service_config){.workers = 2});
	stress_play(argc, argv, round_of, report);
	wanted("service destroy", tw_service_destroy(service), 0);
	return 0;
}
