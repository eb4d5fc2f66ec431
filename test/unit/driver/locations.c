/*
 * Where the entry that counts stands: timers with several entries, in lanes, in the wheel, in
 * batches and with workers, of which the driver keeps locations (wheel/driver/resolve.c).
 */
#include <errno.h>
#include <pthread.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

TestSuite(driver_locations, .init = open_rig, .fini = close_rig, .timeout = 30);

static void open_with(void)
{
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	cfg.max_timers = 1024;
	reopen_rig(&cfg);
}

static void close_with(void)
{
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0) == 0 ||
		      queue_executor_waiting(&queue) > 0,
		  true);
	while (queue_executor_run_next(&queue) != -ENOENT) {
	}
}

/* ------------------------------------------------ met while the timer runs */

/* The driver goes on while the callback runs, and meets another entry of its timer. */
static void turn_by_6_s(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 6 * SECOND);
	tw_service_advance(probe->rig->service, TW_NO_LIMIT);
}

static void turn_by_6_s_and_reset(struct probe *probe)
{
	turn_by_6_s(probe);
	tw_reset(probe->rig->service, probe->timer, SECOND);
}

static void turn_by_a_tick(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + MS);
	tw_service_advance(probe->rig->service, TW_NO_LIMIT);
}

static void look_ahead(struct probe *probe)
{
	uint64_t unused;
	tw_service_next_expiry(probe->rig->service, &unused);
}

/*
 * While its entry is in a batch that nobody has run yet, moves the timer to 10 s, to 5 s, and to
 * due immediately.
 */
static void move_in_the_wheel(struct probe *probe)
{
	expect_eq(tw_reset(rig.service, probe->timer, 10 * SECOND), 0);
	expect_eq(tw_reset(rig.service, probe->timer, 5 * SECOND), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_reset_at(rig.service, probe->timer, rig_now(&rig)), 0);
}

static void move_to_the_past(struct probe *probe)
{
	rig_advance(&rig, 20 * MS);
	/* earlier than it was due */
	expect_eq(tw_reset_at(rig.service, probe->timer, RIG_START_NS + 50 * MS), 0);
	look_ahead(probe);
}

static void expect_to_go_on(bool series, void (*act)(struct probe *), void (*move)(struct probe *))
{
	open_with();
	struct probe probe = PROBE(&rig, 1);
	probe.act = act;
	if (series)
		probe_schedule_every(&probe, rate_of(100 * MS, 10 * SECOND, 0));
	else
		probe_schedule(&probe, 100 * MS);
	rig_advance(&rig, 100 * MS);
	move(&probe);
	expect_eq(queue_executor_run_next(&queue), 1);
	probe.act = NULL;
	for (int second = 0; second < 30; second++) {
		rig_advance(&rig, SECOND);
		queue_executor_run_all(&queue);
	}
	expect_ge(probe.runs, 2);
	expect_eq(tw_is_pending(rig.service, probe.timer), series);
	close_with();
}

Test(driver_locations, a_timer_goes_on_whose_entry_was_met_while_it_ran)
{
	expect_to_go_on(true, turn_by_6_s, move_in_the_wheel);   /* in its bucket */
	expect_to_go_on(true, turn_by_a_tick, move_to_the_past); /* among the late */
	expect_to_go_on(true, look_ahead, move_in_the_wheel);
	expect_to_go_on(false, turn_by_6_s_and_reset, move_in_the_wheel);
}

/* ------------------------------------------------------ moved while it waits */

/* Reserved with the probe, and not armed yet. */
static void probe_persist(struct probe *probe)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = probe_run,
			       .arg = probe,
			       .when_ns = TW_NEVER,
			       .flags = TW_TASK_PERSISTENT};
	expect_eq(tw_schedule_task(probe->rig->service, &task, &probe->timer), 0);
}

/*
 * Far away and near again while its entry is in a batch, or waits for an executor: it has that
 * entry, and needs no other.
 */
static void move_to_and_fro(size_t refuse, bool persistent)
{
	enum { ROUNDS = 5000 };
	open_with();
	queue.refuse = refuse;
	struct probe probe = PROBE(&rig, 1);
	if (persistent)
		probe_persist(&probe);
	else
		probe_schedule(&probe, MS);
	for (int i = 0; i < ROUNDS; i++) {
		expect_eq(tw_reset(rig.service, probe.timer, i % 2 ? 10 * SECOND : 20 * HOUR), 0);
		expect_eq(tw_reset(rig.service, probe.timer, MS), 0);
		rig_advance(&rig, 2 * MS);
	}
	uint64_t held = rig.service->driver->wheel.arena_chunks -
			tw__wheel_chunks_left(&rig.service->driver->wheel);
	expect_le(held, 8);
	queue.refuse = 0;
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_eq(probe.runs, 1);
	expect_eq(tw_is_pending(rig.service, probe.timer), false);
	close_with();
}

Test(driver_locations, a_timer_that_is_moved_while_it_waits_takes_no_more_room)
{
	for (int i = 0; i < 4; i++)
		move_to_and_fro(i % 2 ? SIZE_MAX : 0, i / 2);
}

static void *move_near(void *arg)
{
	struct probe *probe = arg;
	probe->answer = tw_reset(probe->rig->service, probe->timer, MS);
	return NULL;
}

/*
 * Back from a worker with a far deadline, and moved near before the driver has seen either. By the
 * worker's own thread, whose lane brings both; or by another, whose lane is newer and so is read
 * first.
 */
static void come_back_far_and_be_moved(bool by_another)
{
	reopen_rig(NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, rate_of(MS, 20 * HOUR, 0));
	for (int i = 1; i <= 50; i++) {
		rig_advance(&rig, MS);
		expect_eq(probe.runs, i);
		pthread_t thread;
		if (!by_another)
			move_near(&probe);
		else
			expect_eq(pthread_create(&thread, NULL, move_near, &probe) ||
				      pthread_join(thread, NULL),
				  0);
		expect_eq(probe.answer, 0);
	}
}

Test(driver_locations, a_timer_that_comes_back_far_and_is_moved_near_runs_in_its_tick)
{
	come_back_far_and_be_moved(false);
	come_back_far_and_be_moved(true);
}

/*
 * To instants that are all past, ever earlier, with no turn between: one entry among the late will
 * do.
 */
Test(driver_locations, a_timer_that_is_moved_to_the_past_again_and_again_keeps_one_entry)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, HOUR);
	rig_advance(&rig, 2 * SECOND);
	for (uint64_t i = 1; i <= 1000; i++) {
		expect_eq(tw_reset_at(rig.service, probe.timer, RIG_START_NS + 2 * SECOND - i * MS),
			  0);
		look_ahead(&probe);
	}
	expect_le(rig.service->driver->wheel.entries, 2);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 1);
}
