/*
 * Memory after storms of members and of timers with options. Their extension records go back too,
 * and each release is called once.
 */
#include <errno.h>

#include "test/support/members.h"
#include "storm.h"

enum { MANY = 200000, ROUNDS = 2, NTH = 10000 };

struct end {
	unsigned char runs, releases, fate;
};

static struct end *ends; /* MANY */
static tw_timer *timers; /* MANY */

static void allocate(void)
{
	ends = big_array(MANY, sizeof *ends);
	timers = big_array(MANY, sizeof *timers);
	open_rig();
}

TestSuite(driver_storm_extensions, .init = allocate, .fini = close_rig, .timeout = 120);

static void note_run(void *arg)
{
	((struct end *)arg)->runs++;
}

static void note_release(void *arg, enum tw_fate fate)
{
	struct end *end = arg;
	end->releases++;
	end->fate = (unsigned char)fate;
}

/* Every NTH is a member of `kept`, all others of `group`. */
static void storm(tw_group group, tw_group kept)
{
	for (size_t i = 0; i < MANY; i++) {
		ends[i] = (struct end){0};
		struct tw_task task = {.size = sizeof(task),
				       .fn = note_run,
				       .arg = &ends[i],
				       .when_ns = HOUR + i * 1000,
				       .release = note_release,
				       .group = i % NTH ? group : kept};
		expect_eq(tw_schedule_task(rig.service, &task, &timers[i]), 0);
	}
}

static void expect_ends(bool kept_have_run)
{
	for (size_t i = 0; i < MANY; i++) {
		bool kept = i % NTH == 0;
		expect_eq(ends[i].runs, kept && kept_have_run);
		expect_eq(ends[i].releases, kept_have_run || !kept);
		if (ends[i].releases)
			expect_eq(ends[i].fate, kept ? TW_FATE_FIRED : TW_FATE_CANCELLED);
	}
}

Test(driver_storm_extensions, of_members_gives_extension_records_back)
{
	tw_group group = group_of(&rig), kept = group_of(&rig);
	tick(2);
	int64_t base = held_bytes(rig.service);
	for (int round = 0; round < ROUNDS; round++) {
		storm(group, kept);
		tick(1);
		int64_t peak = held_bytes(rig.service) - base;
		/* an extension record, a record, a word each */
		expect_ge(peak, MANY * INT64_C(100));
		expect_eq(tw_group_cancel(rig.service, group), 0);
		tick(6000);
		expect_ends(false);
		expect_le(held_bytes(rig.service) - base, MANY * INT64_C(8) + 8 * MIB);
		expect_eq(gauges(&rig, group).members, 0);
		expect_eq(gauges(&rig, kept).members, MANY / NTH);
		for (size_t i = 1; i < MANY; i += 997)
			if (i % NTH)
				expect_eq(tw_cancel(rig.service, timers[i]), TW_GONE);
		expect_sound(rig.service);
		rig_advance(&rig, 2 * HOUR);
		expect_ends(true);
	}
}
