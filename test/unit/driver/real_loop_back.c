/*
 * A timer is armed again by one thread, and moved to earlier by another before the entry of the
 * arming is in its lane. The loop, which has met the entry of the move first, must not sleep until
 * something else is due.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test/support/by_hand.h"
#include "test/support/interleave.h"
#include "test/support/queue_executor.h"

TestSuite(driver_real_loop_back, .timeout = 120);

enum { PATIENCE_MS = 3000 };

#define HOUR (3600 * TW_SECOND)

struct moved {
	tw_service *service;
	struct queue_executor queue;
	int fd;
	tw_timer timer;
	atomic_int runs, runs_then; /* then: when the other thread moved it */
	atomic_int answer;
	bool arms_itself;
};

static void run(void *arg)
{
	struct moved *moved = arg;
	moved->runs++;
	if (moved->arms_itself)
		tw_reset(moved->service, moved->timer, 2 * HOUR);
	moved->answer = -EBUSY; /* the last call of a run counts */
}

static void run_ticket(void *arg)
{
	struct moved *moved = arg;
	expect_eq(queue_executor_run_next(&moved->queue) >= 0, true);
}

/* By another thread, which turns the loop, too: the entry of the move has left its lane then. */
static void move_and_turn(void *arg)
{
	struct moved *moved = arg;
	atomic_store(&moved->runs_then, atomic_load(&moved->runs));
	moved->answer = tw_reset(moved->service, moved->timer, 20 * TW_MILLISECOND);
	tw_service_advance(moved->service, TW_NO_LIMIT);
}

/* Turns the loop until the executor has a ticket. False: the loop sleeps on. */
static bool comes_due(struct moved *moved)
{
	while (!queue_executor_waiting(&moved->queue)) {
		if (!readable(moved->fd, PATIENCE_MS))
			return false;
		expect_ge(tw_service_advance(moved->service, TW_NO_LIMIT), 0);
	}
	return true;
}

static bool runs_again(struct moved *moved)
{
	while (moved->runs == moved->runs_then) {
		if (!comes_due(moved))
			return false;
		run_ticket(moved);
	}
	return true;
}

/* Something else is due in an hour. The timer has been moved to earlier before. */
static void move_at_each_point(struct tw_task task, bool arms_itself)
{
	struct moved moved = {.arms_itself = arms_itself};
	struct tw_service_config cfg = {.size = sizeof cfg, .drive = TW_DRIVE_MANUAL};
	queue_executor_open(&moved.queue);
	cfg.executor = &moved.queue.base;
	expect_eq(tw_service_create(&moved.service, &cfg), 0);
	moved.fd = tw_service_fd(moved.service);
	expect_eq(tw_schedule(moved.service, HOUR, nothing, NULL, NULL), 0);
	task.size = sizeof task;
	task.fn = run;
	task.arg = &moved;
	expect_eq(tw_schedule_task(moved.service, &task, &moved.timer), 0);
	bool stopped = true;
	for (unsigned nth = 1, moves = 0; stopped || moves == 0; nth++) {
		expect_eq(tw_reset(moved.service, moved.timer, TW_MILLISECOND), 0);
		expect_eq(comes_due(&moved), true);
		stopped = interleave(nth, run_ticket, &moved, move_and_turn, &moved);
		moves += moved.answer == 0;
		/* beside each other, who of the two came last is not known */
		bool counts = INTERLEAVES && moved.answer == 0;
		expect_eq(!counts || runs_again(&moved), true);
	}
	tw_service_close(moved.service, TW_CLOSE_DROP, 0);
	while (queue_executor_run_next(&moved.queue) >= 0)
		;
	expect_eq(tw_service_destroy(moved.service), 0);
	queue_executor_close(&moved.queue);
}

Test(driver_real_loop_back, does_not_sleep_past_a_timer_that_is_moved_to_earlier)
{
	struct tw_period period = {
	    .size = sizeof period, .first_ns = 3 * HOUR, .period_ns = 2 * HOUR};
	move_at_each_point((struct tw_task){.period = &period}, false);
	move_at_each_point((struct tw_task){.when_ns = 3 * HOUR}, true);
	move_at_each_point((struct tw_task){.when_ns = 3 * HOUR, .flags = TW_TASK_PERSISTENT},
			   true);
}
