/* The short way of scheduling against the long one: whichever is gone, the same is left behind. */
#include <errno.h>
#include <sched.h>

#include "wheel/timer/schedule.h"
#include "wheel/core/service.h"
#include "test/support/rig_suite.h"

TestSuite(timer_schedule_short, .init = open_rig, .fini = close_rig, .timeout = 60);

static uint64_t word_of(tw_timer timer)
{
	uint64_t entry;
	expect_eq(tw__handle_entry(&rig.service->slots, timer, &entry), true);
	uint64_t word = tw_load_relaxed(&rig.service->slots.words[(uint32_t)entry]);
	expect_eq(tw__word_generation(word), tw__entry_generation(entry));
	return word;
}

static void never(void *arg)
{
	(void)arg;
}

/* A thread that has used another service last goes the long way. */
static void use_another(tw_service *other)
{
	tw_timer timer;
	expect_eq(tw_schedule(other, HOUR, never, NULL, &timer), 0);
	expect_eq(tw_cancel(other, timer), TW_CANCELLED);
	expect_eq(tw__local_at_hand(rig.service) == NULL, true);
}

static void expect_armed_for(struct probe *probe, uint64_t deadline_ns, tw_service *other)
{
	uint64_t cursor = tw_load_relaxed(&rig.service->gate.cursor),
		 tick = tw__tick_of(rig.service, deadline_ns);
	uint32_t low = (uint32_t)(TW__ARMED | tw__tick_bits(tick, cursor));
	expect_eq(tw_schedule_at(rig.service, deadline_ns, probe_run, probe, &probe->timer), 0);
	expect_eq((uint32_t)word_of(probe->timer), low);
	expect_eq(tw_cancel(rig.service, probe->timer), TW_CANCELLED);
	use_another(other);
	expect_eq(tw_schedule_at(rig.service, deadline_ns, probe_run, probe, &probe->timer), 0);
	expect_eq((uint32_t)word_of(probe->timer), low);
	expect_eq(tw_cancel(rig.service, probe->timer), TW_CANCELLED);
}

/*
 * Around each limit that the short way knows: the start, the tick that was turned, the wheel's
 * reach, the clock's range.
 */
Test(timer_schedule_short, says_what_the_long_way_says_around_every_limit)
{
	struct probe probe = PROBE(&rig, 1);
	tw_service *other;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&other, &cfg), 0);
	rig_advance(&rig, SECOND);
	const uint64_t around[] = {0,
				   RIG_START_NS,
				   rig_now(&rig),
				   rig_now(&rig) + MS,
				   rig_now(&rig) + HOUR,
				   rig_now(&rig) + (TW__NEAR_TICKS - 1) * MS,
				   rig_now(&rig) + TW__NEAR_TICKS * MS,
				   RIG_START_NS + TW_MAX_DELAY_NS - 2 * MS};
	for (size_t i = 0; i < sizeof around / sizeof *around; i++)
		for (int ticks = i ? -2 : 0; ticks <= 1; ticks++)
			for (int ns = i ? -1 : 0; ns <= 1; ns++)
				expect_armed_for(
				    &probe, around[i] + (uint64_t)(ticks * (int)MS) + (uint64_t)ns,
				    other);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	expect_eq(tw_service_destroy(other), 0);
}

/*
 * A driver that is called reads a lane, within a tick that it has passed, only if the lane's thread
 * says that it must.
 */
Test(timer_schedule_short, tells_a_driver_that_is_called_what_is_due_at_once)
{
	struct probe probe = PROBE(&rig, 1);
	for (int round = 0; round < 3; round++) {
		rig_advance(&rig, SECOND);
		probe_schedule_at(
		    &probe, tw__tick_ns(rig.service, tw_load_relaxed(&rig.service->gate.cursor)));
		struct tw__local *local = tw__local_of(rig.service);
		expect_eq(tw_load_relaxed(&local->lane.urgent), tw__lane_written(&local->lane));
		probe_schedule_at(
		    &probe,
		    tw__tick_ns(rig.service, tw_load_relaxed(&rig.service->gate.cursor) + 1));
		expect_eq(tw_load_relaxed(&local->lane.urgent), tw__lane_written(&local->lane) - 1);
	}
}

/* Long enough for a tick thread to see much traffic, under checkers too. */
#define BUSY_TICK (20 * MS)

/*
 * Traffic, so that a tick thread stays in open mode. One that gets no processor for a while leaves
 * the lane to fill.
 */
static void be_busy(tw_service *service)
{
	tw_timer timer;
	for (int i = 0, r; i < 200; i++) {
		while ((r = tw_schedule(service, HOUR, never, NULL, &timer)) == -EAGAIN)
			sched_yield();
		expect_eq(r, 0);
		expect_eq(tw_cancel(service, timer), TW_CANCELLED);
	}
}

/* The base is added to a delay, and must not carry it round to a deadline that is near. */
Test(timer_schedule_short, refuses_delays_out_of_range)
{
	tw_service *service;
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .executor = tw_executor_inline(), .tick_ns = BUSY_TICK};
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int bases = 0; bases < 20;) {
		be_busy(service);
		uint64_t word = tw__gate_look(&service->gate);
		for (uint64_t back_ns = 0; back_ns < 2 * SECOND; back_ns += 10 * MS)
			expect_eq(tw_schedule(service, 0 - back_ns - 1, never, NULL, NULL),
				  -ERANGE);
		bases += tw__gate_is_open(word) && tw__gate_look(&service->gate) == word;
	}
	expect_eq(tw_service_destroy(service), 0);
}
