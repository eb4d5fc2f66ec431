/* G5: a stale, foreign or random handle is harmless, and never reaches a newer timer. */
#include <errno.h>

#include "test/support/rig_suite.h"

TestSuite(timer_handles, .init = open_rig, .fini = close_rig, .timeout = 30);

/* Every call that takes a handle says that it is gone. */
static void expect_gone(tw_service *service, tw_timer timer)
{
	uint64_t left_ns = 99;
	expect_eq(tw_is_pending(service, timer), false);
	expect_eq(tw_remaining(service, timer, &left_ns), -ENOENT);
	expect_eq(tw_reset(service, timer, 0), -ENOENT);
	expect_eq(tw_reset_at(service, timer, RIG_START_NS), -ENOENT);
	expect_eq(tw_reset_earlier(service, timer, 0), -ENOENT);
	expect_eq(tw_disarm(service, timer), TW_GONE);
	expect_eq(tw_cancel(service, timer), TW_GONE);
	expect_eq(tw_cancel_wait(service, timer, TW_FOREVER), TW_GONE);
}

Test(timer_handles, that_are_random_extreme_or_a_bit_off_touch_nothing)
{
	enum { COUNT = 1000 };
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)i * MS);
	}
	static const uint64_t ids[] = {
	    0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX, UINT64_MAX << 32, INT64_MAX};
	struct tw_service_stats before = stats_of(rig.service);
	uint64_t seed = 5;
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		expect_gone(rig.service, (tw_timer){ids[i]});
	for (int bit = 12; bit < 64; bit++) /* lower ones are other timers' */
		expect_gone(rig.service, (tw_timer){probes[0].timer.id ^ UINT64_C(1) << bit});
	for (int i = 0; i < 200000; i++)
		expect_gone(rig.service, (tw_timer){random_next(&seed)});
	expect_untouched(&before, rig.service);
	rig_advance(&rig, 2 * SECOND);
	expect_eq(rig.ran, COUNT);
}

/* Services draw their first generations at random, so that the same slot has different handles. */
Test(timer_handles, of_another_service_touch_nothing)
{
	struct rig mine, theirs;
	rig_open(&mine, NULL);
	rig_open(&theirs, NULL);
	enum { COUNT = 500 };
	static struct probe ours[COUNT], strangers[COUNT];
	for (int i = 0; i < COUNT; i++) {
		ours[i] = PROBE(&mine, i);
		strangers[i] = PROBE(&theirs, i);
		probe_schedule(&ours[i], MS);
		probe_schedule(&strangers[i], MS);
	}
	for (int i = 0; i < COUNT; i++) {
		expect_gone(mine.service, strangers[i].timer);
		expect_gone(theirs.service, ours[i].timer);
	}
	rig_advance(&mine, MS);
	rig_advance(&theirs, MS);
	expect_eq(mine.ran, COUNT);
	expect_eq(theirs.ran, COUNT);
	rig_close(&mine);
	rig_close(&theirs);
}
