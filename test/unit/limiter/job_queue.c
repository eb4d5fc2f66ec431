/* What it costs to leave the limiter's line. On a clock moved by hand. */
#include <errno.h>
#include <stdlib.h>

#include "executor/limiter/internal.h"
#include "test/support/big.h"
#include "test/support/limiter_suite.h"

enum { MANY = 20000 };

/* Whatever the order in which they leave, the rest stays as it is. */
Test(limiter_job_queue, leaving_touches_only_neighbours)
{
	struct load first = LOAD(0, .held = true), *many = big_array(MANY, sizeof *many);
	open_started(1);
	load_submit(&first);
	limited_pump(&home);
	for (int i = 0; i < MANY; i++) {
		many[i] = LOAD(i);
		struct tw_limiter_task task = load_task(&many[i]);
		task.priority = i % 3;
		load_submit_task(&many[i], &task);
	}
	expect_eq(home.limiter->line.count, MANY);
	for (int i = 0; i < MANY; i++) {
		int next = (int)((unsigned)i * 7919u % MANY);
		expect_eq(tw_job_cancel(home.limiter, many[next].job), TW_CANCELLED);
		expect_eq(many[next].dones, 1);
		expect_eq(many[next].releases, 1);
		expect_eq(limited_stats(&home).pending, MANY - 1 - i);
	}
	complete(&first, 0);
	close_all();
	free(many);
}

Test(limiter_job_queue, room_and_memory_of_a_cancelled_one_are_free_at_once)
{
	struct load first = LOAD(0, .held = true), low = LOAD(1), load;
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 2;
	open_with(config);
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
	expect_le(home.limiter->nodes.count, 1);
	complete(&first, 0);
	expect_settled(&low, TW_JOB_STATUS_SUCCEEDED, 0);
	close_all();
}
