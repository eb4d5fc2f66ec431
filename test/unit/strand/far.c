/* Delayed tasks of a strand whose instants no clock reaches: they do not hold up nearer ones. */
#include <errno.h>

#include "test/support/strands.h"

TestSuite(strand_far, .timeout = 30);

static struct strand_rig rig;

/* On a clock that begins at start_ns. */
static void open_at(uint64_t start_ns)
{
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&rig.queue);
	rig.rig = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER, .tick_ns = MS};
	expect_eq(tw_clock_manual_create(&rig.rig.clock, start_ns), 0);
	cfg.clock = rig.rig.clock;
	expect_eq(tw_service_create(&rig.rig.service, &cfg), 0);
	expect_eq(tw_strand_create(&rig.strand, rig.rig.service, &rig.queue.base), 0);
}

/* A task as far away as can be, between two of a second. */
static void expect_near_ones_run(uint64_t start_ns)
{
	struct noted before = NOTED(&rig, 1), far = NOTED(&rig, 2), after = NOTED(&rig, 3);
	open_at(start_ns);
	noted_submit(&before, SECOND);
	noted_submit(&far, TW_MAX_DELAY_NS);
	noted_submit(&after, SECOND);
	strand_rig_advance(&rig, 2 * SECOND);
	expect_order(&rig, 1, 3);
	expect_ge(after.ran_at_ns, start_ns + SECOND);
	expect_le(after.ran_at_ns, start_ns + SECOND + MS);
	expect_eq(strand_stats(rig.strand).delayed, 1);
	expect_eq(tw_strand_cancel(rig.strand, far.task), TW_CANCELLED);
	strand_rig_close(&rig);
}

Test(strand_far, tasks_hold_up_no_nearer_one)
{
	expect_near_ones_run(0);
	expect_near_ones_run(RIG_START_NS);
	expect_near_ones_run((uint64_t)INT64_MAX - TW_MAX_DELAY_NS);
	expect_near_ones_run((uint64_t)INT64_MAX - TW_MAX_DELAY_NS + 1);
	expect_near_ones_run((uint64_t)INT64_MAX - 10 * SECOND);
}

Test(strand_far, tasks_run_when_the_clock_gets_there)
{
	struct noted far = NOTED(&rig, 1), farther = NOTED(&rig, 2);
	uint64_t start_ns = (uint64_t)INT64_MAX - TW_MAX_DELAY_NS;
	open_at(start_ns);
	noted_submit(&farther, TW_MAX_DELAY_NS);
	noted_submit(&far, TW_MAX_DELAY_NS - SECOND);
	rig_advance(&rig.rig, TW_MAX_DELAY_NS - 2 * SECOND);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 0);
	rig_advance(&rig.rig, 2 * SECOND - MS);
	strand_rig_pump(&rig);
	expect_order(&rig, 1);
	strand_rig_close(&rig);
}
