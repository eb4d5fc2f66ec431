/* The context of who submits goes with a plain task of a simulation. */
#include "test/support/rig.h"
#include "tickwheel/sim.h"

static tw_sim *sim;
static int first, second, drivers;

static void see(void *arg)
{
	*(void **)arg = tw_context_get();
	tw_context_set(&drivers);
}

static void submit_child(void *arg)
{
	tw_sim_submit(sim, see, arg);
}

static void submit_under(void *context, tw_fn *fn, void **seen)
{
	tw_context_set(context);
	*seen = &seen;
	expect_eq(tw_sim_submit(sim, fn, seen), 0);
}

Test(sim_context, is_that_of_submitting_and_inherited, .timeout = 30)
{
	void *seen[4];
	expect_eq(tw_sim_create(&sim, NULL), 0);
	submit_under(&first, see, &seen[0]);
	submit_under(NULL, see, &seen[1]);
	submit_under(&second, see, &seen[2]);
	submit_under(&first, submit_child, &seen[3]);
	tw_context_set(&drivers);
	expect_eq(tw_sim_run_until_idle(sim, TW_FOREVER), 0);
	cr_assert_eq(seen[0], &first);
	cr_assert_null(seen[1]);
	cr_assert_eq(seen[2], &second);
	cr_assert_eq(seen[3], &first);
	cr_assert_eq(tw_context_get(), &drivers);
	tw_context_set(NULL);
	expect_eq(tw_sim_destroy(sim), 0);
}
