/* Runs inside runs on one thread: tw_service_liveness shows the outermost, to its service. */
#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(service_liveness_nested, .timeout = 30);

struct nested {
	struct rig *outer, *inner;
	struct tw_service_liveness of_outer, of_inner;
};

static void look_inside(void *arg)
{
	struct nested *nested = arg;
	nested->of_outer.size = nested->of_inner.size = sizeof nested->of_outer;
	tw_service_liveness(nested->outer->service, &nested->of_outer);
	tw_service_liveness(nested->inner->service, &nested->of_inner);
}

/* Drives another service inline, whose callback looks. */
static void drive_the_other(void *arg)
{
	struct nested *nested = arg;
	tw_schedule(nested->inner->service, 0, look_inside, nested, NULL);
	rig_advance(nested->inner, MS);
}

Test(service_liveness_nested, the_outer_run_is_shown_to_its_service)
{
	struct rig outer, inner;
	tw_strand *strand;
	rig_open(&outer, NULL);
	rig_open(&inner, NULL);
	struct nested nested = {.outer = &outer, .inner = &inner};
	expect_eq(tw_strand_create(&strand, outer.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, drive_the_other, &nested), 0);
	rig_advance(&outer, MS);
	expect_eq(nested.of_outer.running, 1);
	cr_assert(nested.of_outer.longest_fn == drive_the_other);
	cr_assert(nested.of_outer.longest_arg == &nested);
	expect_eq(nested.of_inner.running, 0);
	expect_eq(liveness_of(outer.service).running + liveness_of(inner.service).running, 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&inner);
	rig_close(&outer);
}
