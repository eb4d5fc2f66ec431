/*
 * Random programs of submit, complete, fail, cancel, time out, resize, pause and stop, against what
 * must hold after each step. The seed is printed, and LIMITER_SEED replays it.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_suite.h"

enum { LOADS = 120, STEPS = 400, ROUNDS = 40 };

static struct load loads[LOADS];
static unsigned submitted;
static uint64_t limit;
static bool paused, closed, shrunk;

static struct load *any(uint64_t *seed)
{
	return submitted ? &loads[random_below(seed, submitted)] : NULL;
}

static void submit(uint64_t *seed)
{
	if (submitted == LOADS)
		return;
	struct load *load = &loads[submitted];
	*load = (struct load){.home = &home, .number = (int)submitted};
	load->held = random_percent(seed, 60);
	load->answer = random_percent(seed, 30) ? -EIO : 0;
	struct tw_limiter_task task = load_task(load);
	task.priority = (int)random_below(seed, 3);
	if (random_percent(seed, 30))
		task.retry = (struct tw_retry){.count = 2,
					       .delay_ns = random_below(seed, 6) * MS,
					       .jitter = (uint32_t)random_below(seed, 2)};
	if (random_percent(seed, 20))
		task.queue_timeout_ns = (1 + random_below(seed, 5)) * MS;
	if (random_percent(seed, 20))
		task.attempt_timeout_ns = (1 + random_below(seed, 5)) * MS;
	if (random_percent(seed, 10))
		task.timeout_ns = (1 + random_below(seed, 9)) * MS;
	if (closed) {
		expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), -ESHUTDOWN);
		return;
	}
	load_submit_task(load, &task);
	submitted++;
}

static void complete_any(struct load *load, uint64_t *seed)
{
	int r = tw_job_complete(home.limiter, load->attempt.id ? load->attempt : load->job,
				random_percent(seed, 40) ? -EIO : 0, NULL);
	bool is_good =
	    r == 0 || r == TW_JOB_LATE || r == -EALREADY || (r == -EINVAL && !load->held);
	cr_assert(is_good, "complete answers %d", r);
	if (r >= 0)
		expect_eq(tw_job_complete(home.limiter, load->attempt, 0, NULL), -EALREADY);
}

static void cancel(struct load *load)
{
	unsigned before = load->dones;
	switch (tw_job_cancel(home.limiter, load->job)) {
	case TW_CANCELLED:
		expect_eq(before, 0);
		expect_settled(load, TW_JOB_STATUS_CANCELLED, -ECANCELED);
		break;
	case TW_RUNNING:
		expect_eq(load->dones, 0);
		break;
	case TW_GONE:
		expect_eq(load->dones, 1);
		break;
	default:
		cr_assert(false, "cancel");
	}
}

static void resize(uint64_t *seed)
{
	uint64_t next = 1 + random_below(seed, 6);
	shrunk |= next < limit;
	limit = next;
	expect_eq(tw_limiter_set_max_concurrency(home.limiter, (uint32_t)limit), 0);
}

static void step(uint64_t *seed)
{
	struct load *load = any(seed);
	unsigned starts = home.starts;
	switch (random_below(seed, 12)) {
	case 0 ... 3:
		submit(seed);
		break;
	case 4 ... 6:
		if (load)
			complete_any(load, seed);
		break;
	case 7:
		if (load)
			cancel(load);
		break;
	case 8:
		limited_advance(&home, (1 + random_below(seed, 4)) * MS);
		break;
	case 9:
		resize(seed);
		break;
	case 10:
		paused = !paused;
		expect_eq(paused ? tw_limiter_set_paused(home.limiter, true)
				 : tw_limiter_set_paused(home.limiter, false),
			  0);
		starts = home.starts;
		limited_pump(&home);
		if (paused)
			expect_eq(home.starts, starts);
		break;
	default:
		if (random_percent(seed, 3)) {
			closed = true;
			tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
		}
		break;
	}
	limited_pump(&home);
}

static void check(void)
{
	struct tw_limiter_stats stats = limited_stats(&home);
	uint64_t settled = 0, counts[5] = {0};
	for (unsigned i = 0; i < submitted; i++) {
		expect_le(loads[i].dones, 1);
		expect_le(loads[i].releases, loads[i].dones);
		settled += loads[i].dones;
		if (loads[i].dones)
			counts[loads[i].result.status]++;
	}
	expect_eq(stats.added, submitted);
	expect_eq(stats.succeeded, counts[TW_JOB_STATUS_SUCCEEDED]);
	expect_eq(stats.failed, counts[TW_JOB_STATUS_FAILED]);
	expect_eq(stats.cancelled, counts[TW_JOB_STATUS_CANCELLED]);
	expect_eq(stats.timed_out, counts[TW_JOB_STATUS_TIMED_OUT]);
	expect_eq(stats.dropped, counts[TW_JOB_STATUS_DROPPED]);
	expect_eq(stats.added, settled + stats.pending + stats.running - stats.late);
	expect_eq(stats.max_concurrency, limit);
	if (stats.running > limit)
		expect_eq(shrunk, true); /* a debt, and nothing else */
	else
		shrunk = false;
	if (!closed && !paused && stats.running < limit)
		expect_eq(stats.pending, stats.retrying); /* no permit lies idle beside a line */
}

static void end(uint64_t *seed)
{
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
	tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
	for (unsigned i = 0; i < submitted; i++)
		complete_any(&loads[i], seed);
	limited_pump(&home);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	for (unsigned i = 0; i < submitted; i++) {
		expect_eq(loads[i].dones, 1);
		expect_eq(loads[i].releases, 1);
	}
}

Test(limiter_model, random_programs_keep_the_books, .timeout = 120)
{
	const char *given = getenv("LIMITER_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	for (int round = 0; round < ROUNDS; round++, first++) {
		uint64_t seed = first;
		struct tw_limiter_config config =
		    limited_config(1 + (uint32_t)random_below(&seed, 4));
		cr_log_info("LIMITER_SEED=%llu", (unsigned long long)first);
		limit = config.max_concurrency;
		submitted = 0;
		paused = shrunk = false;
		closed = false;
		limited_open(&home, &config);
		tw_limiter_set_paused(home.limiter, false);
		for (int i = 0; i < STEPS; i++) {
			step(&seed);
			check();
		}
		end(&seed);
		close_all();
	}
}
