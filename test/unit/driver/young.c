/*
 * Young lanes: the driver leaves new timers where they are until one of them comes near, and loses
 * neither a tick nor the order by that. On a clock that moves by hand, with young lanes all the
 * same.
 */
#include <pthread.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

enum { COUNT = 4000, LONG = 1 << 18, ALLOWED = 4096 };

static struct probe probes[COUNT];
static uint64_t due_ns[COUNT];

static void open_young(void)
{
	open_rig();
	rig.service->time.has_young = true;
}

static struct tw__lane *young(void)
{
	return &tw__local_of(rig.service)->young;
}

static uint64_t in_wheel(void)
{
	return rig.service->driver->wheel.entries;
}

static void nothing(void *arg)
{
	(void)arg;
}

TestSuite(driver_young, .init = open_young, .fini = close_rig, .timeout = 60);

/* As requests are: timeouts of 5 s, answers in 10 ms. Nothing reaches the wheel for seconds. */
Test(driver_young, what_is_cancelled_soon_never_leaves_its_lane)
{
	static tw_timer timers[10][100];
	for (int ms = 0; ms < 4900; ms++) {
		for (int i = 0; i < 100; i++) {
			tw_cancel(rig.service, timers[ms % 10][i]);
			expect_eq(tw_schedule(rig.service, 5 * SECOND, nothing, NULL,
					      &timers[ms % 10][i]),
				  0);
		}
		rig_advance(&rig, MS);
		expect_eq(in_wheel(), 0);
		expect_le(tw__lane_backlog(young()), 1000 + 16 * TW__SEGMENT_ENTRIES);
	}
	for (int i = 0; i < 1000; i++)
		expect_eq(tw_cancel(rig.service, timers[i / 100][i % 100]), TW_CANCELLED);
}

/* Events ascend by tick, and within a tick as they were scheduled; each in its tick. */
static void expect_in_time_and_order(void)
{
	expect_eq(rig.ran, COUNT);
	for (size_t i = 0; i < rig.ran; i++) {
		expect_eq(rig.events[i].at_ns, rig_tick_of(&rig, due_ns[rig.events[i].id]));
		if (i > 0 && rig.events[i - 1].at_ns == rig.events[i].at_ns)
			expect_lt(rig.events[i - 1].id, rig.events[i].id);
	}
}

/* Timers for few ticks, from near and far, so that both lanes bring some for each. */
static void run_plan(uint64_t seed, uint64_t step_ns)
{
	reopen_rig(NULL);
	rig.service->time.has_young = true;
	for (int i = 0; i < COUNT; i++) {
		uint64_t ahead = random_below(&seed, 2) ? 3 : 12;
		due_ns[i] = (rig_now(&rig) / (8 * MS) + 1 + random_below(&seed, ahead)) * 8 * MS -
			    random_below(&seed, MS);
		probes[i] = PROBE(&rig, i);
		if (due_ns[i] < rig_now(&rig))
			due_ns[i] = rig_now(&rig);
		if (random_below(&seed, 2))
			probe_schedule_at(&probes[i], due_ns[i]);
		else
			probe_schedule(&probes[i], due_ns[i] - rig_now(&rig));
		if (random_below(&seed, 4) == 0)
			rig_advance(&rig, random_below(&seed, step_ns));
	}
	rig_advance(&rig, SECOND);
}

Test(driver_young, all_fire_in_their_tick_and_in_order)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		run_plan(seed, MS);
		expect_in_time_and_order();
	}
}

/* The driver comes late, for all in one turn: they are in order all the same. */
Test(driver_young, order_holds_where_the_clock_leaps)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		run_plan(seed, 60 * MS);
		expect_eq(rig.ran, COUNT);
		for (size_t i = 1; i < rig.ran; i++) {
			uint64_t before = rig_tick_of(&rig, due_ns[rig.events[i - 1].id]),
				 tick = rig_tick_of(&rig, due_ns[rig.events[i].id]);
			expect_le(before, tick);
			if (before == tick)
				expect_lt(rig.events[i - 1].id, rig.events[i].id);
		}
	}
}

