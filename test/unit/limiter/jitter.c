/* Jitter: how the delays before retries are drawn. On a clock moved by hand. */
#include <errno.h>

#include "test/support/limiter_suite.h"

enum { DRAWS = 200 };

static uint64_t delays_ns[DRAWS + 1];
static unsigned retries;

static void on_retried(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns)
{
	expect_eq(attempt, retries + 1);
	delays_ns[retries++] = delay_ns;
}

/* Runs a job to its end, and checks each delay. Returns their sum. */
static uint64_t expect_delays(struct tw_retry retry)
{
	struct load load = LOAD(1, .answer = -EIO);
	uint64_t sum_ns = 0, d_ns = retry.delay_ns < retry.cap_ns ? retry.delay_ns : retry.cap_ns;
	struct tw_limiter_config config = limited_config(1);
	limited_hook(&config, (struct limited_hooks){.retried = on_retried});
	retries = 0;
	retry.count = DRAWS;
	open_with(config);
	struct tw_limiter_task task = load_task(&load);
	task.retry = retry;
	load_submit_task(&load, &task);
	while (!load.dones)
		limited_advance(&home, 100 * MS);
	expect_eq(retries, DRAWS);
	for (unsigned i = 0; i < DRAWS; i++) {
		expect_ge(delays_ns[i], retry.jitter == TW_RETRY_JITTER_FULL ? 0 : d_ns);
		expect_le(delays_ns[i], d_ns);
		expect_le(delays_ns[i], retry.cap_ns);
		sum_ns += delays_ns[i];
		d_ns = d_ns * (retry.factor_x100 ? retry.factor_x100 : 100) / 100;
		if (d_ns > retry.cap_ns)
			d_ns = retry.cap_ns;
	}
	close_all();
	return sum_ns;
}

/*
 * Of draws that are uniform in 0 .. 1, in thousandths; their mean is off by 0.02 at one standard
 * deviation.
 */
static void expect_mean(uint64_t sum_ns, uint64_t unit_ns, uint64_t thousandths)
{
	uint64_t mean = sum_ns * 1000 / (DRAWS * unit_ns);
	expect_ge(mean, thousandths - 90);
	expect_le(mean, thousandths + 90);
}

Test(limiter_jitter, jitter_draws_from_its_range_uniformly)
{
	const uint64_t unit_ns = 10 * MS;
	struct tw_retry retry = {.delay_ns = unit_ns, .cap_ns = unit_ns};
	expect_eq(expect_delays(retry), DRAWS * unit_ns);
	retry.jitter = TW_RETRY_JITTER_FULL;
	uint64_t sum_ns = expect_delays(retry);
	expect_mean(sum_ns, unit_ns, 500);
	expect_eq(expect_delays(retry), sum_ns); /* from the same seed */
}

Test(limiter_jitter, jitter_follows_the_growing_delay_up_to_the_cap)
{
	for (uint32_t jitter = TW_RETRY_JITTER_NONE; jitter <= TW_RETRY_JITTER_FULL; jitter++)
		expect_delays((struct tw_retry){
		    .delay_ns = 3 * MS, .factor_x100 = 150, .cap_ns = 70 * MS, .jitter = jitter});
}
