/* The manual clock itself, and how it drives the services on it. */
#include <errno.h>
#include "test/support/rig_suite.h"

TestSuite(clock_manual, .init = open_rig, .fini = close_rig, .timeout = 30);

static void set_forward(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, RIG_START_NS + 100 * MS);
}

/*
 * A callback that sets the clock forward takes the advance with it: past the instants in between,
 * and past its target.
 */
static void advance_over_a_callback_that_sets_forward(uint64_t to_ns, uint64_t end_ns)
{
	reopen_rig(NULL);
	struct probe sets = PROBE(&rig, 1), later = PROBE(&rig, 2), last = PROBE(&rig, 3);
	sets.act = set_forward;
	probe_schedule(&sets, 10 * MS);
	probe_schedule(&later, 20 * MS);
	probe_schedule(&last, 110 * MS);
	expect_eq(tw_clock_manual_advance_by(rig.clock, to_ns), 0);
	expect_eq(tw_clock_now(rig.clock), RIG_START_NS + end_ns);
	expect_ran_at(&later, RIG_START_NS + 100 * MS);
	expect_eq(last.runs, end_ns >= 110 * MS);
}

Test(clock_manual, is_never_moved_backwards_by_an_advance)
{
	advance_over_a_callback_that_sets_forward(15 * MS, 100 * MS);
	advance_over_a_callback_that_sets_forward(50 * MS, 100 * MS);
	advance_over_a_callback_that_sets_forward(200 * MS, 200 * MS);
}

Test(clock_manual, outlives_its_services)
{
	expect_eq(tw_clock_manual_destroy(rig.clock), -EBUSY);
	expect_eq(tw_clock_manual_destroy(NULL), 0);
}

/* ------------------------------------------------------------ driving */

/* The grid of ticks need not lie on round numbers: never early, at most a tick late. */
Test(clock_manual, may_start_between_ticks)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 123456789), 0);
	struct tw_service_config cfg = rig_config();
	cfg.clock = clock;
	struct rig odd = {.clock = clock, .lock = PTHREAD_MUTEX_INITIALIZER};
	expect_eq(tw_service_create(&odd.service, &cfg), 0);
	static struct probe probes[300];
	uint64_t due_ns[300], seed = 37;
	for (int i = 0; i < 300; i++) {
		uint64_t delay_ns = random_below(&seed, 20 * SECOND);
		due_ns[i] = tw_clock_now(clock) + delay_ns;
		probes[i] = PROBE(&odd, i);
		probe_schedule(&probes[i], delay_ns);
		rig_advance(&odd, random_below(&seed, 10 * MS));
	}
	rig_advance(&odd, MINUTE);
	for (int i = 0; i < 300; i++) {
		expect_eq(probes[i].runs, 1);
		expect_ge(probes[i].ran_at_ns, due_ns[i]);
		expect_le(probes[i].ran_at_ns, due_ns[i] + MS);
	}
	rig_close(&odd);
}

Test(clock_manual, may_start_at_zero)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 0), 0);
	struct tw_service_config cfg = rig_config();
	cfg.clock = clock;
	struct rig odd = {.clock = clock, .lock = PTHREAD_MUTEX_INITIALIZER};
	expect_eq(tw_service_create(&odd.service, &cfg), 0);
	struct probe zero = PROBE(&odd, 1), one = PROBE(&odd, 2);
	probe_schedule_at(&zero, 0);
	probe_schedule_at(&one, 1);
	rig_advance(&odd, 0);
	expect_ran_at(&zero, 0);
	expect_eq(one.runs, 0);
	rig_advance(&odd, MS);
	expect_ran_at(&one, MS);
	rig_close(&odd);
}
