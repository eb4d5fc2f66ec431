/*
 * After a storm memory goes back to the system, but not immediately. RSS is the witness (G11).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storm.h"
#include "test/support/members.h"
#include "test/support/threads.h"

#ifdef __SANITIZE_ADDRESS__
enum { ADDRESS_SANITIZER = true };
#else
enum { ADDRESS_SANITIZER = false };
#endif

/*
 * How much more is resident for `bytes` under AddressSanitizer: its shadow, a byte for eight. Some
 * kernels make a page resident that was only read.
 */
static int64_t shadow_of(int64_t bytes)
{
	return ADDRESS_SANITIZER ? bytes / 8 : 0;
}

enum { MANY = 1000000, WITH_RELEASE = 4 /* one in four */ };

static tw_timer *timers; /* MANY */

static void allocate(void)
{
	timers = big_array(MANY, sizeof *timers);
	open_rig();
}

TestSuite(driver_storm, .init = allocate, .fini = close_rig, .timeout = 90);

static size_t released; /* as cancelled */

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg;
	released += fate == TW_FATE_CANCELLED;
}

static void storm(tw_service *service, uint64_t delay_ns)
{
	struct tw_task task = {.size = sizeof(task), .fn = ignore, .when_ns = delay_ns};
	for (size_t i = 0; i < MANY; i++) {
		task.release = i % WITH_RELEASE == 0 ? count_release : NULL;
		task.when_ns = delay_ns + i * 1000;
		expect_eq(tw_schedule_task(service, &task, &timers[i]), 0);
	}
}

static void cancel_all_but(tw_service *service, size_t nth)
{
	for (size_t i = 0; i < MANY; i++)
		if (!nth || i % nth)
			expect_eq(tw_cancel(service, timers[i]), TW_CANCELLED);
}

/* What the driver goes by, counted again. */
static void expect_idle_blocks_counted(const struct tw__depot *depot)
{
	uint32_t idle = 0, blocks = tw_load_relaxed(&depot->fresh) >> depot->block_shift;
	for (uint32_t block = 0; block < blocks; block++)
		idle += tw__depot_is_idle(depot, block);
	expect_eq(tw_load_relaxed(&depot->idle), idle);
}

static void expect_counted(void)
{
	expect_idle_blocks_counted(&rig.service->slots.depot);
	expect_idle_blocks_counted(&rig.service->driver->wheel.chunks);
	expect_sound(rig.service);
}

/* The arrays of the test itself are touched first, so that they do not count. */
static void open_touched(void)
{
	memset(timers, 0xff, MANY * sizeof *timers);
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 4 << 20; /* a storm that nobody drains */
	reopen_rig(&cfg);
	tw_timer timer;
	expect_eq(tw_schedule(rig.service, MS, ignore, NULL, &timer), 0);
	tick(2);
}

Test(driver_storm, gives_its_memory_back)
{
	open_touched();
	int64_t base = resident_bytes(), base_counted = held_bytes(rig.service);
	storm(rig.service, HOUR);
	rig_advance(&rig, MS);
	int64_t peak = resident_bytes() - base,
		peak_counted = held_bytes(rig.service) - base_counted;
	int64_t shadow = shadow_of(peak_counted + MANY * (int64_t)sizeof *timers);
	expect_ge(peak, 50 * MIB);
	expect_ge(peak_counted + shadow, peak - 8 * MIB); /* huge pages are touched as a whole */
	expect_le(peak_counted, peak + 8 * MIB);
	cancel_all_but(rig.service, 0);
	tick(5000);
	int64_t after = resident_bytes() - base,
		after_counted = held_bytes(rig.service) - base_counted;
	expect_le(after_counted, 3 * MIB);
	expect_ge(after_counted + shadow,
		  after - 4 * MIB); /* tables of its own, the allocator's rest */
	expect_le(after, shadow + 6 * MIB);
	expect_all_gone(timers, MANY);
	expect_counted();
	expect_eq(released, MANY / WITH_RELEASE);
}

