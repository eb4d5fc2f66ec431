/* Sweeps: entries of cancelled timers go, entries of live timers stay. */
#include <stdlib.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

TestSuite(driver_sweep, .init = open_rig, .fini = close_rig, .timeout = 60);

enum { LIVE = 3000, FEW_DEAD = 50000, MANY_DEAD = 400000 };

static struct probe probes[LIVE];

/*
 * Timers of every kind whose location the driver stores: plain, moved later, moved to and fro, far,
 * far and moved near.
 */
static uint64_t arm_one_kind(struct probe *probe, int kind)
{
	uint64_t delay_ns = 2 * SECOND + (uint64_t)probe->id * MS, far_ns = 20 * HOUR;
	probe_schedule(probe, kind >= 3 ? far_ns : delay_ns);
	if (kind == 1 || kind == 2)
		expect_eq(tw_reset(rig.service, probe->timer, delay_ns + 60 * SECOND), 0);
	if (kind == 2 || kind == 4)
		expect_eq(tw_reset(rig.service, probe->timer, delay_ns), 0);
	return rig_now(&rig) + (kind == 1 ? delay_ns + 60 * SECOND : kind == 3 ? far_ns : delay_ns);
}

/*
 * One turn of the driver, without the look ahead by which a manual clock's advance finds its next
 * stop: that drops dead entries too.
 */
static void turn_running(int runs)
{
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + MS), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), runs);
}

static void turn(void)
{
	turn_running(0);
}

static void churn(int dead)
{
	struct probe never = PROBE(&rig, -1);
	tw_timer *timers = calloc((size_t)dead, sizeof *timers);
	for (int i = 0; i < dead; i++)
		expect_eq(tw_schedule(rig.service, HOUR + (uint64_t)i * 1000, probe_run, &never,
				      &timers[i]),
			  0);
	turn();
	for (int i = 0; i < dead; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
	for (int turns = 0; turns < 500; turns++)
		turn();
	free(timers);
}

static void sweep_keeps_the_living(int dead)
{
	reopen_rig(NULL);
	static uint64_t due_ns[LIVE];
	churn(2 * LIVE); /* slots of later generations */
	for (int i = 0; i < LIVE; i++) {
		probes[i] = PROBE(&rig, i);
		due_ns[i] = arm_one_kind(&probes[i], i % 5);
	}
	churn(dead);
	expect_le(stats_of(rig.service).entries, 2 * LIVE + 4096);
	for (int i = 0; i < LIVE; i++)
		expect_eq(tw_is_pending(rig.service, probes[i].timer), true);
	rig_advance(&rig, 21 * HOUR);
	expect_eq(rig.ran, LIVE);
	for (int i = 0; i < LIVE; i++)
		expect_ran_at(&probes[i], due_ns[i]);
}

Test(driver_sweep, keeps_what_lives_among_few_slots)
{
	sweep_keeps_the_living(FEW_DEAD);
}

Test(driver_sweep, keeps_what_lives_among_many_slots)
{
	sweep_keeps_the_living(MANY_DEAD);
}

/* Slots that are reused within one drain: the last owner of each lives, and runs. */
Test(driver_sweep, the_last_owner_of_a_slot_runs)
{
	struct probe *last = &probes[0], *never = &probes[1];
	*last = PROBE(&rig, 1);
	*never = PROBE(&rig, 0);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3000; i++) {
			tw_timer timer;
			expect_eq(tw_schedule(rig.service, SECOND, probe_run, never, &timer), 0);
			expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
		}
		probe_schedule(last, SECOND);
		rig_advance(&rig, SECOND);
		expect_eq(atomic_load(&last->runs), round + 1);
	}
	expect_eq(atomic_load(&never->runs), 0);
}

/* A server's load: some of many timers are cancelled, and scheduled anew, between two turns. */
enum { CHURNED = 20000, A_TURN = 2000 };

static struct probe churned[CHURNED];

