/* A clock that is set back: a timer that is due has the service's present time as its instant. */
#include "by_hand.h"
#include "test/support/rig.h"

TestSuite(driver_back, .timeout = 30);

static uint64_t next_expiry(const struct rig *rig)
{
	uint64_t at_ns = 1;
	expect_eq(tw_service_next_expiry(rig->service, &at_ns), 0);
	return at_ns;
}

/* By less than a tick, within the tick that the driver has reached. */
static void set_back_in_the_tick(struct rig *rig)
{
	rig_open(rig, NULL);
	rig_advance(rig, 5 * MS + MS / 10 * 9);
	expect_eq(tw_clock_manual_set(rig->clock, RIG_START_NS + 5 * MS + MS / 10), 0);
}

Test(driver_back, next_expiry_of_what_is_due_is_not_later_than_now)
{
	struct rig rig;
	set_back_in_the_tick(&rig);
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_eq(next_expiry(&rig), tw_service_now(rig.service));
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_eq(next_expiry(&rig), UINT64_MAX);
	rig_close(&rig);
}

Test(driver_back, next_expiry_follows_the_time_that_stands_still)
{
	struct rig rig;
	set_back_in_the_tick(&rig);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS), 0);
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_le(next_expiry(&rig), tw_service_now(rig.service));
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	rig_close(&rig);
}

/* The clock has moved on since the last advance, which stays the instant of a due timer. */
Test(driver_back, next_expiry_of_what_is_due_is_not_later_than_the_last_advance)
{
	struct rig rig;
	rig_open(&rig, NULL);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 9 * MS), 0);
	expect_eq(tw_schedule_at(rig.service, RIG_START_NS + 4 * MS, nothing, NULL, NULL), 0);
	expect_eq(next_expiry(&rig), RIG_START_NS + 5 * MS);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	rig_close(&rig);
}
