/* What suites of tests on one limiter (limited.h) begin with. */
#ifndef TEST_SUPPORT_LIMITER_SUITE_H
#define TEST_SUPPORT_LIMITER_SUITE_H

#include "limited.h"

static struct limited home;

static inline void open_with(struct tw_limiter_config config)
{
	limited_open(&home, &config);
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
}

static inline void open_started(uint32_t max_concurrency)
{
	open_with(limited_config(max_concurrency));
}

static inline void close_all(void)
{
	limited_close(&home);
}

/* A suite's .fini: closes what a test has left open. */
static inline void close_left(void)
{
	expect_in_fini();
	if (home.limiter)
		close_all();
}

#define LOAD(number_, ...) ((struct load){.home = &home, .number = (number_), __VA_ARGS__})

static inline void complete(struct load *load, int error)
{
	expect_eq(tw_job_complete(home.limiter, load->job, error, load), 0);
	limited_pump(&home);
}

/* Submits `n` asynchronous jobs, which the test completes. */
static inline void held(struct load *loads, int n)
{
	for (int i = 0; i < n; i++) {
		loads[i] = LOAD(i, .held = true);
		load_submit(&loads[i]);
	}
	limited_pump(&home);
}

#endif