static void churn_on(void)
{
	static uint64_t random = 1;
	for (int i = 0; i < CHURNED; i++) {
		churned[i] = PROBE(&rig, i);
		probe_schedule(&churned[i], HOUR);
	}
	turn();
	for (int turns = 0; turns < 500; turns++) {
		for (int i = 0; i < A_TURN; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			struct probe *probe = &churned[(random >> 33) % CHURNED];
			expect_eq(tw_cancel(rig.service, probe->timer), TW_CANCELLED);
			probe_schedule(probe, HOUR);
		}
		turn();
		expect_le(stats_of(rig.service).entries,
			  2 * CHURNED + 4096 + 16 * 2 * A_TURN); /* looked at each 16th turn */
	}
}

Test(driver_sweep, keeps_up_with_a_churn)
{
	churn_on();
	for (int i = 0; i < CHURNED; i++)
		expect_eq(tw_is_pending(rig.service, churned[i].timer), true);
	rig_advance(&rig, HOUR);
	expect_eq(rig.ran, CHURNED);
}

/* Nothing is scheduled any more. */
Test(driver_sweep, drops_what_is_cancelled_after_a_churn)
{
	churn_on();
	for (int i = 0; i < CHURNED; i++)
		if (i % 10)
			expect_eq(tw_cancel(rig.service, churned[i].timer), TW_CANCELLED);
	for (int turns = 0; turns < 200; turns++)
		turn();
	expect_le(stats_of(rig.service).entries, 2 * CHURNED / 10 + 4096);
	rig_advance(&rig, HOUR);
	expect_eq(rig.ran, CHURNED / 10);
}

/*
 * A timer that is moved to earlier a tick at a time stays where it stands, as long as that bucket
 * will be met in time.
 */
Test(driver_sweep, has_nothing_to_do_after_moves_within_a_bucket)
{
	enum { MOVES = 20000, MOVED = 16 };
	struct probe moved[MOVED];
	uint64_t last_ns = rig_now(&rig) + 9 * HOUR;
	for (int k = 0; k < MOVED; k++) {
		moved[k] = PROBE(&rig, k);
		probe_schedule_at(&moved[k], last_ns);
	}
	for (int i = 0; i < MOVES; i++) {
		last_ns -= MS;
		for (int k = 0; k < MOVED; k++)
			expect_eq(
			    tw_reset_at(rig.service, moved[k].timer, last_ns + (uint64_t)k * MS),
			    0);
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
		/* the first, and where two buckets were met */
		expect_le(stats_of(rig.service).entries, 3 * MOVED);
	}
	rig_advance_to(&rig, last_ns + MOVED * MS);
	expect_eq(rig.ran, MOVED);
	for (int k = 0; k < MOVED; k++)
		expect_ran_at(&moved[k], last_ns + (uint64_t)k * MS);
}

/*
 * A series that is run early leaves an entry in the bucket of its next instant, and is armed again
 * for that instant. The next early run does the same. All these entries are of one live timer in
 * that bucket. A sweep leaves one of them, and then there is nothing more to sweep.
 */
Test(driver_sweep, leaves_one_entry_of_a_timer_in_a_bucket)
{
	enum { SERIES = 3000, CALLS = 5 };
	static struct probe called[SERIES];
	struct tw_period hourly = {
	    .size = sizeof hourly, .first_ns = 2 * HOUR, .period_ns = 2 * HOUR};
	for (int i = 0; i < SERIES; i++) {
		called[i] = PROBE(&rig, i);
		expect_eq(tw_schedule_every(rig.service, &hourly, probe_run, &called[i],
					    &called[i].timer),
			  0);
	}
	turn();
	for (int calls = 0; calls < CALLS; calls++) {
		for (int i = 0; i < SERIES; i++)
			expect_eq(tw_reset_at(rig.service, called[i].timer, rig_now(&rig) + MS), 0);
		turn_running(SERIES);
		turn();
	}
	for (int i = 0; i < 100; i++)
		turn();
	expect_le(stats_of(rig.service).entries, 2 * SERIES + 4096);
	expect_eq(tw__wheel_sweeping(&rig.service->driver->wheel), false);
	rig_advance(&rig, 2 * HOUR);
	for (int i = 0; i < SERIES; i++)
		expect_eq(called[i].runs, CALLS + 1);
}