/*
 * The wheel has chunks for `takes` takes, of one entry here, in the turn in which both lanes bring
 * a timer for one tick.
 */
static void run_short_of_chunks(unsigned takes)
{
	reopen_rig(NULL);
	rig.service->time.has_young = true;
	struct tw__wheel *wheel = &rig.service->driver->wheel;
	struct tw__outboxes *boxes = &rig.service->driver->outboxes;
	uint32_t limit = boxes->submit_limit;
	probes[0] = PROBE(&rig, 0);
	probes[1] = PROBE(&rig, 1);
	probe_schedule(&probes[0], 60 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + 50 * MS), 0);
	probe_schedule(&probes[1], 10 * MS);
	expect_eq(tw__lane_backlog(young()), 1);
	boxes->submit_limit +=
	    (uint32_t)(tw__wheel_chunks_left(wheel) - wheel->slack - TW__SPARE_CHUNKS -
		       TW__SEGMENT_ENTRIES - tw__outbox_reserve(boxes) - takes);
	tw_service_advance(rig.service, TW_NO_LIMIT);
	boxes->submit_limit = limit;
	rig_advance(&rig, 20 * MS);
}

Test(driver_young, order_holds_where_chunks_run_out)
{
	for (unsigned takes = 0; takes <= 3; takes++) {
		run_short_of_chunks(takes);
		expect_eq(rig.ran, 2);
		expect_eq(rig.events[0].id, 0);
		expect_eq(rig.events[1].id, 1);
		expect_eq(rig.events[0].at_ns, rig.events[1].at_ns);
	}
}

/* The producer packs its lane between two takes of a drain. */
static tw__entry_pack_fn *packs;
static struct tw__lane *packed;

static void schedule_and_cancel(int count)
{
	tw_timer timer;
	for (int i = 0; i < count; i++) {
		expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, &timer), 0);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	}
}

static unsigned pack_between(void *context, const struct tw__entry *entries, unsigned n,
			     struct tw__entry *out, unsigned kept)
{
	packed->pack = packs;
	schedule_and_cancel(700);
	return packs(context, entries, n, out, kept);
}

/* Most of the lane is dead, and it is long enough to be packed soon. */
static void prepare_packing(struct tw__lane *lane)
{
	schedule_and_cancel(2400);
	for (int i = 0; i < 900; i++)
		expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, NULL), 0);
	packed = lane;
	packs = lane->pack;
	lane->pack = pack_between;
}

/* What the packing has moved behind the place up to which the drain reads is not forgotten. */
Test(driver_young, a_packing_beside_a_drain_hides_nothing)
{
	reopen_rig(NULL);
	struct tw__lane *lane = &tw__local_of(rig.service)->lane;
	prepare_packing(lane);
	bool again = false;
	pthread_mutex_lock(&rig.service->driving);
	tw__drain(rig.service, false, &again);
	pthread_mutex_unlock(&rig.service->driving);
	expect_gt(tw__lane_backlog(lane), 0);
	expect_eq(again, true);
}

Test(driver_young, order_holds_where_a_packing_comes_between)
{
	prepare_packing(young());
	probes[0] = PROBE(&rig, 0);
	probes[1] = PROBE(&rig, 1);
	probe_schedule(&probes[0], 60 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + 50 * MS), 0);
	probe_schedule(&probes[1], 10 * MS);
	tw_service_advance(rig.service, TW_NO_LIMIT);
	expect_eq(packed->pack == packs, true);
	rig_advance(&rig, 20 * MS);
	expect_eq(rig.ran, 2);
	expect_eq(rig.events[0].id, 0);
	expect_eq(rig.events[0].at_ns, rig.events[1].at_ns);
}

