/*
 * The instants of runs in a row: close to the clock's, and the clock's own where it moves by hand.
 */
#include "wheel/run/run.h"
#include "test/support/rig_suite.h"

TestSuite(clock_run, .init = open_rig, .fini = close_rig, .timeout = 60);

/*
 * The reading is between two readings of the clock around it, except for the time between the
 * register and the clock.
 */
Test(clock_run, is_the_clock_to_within_two_microseconds)
{
	enum { READINGS = 2000000, APART_NS = 2000 };
	struct tw_service_config cfg = rig_config();
	tw_service *service;
	struct tw__run_clock clock = {0};
	cfg.clock = tw_clock_monotonic();
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int i = 0; i < READINGS; i++) {
		uint64_t before_ns = tw_clock_now(cfg.clock);
		uint64_t at_ns = i % 1000 ? tw__run_clock_read(&clock, service)
					  : tw__run_clock_exact(&clock, service);
		uint64_t after_ns = tw_clock_now(cfg.clock);
		expect_ge(at_ns + APART_NS, before_ns);
		expect_le(at_ns, after_ns + APART_NS);
		expect_eq(clock.now_ns, at_ns);
	}
	expect_eq(tw_service_destroy(service), 0);
}

Test(clock_run, is_exact_on_a_clock_that_moves_by_hand)
{
	struct tw__run_clock clock = {0};
	for (int i = 0; i < 100; i++) {
		expect_eq(tw__run_clock_read(&clock, rig.service), rig_now(&rig));
		rig_advance(&rig, 7);
	}
}
