/* A clock that is set back: a timer that is due has the service's present time as its instant. */
#include "by_hand.h"
#include "test/support/rig_suite.h"

TestSuite(driver_back, .init = open_rig, .fini = close_rig, .timeout = 30);

static uint64_t next_expiry(void)
{
	uint64_t at_ns = 1;
	expect_eq(tw_service_next_expiry(rig.service, &at_ns), 0);
	return at_ns;
}

/* By less than a tick, within the tick that the driver has reached. */
static void set_back_in_the_tick(void)
{
	reopen_rig(NULL);
	rig_advance(&rig, 5 * MS + MS / 10 * 9);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 5 * MS + MS / 10), 0);
}

Test(driver_back, next_expiry_of_what_is_due_is_not_later_than_now)
{
	set_back_in_the_tick();
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_eq(next_expiry(), tw_service_now(rig.service));
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_eq(next_expiry(), UINT64_MAX);
}

Test(driver_back, next_expiry_follows_the_time_that_stands_still)
{
	set_back_in_the_tick();
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS), 0);
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_le(next_expiry(), tw_service_now(rig.service));
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
}

/* The clock has moved on since the last advance, which stays the instant of a due timer. */
Test(driver_back, next_expiry_of_what_is_due_is_not_later_than_the_last_advance)
{
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 9 * MS), 0);
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_eq(next_expiry(), RIG_START_NS + 5 * MS);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
}