/* Members, whose group is cancelled, except every NTH; a second storm takes no more. */
Test(driver_storm, of_members_gives_its_memory_back)
{
	enum { MEMBERS = 200000, NTH = 10000, ROUNDS = 2 };
	open_touched();
	int64_t base = held_bytes(rig.service);
	for (int round = 0; round < ROUNDS; round++) {
		tw_group group = group_of(&rig), kept = group_of(&rig);
		struct tw_task task = {.size = sizeof task, .fn = ignore, .release = count_release};
		for (size_t i = 0; i < MEMBERS; i++) {
			task.when_ns = HOUR + i * 1000;
			task.group = i % NTH ? group : kept;
			expect_eq(tw_schedule_task(rig.service, &task, &timers[i]), 0);
		}
		tick(1);
		/* an extension record, a record, a word each */
		expect_ge(held_bytes(rig.service) - base, MEMBERS * INT64_C(100));
		released = 0;
		expect_eq(tw_group_cancel(rig.service, group), 0);
		tick(6000);
		expect_eq(released, MEMBERS - MEMBERS / NTH);
		expect_le(held_bytes(rig.service) - base, MEMBERS * INT64_C(8) + 8 * MIB);
		expect_eq(gauges(&rig, kept).members, MEMBERS / NTH);
		expect_counted();
		rig_advance(&rig, 2 * HOUR);
		expect_eq(gauges(&rig, kept).members, 0);
	}
}

/* Not within a second: the next storm may come. */
Test(driver_storm, keeps_its_memory_for_a_while)
{
	open_touched();
	storm(rig.service, HOUR);
	rig_advance(&rig, MS);
	cancel_all_but(rig.service, 0);
	int64_t held = held_bytes(rig.service);
	tick(900);
	expect_ge(held_bytes(rig.service), held);
	storm(rig.service, HOUR);
	tick(5000);
	/* words, records and chunks are in use */
	expect_ge(held_bytes(rig.service), MANY * INT64_C(40));
	cancel_all_but(rig.service, 0);
	tick(5000);
	expect_le(held_bytes(rig.service), 8 * MANY + 4 * MIB);
}

/*
 * A tick thread that goes to sleep after a burst which has broken it off knows when to wake up for
 * the rest.
 */
Test(driver_storm, is_cleared_away_later_when_a_burst_breaks_in)
{
	enum { BURST = 1000 };
	open_touched();
	storm(rig.service, HOUR);
	tick(1);
	cancel_all_but(rig.service, 0);
	while (!tw__purging(rig.service))
		tick(1);
	for (int i = 0; i < BURST; i++)
		expect_eq(tw_schedule(rig.service, MS, ignore, NULL, NULL), 0);
	while (tw__purging(rig.service))
		tick(1);
	expect_ge(held_bytes(rig.service), 8 * MANY + 4 * MIB);
	expect_gt(rig.service->driver->purge_ns, rig_now(&rig));
	tick(5000);
	expect_le(held_bytes(rig.service), 8 * MANY + 4 * MIB);
}

/*
 * With a tick thread in real time: it sees to that by itself, and then sleeps for good. When is for
 * the machine to say, which may let the tick thread stand, or this one: so each state is waited
 * for, as long as the suite's timeout allows, and nothing is measured between two moments.
 */
Test(driver_storm, is_cleared_away_by_a_tick_thread_that_then_sleeps)
{
	/* words, records and chunks */
	const int64_t words = MANY * INT64_C(8), in_use = MANY * INT64_C(40);
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	cfg.lane_entries = 4 << 20; /* as above: the tick thread may come too late to drain */
	tw_service *service;
	memset(timers, 0xff, MANY * sizeof *timers);
	expect_eq(tw_service_create(&service, &cfg), 0);
	int64_t base = resident_bytes();
	storm(service, HOUR);
	/* records at the least: the rest may be in the lane */
	expect_ge(held_bytes(service), in_use / 2);
	cancel_all_but(service, 0);
	const struct timespec moment = {.tv_nsec = 10 * MS}, while_ = {.tv_nsec = 100 * MS};
	while (held_bytes(service) > words + 4 * MIB)
		nanosleep(&moment, NULL);
	/* AddressSanitizer keeps what is freed, so the process does not shrink */
	while (!ADDRESS_SANITIZER && resident_bytes() - base > in_use / 2)
		nanosleep(&moment, NULL);
	uint64_t before;
	do {
		before = stats_of(service).wakeups;
		nanosleep(&while_, NULL);
	} while (stats_of(service).wakeups != before);
	expect_eq(tw_service_destroy(service), 0);
}
