/*
 * The limiter's line against a naive one: who is next, and what it costs to leave. On a clock moved
 * by hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "executor/limiter/internal.h"
#include "test/support/big.h"
#include "test/support/limited.h"

static struct limited home;

#define LOAD(number_, ...) ((struct load){.home = &home, .number = (number_), __VA_ARGS__})

static void open_started(struct tw_limiter_config config)
{
	limited_open(&home, &config);
	expect_eq(tw_limiter_resume(home.limiter), 0);
}

static void complete(struct load *load)
{
	expect_eq(tw_job_complete(home.limiter, load->job, 0, NULL), 0);
	limited_pump(&home);
}

/* --------------------------------------------------------------------- order */

enum { LOADS = 300, STEPS = 1500 };

static struct load loads[LOADS];
static int priorities[LOADS];
static bool in_line[LOADS];
static unsigned came;
static int running;

static bool is_ahead(unsigned a, unsigned b)
{
	return priorities[a] > priorities[b] || (priorities[a] == priorities[b] && a < b);
}

static int naive_first(void)
{
	int first = -1;
	for (unsigned i = 0; i < came; i++)
		if (in_line[i] && (first < 0 || is_ahead(i, (unsigned)first)))
			first = (int)i;
	return first;
}

/* The one permit goes to whose turn it is. */
static void follow(void)
{
	if (running >= 0)
		return;
	running = naive_first();
	if (running < 0)
		return;
	in_line[running] = false;
	expect_eq(home.limiter->permits.running, 1);
	expect_eq(loads[running].starts, 1);
}

static void come(uint64_t *seed, int spread)
{
	if (came == LOADS)
		return;
	struct load *load = &loads[came];
	*load = LOAD((int)came, .held = true);
	struct tw_limiter_task task = load_task(load);
	task.priority = priorities[came] =
	    (int)random_below(seed, (uint64_t)(2 * spread + 1)) - spread;
	in_line[came++] = true;
	load_submit_task(load, &task);
	limited_pump(&home);
}

static void leave(uint64_t *seed)
{
	unsigned i = (unsigned)random_below(seed, came);
	if (!in_line[i])
		return;
	uint64_t pending = limited_stats(&home).pending;
	expect_eq(tw_job_cancel(home.limiter, loads[i].job), TW_CANCELLED);
	in_line[i] = false;
	expect_eq(limited_stats(&home).pending, pending - 1);
	expect_settled(&loads[i], TW_JOB_STATUS_CANCELLED, -ECANCELED);
}

static void finish(void)
{
	struct load *load = &loads[running];
	running = -1;
	complete(load);
}

static void check_order(uint64_t first_seed, int spread)
{
	uint64_t seed = first_seed;
	struct tw_limiter_config config = limited_config(1);
	came = 0;
	running = -1;
	open_started(config);
	for (int i = 0; i < STEPS; i++) {
		uint64_t what = random_below(&seed, 10);
		if (what < 5)
			come(&seed, spread);
		else if (what < 7 && came)
			leave(&seed);
		else if (what < 9)
			limited_advance(&home, random_below(&seed, 5) * MS);
		else if (running >= 0)
			finish();
		follow();
	}
	while (running >= 0) {
		finish();
		follow();
	}
	limited_close(&home);
}

Test(limiter_job_queue, order_is_that_of_a_naive_one, .timeout = 120)
{
	const char *given = getenv("LIMITER_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
	for (int round = 0; round < 4; round++, seed++) {
		check_order(seed, 2);
		check_order(seed, 100);
	}
}

/* ---------------------------------------------------------------------- cost */

enum { MANY = 20000 };

/*
 * Whatever the order in which they leave, the rest stays as it is: there is no other structure than
 * a list for each priority.
 */
Test(limiter_job_queue, leaving_touches_only_neighbours)
{
	struct load first = LOAD(0, .held = true), *many = big_array(MANY, sizeof *many);
	open_started(limited_config(1));
	load_submit(&first);
	limited_pump(&home);
	for (int i = 0; i < MANY; i++) {
		many[i] = LOAD(i);
		struct tw_limiter_task task = load_task(&many[i]);
		task.priority = i % 3;
		load_submit_task(&many[i], &task);
	}
	const struct tw__job_queue *line = &home.limiter->queue;
	expect_eq(line->count, MANY);
	expect_le(line->heap.count, 4); /* three of them, and that of the one that runs */
	expect_le(line->levels_n, 4);
	for (int i = 0; i < MANY; i++) {
		int next = (int)((unsigned)i * 7919u % MANY);
		expect_eq(tw_job_cancel(home.limiter, many[next].job), TW_CANCELLED);
		expect_eq(many[next].dones, 1);
		expect_eq(many[next].releases, 1);
		expect_eq(limited_stats(&home).pending, MANY - 1 - i);
	}
	complete(&first);
	limited_close(&home);
	free(many);
}

Test(limiter_job_queue, room_and_memory_of_a_cancelled_one_are_free_at_once)
{
	struct load first = LOAD(0, .held = true), low = LOAD(1), load;
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 2;
	open_started(config);
	load_submit(&first);
	limited_pump(&home);
	load_submit(&low);
	for (int i = 0; i < MANY; i++) {
		load = LOAD(2);
		struct tw_limiter_task task = load_task(&load);
		task.priority = i % 7 - 3;
		load_submit_task(&load, &task); /* max_pending leaves room for one */
		expect_eq(tw_job_cancel(home.limiter, load.job), TW_CANCELLED);
		expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_GONE);
	}
	expect_le(home.limiter->nodes.slabs, 1);
	expect_le(home.limiter->queue.heap.count, 7);
	complete(&first);
	expect_settled(&low, TW_JOB_STATUS_SUCCEEDED, 0);
	limited_close(&home);
}
