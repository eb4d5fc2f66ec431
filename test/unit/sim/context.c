/*
 * The context of who submits goes with a plain task of a simulation, and is released once, whatever
 * becomes of the task.
 */
#include <errno.h>

#include "test/support/faults.h"
#include "test/support/rig.h"
#include "tickwheel/sim.h"

TestSuite(sim_context, .timeout = 30);

static tw_sim *sim;
static int first, second, drivers;

static void opened(void)
{
	const struct tw_sim_config cfg = {.size = sizeof cfg, .workers = 1};
	expect_eq(tw_sim_create(&sim, &cfg), 0);
}

static void closed(void)
{
	expect_in_fini();
	tw_context_set(NULL);
	expect_eq(tw_sim_destroy(sim), 0);
}

static void see(void *arg)
{
	*(void **)arg = tw_context_get();
	tw_context_set(&drivers);
}

static void submit_under(void *context, void **seen)
{
	tw_context_set(context);
	*seen = &seen;
	expect_eq(tw_sim_submit(sim, see, seen), 0);
}

Test(sim_context, is_that_of_submitting, .init = opened, .fini = closed)
{
	void *seen[3];
	submit_under(&first, &seen[0]);
	submit_under(NULL, &seen[1]);
	submit_under(&second, &seen[2]);
	tw_context_set(&drivers);
	expect_eq(tw_sim_run_until_idle(sim, TW_FOREVER), 0);
	cr_assert_eq(seen[0], &first);
	cr_assert_null(seen[1]);
	cr_assert_eq(seen[2], &second);
	cr_assert_eq(tw_context_get(), &drivers);
}

static void submit_child(void *arg)
{
	tw_sim_submit(sim, see, arg);
}

Test(sim_context, is_inherited_by_what_a_task_submits, .init = opened, .fini = closed)
{
	void *seen = NULL;
	tw_context_set(&first);
	expect_eq(tw_sim_submit(sim, submit_child, &seen), 0);
	tw_context_set(NULL);
	expect_eq(tw_sim_run_until_idle(sim, TW_FOREVER), 0);
	cr_assert_eq(seen, &first);
}
