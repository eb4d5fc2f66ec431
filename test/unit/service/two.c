/* What needs two lanes or two services to show. */
#include <pthread.h>

#include "test/support/expect.h"
#include "test/support/rig.h"

/* Ticks after which the bits of a control word's deadline repeat. */
#define ALIAS_NS ((UINT64_C(1) << 27) * MS)

struct mover {
	struct probe *probe;
	uint64_t deadline_ns;
	int answer;
};

static void *move(void *arg)
{
	struct mover *mover = arg;
	mover->answer =
	    tw_reset_at(mover->probe->rig->service, mover->probe->timer, mover->deadline_ns);
	return NULL;
}

static void move_from_another_thread(struct mover *mover)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, move, mover), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(mover->answer, 0);
}

/*
 * The later deadline's entry may be drained before the earlier one's: the lanes of two threads have
 * no order.
 */
Test(service_two_lanes, deadlines_whose_bits_repeat_are_told_apart)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, HOUR);
	rig_advance(&rig, 0);
	struct mover first = {&probe, RIG_START_NS + ALIAS_NS / 2, 0},
		     second = {&probe, RIG_START_NS + 3 * ALIAS_NS / 2, 0};
	move_from_another_thread(&first);
	expect_eq(tw_reset_at(rig.service, probe.timer, second.deadline_ns), 0);
	rig_advance_to(&rig, second.deadline_ns - 1);
	expect_eq(probe.runs, 0);
	rig_advance_to(&rig, second.deadline_ns);
	expect_ran_at(&probe, second.deadline_ns);
	rig_close(&rig);
}

struct hop {
	tw_service *from, *to;
	tw_clock *clock;
	uint64_t second_ns;
};

static void arrive(void *arg)
{
	struct hop *hop = arg;
	hop->second_ns = tw_clock_now(hop->clock);
}

static void leave(void *arg)
{
	struct hop *hop = arg;
	expect_eq(tw_schedule(hop->to, 5 * MS, arrive, hop, NULL), 0);
}

static void hop_between(bool newest_first)
{
	struct hop hop = {0};
	struct tw_service_config config = {
	    .size = sizeof config, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	expect_eq(tw_clock_manual_create(&hop.clock, 0), 0);
	config.clock = hop.clock;
	expect_eq(tw_service_create(newest_first ? &hop.to : &hop.from, &config), 0);
	expect_eq(tw_service_create(newest_first ? &hop.from : &hop.to, &config), 0);
	expect_eq(tw_schedule(hop.from, 10 * MS, leave, &hop, NULL), 0);
	expect_eq(tw_clock_manual_advance_by(hop.clock, 100 * MS), 0);
	expect_eq(hop.second_ns, 15 * MS);
	expect_eq(tw_service_destroy(hop.from), 0);
	expect_eq(tw_service_destroy(hop.to), 0);
	expect_eq(tw_clock_manual_destroy(hop.clock), 0);
}

Test(service_two_services, on_one_clock_see_each_others_work_in_its_time)
{
	hop_between(false);
	hop_between(true);
}
