/*
 * Where the entry that counts stands: timers with several entries, in lanes, in the wheel, in
 * batches and with workers, of which the driver keeps locations (wheel/driver/resolve.c).
 */
#include <pthread.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(driver_locations, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    /* in its bucket */
    {"a series goes on whose entry is met while it runs",
     {{"given queued; timer 0 first=100 every=10000 plain {pass 6000; poll}; hold; drive 100", ""},
      {"reset 0 by=10000; reset 0 by=5000; hold; drive 1; reset 0 at=101; next", "@101 run 0"},
      {"advance 20000", "@10101 run 0, @20101 run 0"}}},
    /* among the late, earlier than it was due */
    {"the same where it is moved to the past",
     {{"given queued; timer 0 first=100 every=10000 plain {pass 1; poll}; hold; drive 100", ""},
      {"hold; drive 20; reset 0 at=50; expiry; next", "@120 now, run 0 late=70"},
      {"advance 20000", "@10050 run 0, @20050 run 0"}}},
    {"the same where it is met by a look ahead",
     {{"given queued; timer 0 first=100 every=10000 plain {expiry}; hold; drive 100", ""},
      {"reset 0 by=10000; reset 0 by=5000; hold; drive 1; reset 0 at=101; next",
       "@101 run 0, never"},
      {"advance 20000", "@10101 run 0, @20101 run 0"}}},
    {"a one-shot that arms itself then runs again",
     {{"given queued; timer 0 in=100 plain {pass 6000; poll; reset 0 by=1000}; hold; drive 100",
       ""},
      {"reset 0 by=10000; reset 0 by=5000; hold; drive 1; reset 0 at=101; next", "@101 run 0"},
      {"advance 20000", "@7101 run 0"}}},
};

Test(driver_locations, a_timer_goes_on_whose_entry_was_met_while_it_ran)
{
	PLAY(&timer_stage, NULL, scripts);
}

/*
 * Far away and near again while its entry is in a batch, or waits for an executor: it has that
 * entry, and needs no other.
 */
static void move_to_and_fro(size_t refuse, bool persistent)
{
	struct probe probe = PROBE(&rig, 1);
	reopen_on_queue();
	queue.refuse = refuse;
	if (persistent)
		create(&probe, TW_NEVER);
	else
		probe_schedule(&probe, MS);
	for (int i = 0; i < 5000; i++) {
		arm(&probe, i % 2 ? 10 * SECOND : 20 * HOUR);
		arm(&probe, MS);
		rig_advance(&rig, 2 * MS);
	}
	const struct tw__wheel *wheel = &rig.service->driver->wheel;
	expect_le(wheel->arena_chunks - tw__wheel_chunks_left(wheel), 8);
	queue.refuse = 0;
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_eq(probe.runs, 1);
	expect_eq(tw_is_pending(rig.service, probe.timer), false);
}

Test(driver_locations, a_timer_that_is_moved_while_it_waits_takes_no_more_room)
{
	for (int i = 0; i < 4; i++)
		move_to_and_fro(i % 2 ? SIZE_MAX : 0, i / 2);
}

static void *move_near(void *probe)
{
	arm(probe, MS);
	return NULL;
}

/*
 * Back from a worker with a far deadline, and moved near before the driver has seen either. By the
 * worker's own thread, whose lane brings both; or by another, whose lane is newer and so is read
 * first.
 */
Test(driver_locations, a_timer_that_comes_back_far_and_is_moved_near_runs_in_its_tick)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, rate_of(MS, 20 * HOUR, 0));
	for (int i = 1; i <= 100; i++) {
		pthread_t thread;
		rig_advance(&rig, MS);
		expect_eq(probe.runs, i);
		if (i <= 50)
			move_near(&probe);
		else if (pthread_create(&thread, NULL, move_near, &probe) == 0)
			pthread_join(thread, NULL);
	}
}

/* To instants that are all past, ever earlier: one entry among the late will do. */
Test(driver_locations, a_timer_that_is_moved_to_the_past_again_and_again_keeps_one_entry)
{
	struct probe probe = PROBE(&rig, 1);
	uint64_t unused;
	probe_schedule(&probe, HOUR);
	rig_advance(&rig, 2 * SECOND);
	for (uint64_t i = 1; i <= 1000; i++) {
		expect_eq(tw_reset_at(rig.service, probe.timer, RIG_START_NS + 2 * SECOND - i * MS),
			  0);
		expect_eq(tw_service_next_expiry(rig.service, &unused), 0);
	}
	expect_le(rig.service->driver->wheel.entries, 2);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 1);
}
