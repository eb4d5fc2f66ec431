/*
 * What suites of tests on retries of one limiter's jobs begin with: a hook that notes each retry,
 * and the last text of the misuse hook.
 */
#ifndef TEST_SUPPORT_RETRY_SUITE_H
#define TEST_SUPPORT_RETRY_SUITE_H

#include "limiter_suite.h"
#include "misuse_text.h"

/* The arguments of the hook `retried`. */
static uint64_t delays_ns[256];
static unsigned retries;

static inline void on_retried(void *arg, tw_job job, uint64_t id, uint32_t attempt,
			      uint64_t delay_ns)
{
	expect_eq(attempt, retries + 1);
	delays_ns[retries++] = delay_ns;
}

static inline void open_with_hook(void)
{
	struct tw_limiter_config config = limited_config(1);
	limited_hook(&config, (struct limited_hooks){.retried = on_retried});
	retries = 0;
	text[0] = 0;
	tw_set_misuse_hook(keep_text);
	open_with(config);
}

static inline void submit_with(struct load *load, tw_job_fn *fn, struct tw_retry retry)
{
	struct tw_limiter_task task = load_task(load);
	if (fn)
		task.fn = fn;
	task.retry = retry;
	load_submit_task(load, &task);
	limited_pump(&home);
}

#endif
