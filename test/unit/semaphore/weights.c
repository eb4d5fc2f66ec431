/* Acquires of several permits. The executor is a queue that the test empties. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/misuse_text.h"
#include "test/support/random.h"
#include "test/support/semaphore_suite.h"

TestSuite(semaphore_weights, .fini = close_left);

static tw_waiter wait_for(int32_t n, int number)
{
	tw_waiter waiter = {7};
	expect_eq(tw_semaphore_acquire_async(permits, n, note, &numbers[number], &waiter), 0);
	expect_ne(waiter.id, 0);
	return waiter;
}

static void expect_called(unsigned n, const int *who)
{
	queue_executor_run_all(&queue);
	expect_eq(called, n);
	for (unsigned i = 0; i < n; i++)
		expect_eq(order[i], who[i]);
}

Test(semaphore_weights, light_ones_start_when_a_heavy_thread_gives_up)
{
	open_with(3);
	acquire(2);
	wait_for(2, 1);
	expect_eq(tw_semaphore_acquire(permits, 3, MS), -ETIMEDOUT);
	wait_for(1, 2);
	expect_called(0, NULL);
	release(1);
	expect_called(1, (int[]){1});
	release(1);
	expect_called(2, (int[]){1, 2});
	release(3);
}

/* ---------------------------------------------------------------- naive model */

enum { STEPS = 600, ROUNDS = 30, MOST = 6 };

/* All that waits, in order; those that are handed have been called. */
static struct {
	int number;
	int32_t n;
	tw_waiter waiter;
} line[STEPS];
static unsigned in_line, expected_calls;
static int64_t capacity, held;
static uint64_t over_releases;
static int expected_order[STEPS], all_numbers[STEPS], seen[STEPS];
static unsigned seen_n;

static void see(void *arg)
{
	seen[seen_n++] = *(int *)arg;
}

static void serve_line(void)
{
	while (in_line && held + line[0].n <= capacity) {
		held += line[0].n;
		expected_order[expected_calls++] = line[0].number;
		memmove(&line[0], &line[1], --in_line * sizeof(line[0]));
	}
}

static void join_line(int number, int32_t n)
{
	all_numbers[number] = number;
	tw_waiter waiter;
	int r = tw_semaphore_acquire_async(permits, n, see, &all_numbers[number], &waiter);
	if (n > 1 && n > capacity) {
		expect_eq(r, -EINVAL);
		return;
	}
	expect_eq(r, 0);
	line[in_line].number = number;
	line[in_line].n = n;
	line[in_line++].waiter = waiter;
	serve_line();
}

static void model_step(uint64_t *seed, int number)
{
	int32_t n = 1 + (int32_t)random_below(seed, MOST);
	switch (random_below(seed, 8)) {
	case 0 ... 2:
		join_line(number, n);
		break;
	case 3 ... 4:
		expect_eq(tw_semaphore_release(permits, n), n <= held ? 0 : -EOVERFLOW);
		over_releases += n > held;
		held -= n <= held ? n : 0;
		break;
	case 5:
		if (in_line) {
			unsigned at = (unsigned)random_below(seed, in_line);
			expect_eq(tw_semaphore_cancel(permits, line[at].waiter), TW_CANCELLED);
			memmove(&line[at], &line[at + 1], (--in_line - at) * sizeof(line[0]));
		}
		break;
	case 6:
		if (n > 1 && n > capacity)
			break;
		bool fits = !in_line && held + n <= capacity;
		expect_eq(tw_semaphore_acquire(permits, n, 0), fits ? 0 : -EAGAIN);
		held += fits ? n : 0;
		break;
	default:
		capacity = (int64_t)random_below(seed, 2 * MOST);
		expect_eq(tw_semaphore_set_capacity(permits, (int32_t)capacity), 0);
		break;
	}
	serve_line();
	queue_executor_run_all(&queue);
}

static void model_check(void)
{
	struct tw_semaphore_stats stats = gauges();
	expect_eq(stats.held, (uint64_t)held);
	expect_eq(stats.capacity, (uint64_t)capacity);
	expect_eq(stats.waiters, in_line);
	expect_eq(stats.debt, (uint64_t)(held > capacity ? held - capacity : 0));
	expect_eq(stats.over_releases, over_releases);
	expect_eq(seen_n, expected_calls);
	if (seen_n)
		expect_eq(seen[seen_n - 1], expected_order[seen_n - 1]);
}

Test(semaphore_weights, random_programs_agree_with_a_naive_line, .timeout = 60)
{
	const char *given = getenv("SEMAPHORE_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	for (int round = 0; round < ROUNDS; round++, first++) {
		uint64_t seed = first;
		cr_log_info("SEMAPHORE_SEED=%llu", (unsigned long long)first);
		capacity = (int64_t)random_below(&seed, MOST);
		held = 0;
		over_releases = 0;
		in_line = expected_calls = seen_n = 0;
		open_with((int32_t)capacity);
		for (int i = 0; i < STEPS; i++) {
			model_step(&seed, i);
			model_check();
		}
		capacity = MOST * STEPS;
		expect_eq(tw_semaphore_set_capacity(permits, (int32_t)capacity), 0);
		serve_line();
		queue_executor_run_all(&queue);
		model_check();
		if (held)
			expect_eq(tw_semaphore_release(permits, (int32_t)held), 0);
		expect_eq(gauges().available, (uint64_t)capacity);
		close_all();
	}
}