/* The entry of a timer that was moved is in the lane, and must not be missed or taken for it. */
Test(driver_young, timers_that_are_moved_fire_once_and_in_time)
{
	uint64_t seed = 7;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], 100 * MS + random_below(&seed, 300 * MS));
	}
	for (int round = 0; round < 30; round++) {
		for (int i = round; i < COUNT; i += 30) {
			due_ns[i] = rig_now(&rig) + 1 + random_below(&seed, 500 * MS);
			expect_eq(tw_reset_at(rig.service, probes[i].timer, due_ns[i]), 0);
		}
		rig_advance(&rig, MS);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, COUNT);
	for (int i = 0; i < COUNT; i++)
		expect_ran_at(&probes[i], rig_tick_of(&rig, due_ns[i]));
}

/* A lane most of which lives is read as it comes, a part in each tick, and so is what follows. */
Test(driver_young, a_long_lane_is_read)
{
	for (int i = 0; i < 5 * LONG; i++) {
		expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, NULL), 0);
		if (i % 10000 == 0)
			rig_advance(&rig, MS);
	}
	expect_lt(tw__lane_backlog(young()), LONG / 12); /* 8 bytes in the wheel, 16 here */
	expect_gt(in_wheel(), 4 * LONG);
}

/* But no turn takes much longer for it (G12). */
Test(driver_young, a_turn_reads_a_part_of_a_long_lane)
{
	for (int i = 0; i < LONG; i++)
		expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, NULL), 0);
	for (uint64_t before = 0, turn = 0; turn < 50; turn++, before = in_wheel()) {
		expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + MS), 0);
		tw_service_advance(rig.service, TW_NO_LIMIT);
		expect_le(in_wheel() - before, LONG / 5);
	}
	expect_lt(tw__lane_backlog(young()), LONG / 12);
}

/* Asleep, too: nobody schedules any more, and so nobody packs. */
Test(driver_young, the_dead_of_a_lane_are_dropped)
{
	static tw_timer timers[20 * COUNT];
	for (int i = 0; i < 20 * COUNT; i++)
		expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, &timers[i]), 0);
	for (int i = 0; i < 20 * COUNT; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
	for (int i = 0; i < 200; i++)
		rig_advance(&rig, MS);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_le(stats.entries, ALLOWED);
}

/* The driver remembers TW__EPOCHS numbers of the gate: a lane is read before that. */
Test(driver_young, a_lane_is_read_before_its_epochs_are_forgotten)
{
	expect_eq(tw_schedule(rig.service, HOUR, nothing, NULL, NULL), 0);
	for (unsigned i = 0; i < TW__EPOCHS; i++) {
		tw__gate_publish(&rig.service->gate, TW__GATE_ACCEPTING);
		rig_advance(&rig, MS);
	}
	expect_eq(tw__lane_backlog(young()), 0);
	expect_eq(in_wheel(), 1);
}

static void *schedule_and_exit(void *arg)
{
	(void)arg;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		due_ns[i] = rig_now(&rig) + (uint64_t)(i % 100 + 1) * MS;
		probe_schedule(&probes[i], due_ns[i] - rig_now(&rig));
	}
	return NULL;
}

/* Its timers fire in time; and the thread that gets its lane next finds it in order. */
Test(driver_young, a_thread_exits_with_a_full_lane)
{
	for (int round = 0; round < 3; round++) {
		pthread_t thread;
		rig.ran = 0;
		pthread_create(&thread, NULL, schedule_and_exit, NULL);
		pthread_join(thread, NULL);
		for (int ms = 0; ms < 100; ms++)
			rig_advance(&rig, MS);
		expect_in_time_and_order();
	}
}

static void expect_close(enum tw_close_mode mode, uint64_t ran)
{
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], HOUR);
	}
	expect_gt(tw__lane_backlog(young()), 0);
	expect_eq(tw_service_close(rig.service, mode, 0), 0);
	expect_eq(rig.ran, ran);
	for (int i = 0; i < COUNT; i++)
		expect_eq(atomic_load(&probes[i].releases), 1);
}

Test(driver_young, a_close_runs_what_is_in_a_lane)
{
	expect_close(TW_CLOSE_RUN, COUNT);
}

Test(driver_young, a_close_drops_what_is_in_a_lane)
{
	expect_close(TW_CLOSE_DROP, 0);
}
