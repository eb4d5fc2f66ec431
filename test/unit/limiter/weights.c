/* Jobs that take several permits. On a clock moved by hand. */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"
#include "test/support/random.h"

TestSuite(limiter_weights, .fini = close_left);

static const struct script heavy_ones[] = {
    {"light jobs start when the heavy one before them leaves the line",
     {{"given limit=3; submit 0 held permits=2; submit 1 permits=2; submit 2", "start 0"},
      {"cancel 1", "1 cancelled, CANCELLED, start 2, 2 ok"},
      {"submit 3 permits=3 queue=5; submit 4; advance 4", ""},
      {"advance 2", "@5 start 4, 4 ok, 3 timed out"},
      {"end 0", "@6 0 ok"}}},
    {"retries take the permits again",
     {{"given limit=5; submit 0 held permits=3 retries=1 delay=2", "start 0"},
      {"end 0 EIO", ""},
      {"stats permits; advance 3; stats permits", "permits=0, @2 start 0, @3 permits=3"},
      {"end 0", "0 ok"}}},
    {"one above the limit is refused",
     {{"given limit=4; submit 0 permits=5; misuse; submit 0 permits=4294967295; stats added",
       "EINVAL, tw_limiter_submit_task: tw_limiter_task.permits has a value that the header does "
       "not allow, EINVAL, added=0"},
      {"limit 5; submit 0 permits=5", "start 0, 0 ok"}}},
};

Test(limiter_weights, heavy_ones)
{
	PLAY(&limiter_stage, NULL, heavy_ones);
}

/* ---------------------------------------------------------------- naive model */

enum { LOADS = 60, MILLISECONDS = 400, ROUNDS = 25, NEVER = -1 };

static struct naive {
	uint32_t n, took;
	int priority;
	int queued_at, ends_at; /* in steps, in ms; NEVER: not in line; not running */
	bool started;
} jobs[LOADS];
static struct load loads[LOADS];
static unsigned submitted;
static uint32_t limit, used;
static uint64_t priorities; /* as many as a program uses */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Higher priority first, then the one that came first. */
static struct naive *naive_first(void)
{
	struct naive *first = NULL;
	for (unsigned i = 0; i < submitted; i++)
		if (jobs[i].queued_at != NEVER && (!first || jobs[i].priority > first->priority))
			first = &jobs[i];
	return first;
}

static void naive_start(int now_ms, uint64_t *takes_ms)
{
	struct naive *job;
	while ((job = naive_first()) && used + least(job->n, limit) <= limit) {
		job->took = least(job->n, limit);
		used += job->took;
		job->queued_at = NEVER;
		job->started = true;
		job->ends_at = now_ms + (int)takes_ms[job - jobs];
	}
}

static void naive_end(int now_ms)
{
	for (unsigned i = 0; i < submitted; i++)
		if (jobs[i].ends_at == now_ms) {
			jobs[i].ends_at = NEVER;
			used -= jobs[i].took;
		}
}

static void submit_random(uint64_t *seed, uint64_t *takes_ms, int step)
{
	if (submitted == LOADS)
		return;
	struct load *load = &loads[submitted];
	struct naive *job = &jobs[submitted];
	takes_ms[submitted] = 1 + random_below(seed, 12);
	*load = (struct load){
	    .home = &home, .number = (int)submitted, .takes_ns = takes_ms[submitted] * MS};
	*job = (struct naive){.n = 1 + (uint32_t)random_below(seed, limit),
			      .priority = (int)random_below(seed, priorities),
			      .queued_at = step,
			      .ends_at = NEVER};
	struct tw_limiter_task task = load_task(load);
	task.permits = job->n;
	task.priority = job->priority;
	load_submit_task(load, &task);
	submitted++;
}

static void cancel_random(uint64_t *seed)
{
	if (!submitted)
		return;
	unsigned i = (unsigned)random_below(seed, submitted);
	if (jobs[i].queued_at == NEVER)
		return;
	jobs[i].queued_at = NEVER;
	expect_eq(tw_job_cancel(home.limiter, loads[i].job), TW_CANCELLED);
}

static void compare(void)
{
	uint32_t running = 0;
	for (unsigned i = 0; i < submitted; i++) {
		expect_eq(loads[i].starts, jobs[i].started);
		running += jobs[i].ends_at != NEVER;
	}
	struct tw_limiter_stats stats = limited_stats(&home);
	expect_eq(stats.permits, used);
	expect_eq(stats.running, running);
	expect_eq(stats.debt, used > limit ? used - limit : 0);
}

static void run_random(uint64_t seed)
{
	uint64_t takes_ms[LOADS];
	submitted = used = 0;
	limit = 1 + (uint32_t)random_below(&seed, 6);
	priorities = random_percent(&seed, 50) ? 2 : 200;
	open_started(limit);
	for (int ms = 0; ms < MILLISECONDS; ms++) {
		switch (random_below(&seed, 8)) {
		case 0 ... 2:
			submit_random(&seed, takes_ms, ms);
			break;
		case 3:
			cancel_random(&seed);
			break;
		case 4:
			limit = 1 + (uint32_t)random_below(&seed, 6);
			expect_eq(tw_limiter_set_max_concurrency(home.limiter, limit), 0);
			break;
		default:
			break;
		}
		limited_pump(&home);
		naive_start(ms, takes_ms);
		compare();
		limited_advance(&home, MS);
		naive_end(ms + 1);
		naive_start(ms + 1, takes_ms);
		compare();
	}
	limited_advance(&home, 800 * MS);
	close_all();
}

Test(limiter_weights, random_programs_agree_with_a_naive_line, .timeout = 60)
{
	const char *given = getenv("LIMITER_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	for (int round = 0; round < ROUNDS; round++, first++) {
		cr_log_info("LIMITER_SEED=%llu", (unsigned long long)first);
		run_random(first);
	}
}