/*
 * A sweep goes through a bucket in steps. Between two of them a timer whose entry it has met leaves
 * the bucket, that entry is dropped by a look ahead, and the timer comes back: its new entry, which
 * the sweep meets next, is the only one.
 */
Test(driver_sweep, keeps_a_timer_that_comes_back_between_its_steps)
{
	enum { MANY = 30000, STAY = 10000 };
	static tw_timer many[MANY];
	reopen_on_queue();
	struct probe called = PROBE(&rig, 1), never = PROBE(&rig, -1);
	struct tw_period hourly = {
	    .size = sizeof hourly, .first_ns = 2 * HOUR, .period_ns = 2 * HOUR};
	expect_eq(tw_schedule_every(rig.service, &hourly, probe_run, &called, &called.timer), 0);
	/* from here on there is a location */
	expect_eq(tw_reset(rig.service, called.timer, 2 * HOUR - MS), 0);
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_schedule(rig.service, 2 * HOUR, probe_run, &never, &many[i]), 0);
	turn();
	for (int i = STAY; i < MANY; i++)
		expect_eq(tw_cancel(rig.service, many[i]), TW_CANCELLED);

	const struct tw__wheel *wheel = &rig.service->driver->wheel;
	const struct tw__location *location = &rig.service->slots.locations[TW__SLOT_FIRST];
	for (int turns = 0;
	     turns < 100 && !(wheel->sweep_at && location->pass == wheel->sweep_pass); turns++)
		turn();
	uint64_t pass = location->pass, unused;
	expect_eq(tw_reset_at(rig.service, called.timer, rig_now(&rig) + MS), 0);
	turn_running(1);
	uint64_t entries = wheel->entries;
	expect_eq(tw_service_next_expiry(rig.service, &unused), 0);
	expect_eq(wheel->entries, entries - 1); /* the old one */
	expect_eq(queue_executor_run_next(&queue), 1);
	turn();
	expect_eq(wheel->sweep_at != NULL, true);
	expect_eq(wheel->sweep_pass, pass); /* else the sweep was through, or began again */

	while (tw__wheel_sweeping(&rig.service->driver->wheel))
		turn();
	for (int i = 0; i < STAY; i++)
		expect_eq(tw_cancel(rig.service, many[i]), TW_CANCELLED);
	rig_advance(&rig, 2 * HOUR);
	queue_executor_run_all(&queue);
	expect_eq(called.runs, 2);
}

/*
 * The last resort, between two looks at whether to sweep: a driver that finds no room in the wheel
 * for what lanes hold sweeps all of it, there and then.
 */
enum { FILL = 120000 /* timers of a turn, each of a slot of its own */ };

static void fill_a_turn(struct probe *survivor)
{
	static tw_timer timers[FILL];
	struct probe never = PROBE(&rig, -1);
	probe_schedule(survivor, SECOND);
	for (int i = 0; i < FILL; i++)
		expect_eq(tw_schedule(rig.service, SECOND, probe_run, &never, &timers[i]), 0);
	turn();
	for (int i = 0; i < FILL; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
}

Test(driver_sweep, a_wheel_full_of_dead_entries_is_swept_at_once)
{
	enum { TURNS = 15 };
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = FILL + TURNS;
	cfg.buckets = 64;
	reopen_rig(&cfg);
	uint64_t most = 0, before = 0, gone = 0;
	for (int turns = 0; turns < TURNS; turns++) {
		probes[turns] = PROBE(&rig, turns);
		fill_a_turn(&probes[turns]);
		uint64_t entries = stats_of(rig.service).entries;
		most = entries > most ? entries : most;
		gone = before > entries && before - entries > gone ? before - entries : gone;
		before = entries;
	}
	expect_gt(most, 900000); /* else the wheel was never full */
	expect_gt(gone, most / 2);
	rig_advance(&rig, 2 * SECOND);
	expect_eq(rig.ran, TURNS);
	expect_ids_ascend(&rig);
}
