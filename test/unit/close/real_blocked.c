/* Closes beside a callback that does not return: each close answers in time, and truly. */
#include <errno.h>
#include <poll.h>

#include "test/support/closing.h"
#include "test/support/gates.h"
#include "wheel/core/service.h"

TestSuite(close_real_blocked, .timeout = 60);

static tw_service *open_inline(void)
{
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/* Each answers in time, and truly. */
static void expect_no_end(tw_service *service)
{
	for (int mode = TW_CLOSE_DRAIN; mode >= TW_CLOSE_DROP; mode--) {
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 20 * MS), -ETIMEDOUT);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 0), -ETIMEDOUT);
	}
}

Test(close_real_blocked, are_not_held_up_by_a_callback_in_the_pool)
{
	open_gates();
	tw_service *service = open_service(2);
	atomic_int stood = 0, runs = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	do /* what is pending may have to wait until the tick thread gets a processor */
		expect_no_end(service);
	while (stats_of(service).pending);
	expect_eq(stats_of(service).scheduled, 2); /* one was dropped, and one runs */
	expect_eq(stats_of(service).dropped, 1);
	expect_eq(stats_of(service).fired, 0);
	sem_post(&go_on);
	close_service(service);
	expect_eq(runs, 0); /* the drain's time was up */
}

/* Neither a pending timer, nor one whose run waits in a queue. */
static void expect_none_left(enum tw_close_mode mode)
{
	open_gates();
	tw_service *service = open_inline();
	tw_manual *queue;
	atomic_int stood = 0, runs = 0;
	tw_timer later, queued;
	expect_eq(tw_manual_create(&queue, NULL), 0);
	struct tw_task task = {
	    .size = sizeof(task), .fn = count, .arg = &runs, .executor = tw_manual_executor(queue)};
	struct pollfd readable = {.fd = tw_manual_fd(queue), .events = POLLIN};
	expect_eq(tw_schedule_task(service, &task, &queued), 0);
	expect_eq(poll(&readable, 1, -1), 1);
	expect_eq(tw_schedule(service, HOUR, count, &runs, &later), 0);
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_service_close(service, mode, 20 * MS), -ETIMEDOUT);
	expect_eq(tw_is_pending(service, later), false);
	expect_eq(tw_is_pending(service, queued), false);
	expect_eq(stats_of(service).dropped, 2);
	expect_eq(tw_manual_pump(queue, TW_NO_LIMIT), 1);
	sem_post(&go_on);
	close_service(service);
	expect_eq(runs, 0);
	expect_eq(tw_manual_destroy(queue), 0);
}

Test(close_real_blocked, drop_what_is_left_though_the_tick_thread_is_in_a_callback)
{
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++)
		expect_none_left((enum tw_close_mode)mode);
}

/* Nothing starts after the answer, though one worker comes free and 300 runs waited for it. */
Test(close_real_blocked, a_run_that_has_timed_out_is_a_drop)
{
	open_gates();
	tw_service *service = open_service(1);
	atomic_int stood = 0, runs = 0;
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	for (int i = 0; i < 300; i++)
		expect_eq(tw_schedule(service, HOUR, count, &runs, NULL), 0);
	expect_eq(tw_service_close(service, TW_CLOSE_RUN, 50 * MS), -ETIMEDOUT);
	int runs_then = runs; /* the pool may grow */
	expect_eq(stats_of(service).dropped, 300 - runs_then);
	expect_eq(stats_of(service).pending, 0);
	sem_post(&go_on);
	close_service(service);
	expect_eq(runs, runs_then);
}

/* The mode is one for all: after the answer of any close nothing starts. */
Test(close_real_blocked, drain_whose_time_is_up_drops_what_another_close_would_run)
{
	open_gates();
	tw_service *service = open_inline();
	struct closing run;
	atomic_int stood = 0, runs = 0;
	tw_timer later;
	expect_eq(tw_schedule(service, HOUR, count, &runs, &later), 0);
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
	closing_start(&run, service, TW_CLOSE_RUN, TW_FOREVER);
	while (tw_load_acquire(&service->phase.closing) == 0)
		sched_yield();
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, 20 * MS), -ETIMEDOUT);
	expect_eq(tw_is_pending(service, later), false);
	/* the gate is open still: the tick thread could not close it */
	expect_eq(tw_schedule(service, 0, count, &runs, NULL), 0);
	sem_post(&go_on);
	expect_eq(closing_end(&run), 0);
	expect_eq(runs, 0);
	expect_eq(stats_of(service).dropped, 2);
	expect_eq(tw_service_destroy(service), 0);
}

static void *advance(void *service)
{
	tw_service_advance(service, TW_NO_LIMIT);
	return NULL;
}

/* Nobody could close the gate, so it accepts. What it accepts does not run. */
static void expect_refusal_to_wait(bool manual)
{
	open_gates();
	tw_service *service;
	pthread_t driver;
	atomic_int stood = 0, runs = 0;
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	cfg.drive = manual ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_schedule_at(service, 0, stand_still, &stood, NULL), 0);
	if (manual)
		expect_eq(pthread_create(&driver, NULL, advance, service), 0);
	await(&entered, 1);
	expect_no_end(service);
	expect_eq(tw_schedule_at(service, 0, count, &runs, NULL), 0);
	sem_post(&go_on);
	if (manual) {
		pthread_join(driver, NULL);
		tw_service_advance(service, TW_NO_LIMIT);
	}
	close_service(service);
	expect_eq(stood, 1);
	expect_eq(runs, 0);
}

Test(close_real_blocked, are_not_held_up_by_a_callback_on_the_driver)
{
	expect_refusal_to_wait(false);
	expect_refusal_to_wait(true);
}

/* ------------------------------------------------------------ arming again */

static tw_service *own_service;
static atomic_int begun, released;

static void rearm_and_stand_still(void *arg)
{
	tw_reset(own_service, tw_self(), 0);
	stand_still(arg);
}

static void note_release(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	released++;
}

static void expect_last_run(struct tw_task task)
{
	open_gates();
	own_service = open_inline();
	begun = released = 0;
	task.size = sizeof task;
	task.arg = &begun;
	task.release = note_release;
	expect_eq(tw_schedule_task(own_service, &task, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_service_close(own_service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	sem_post(&go_on);
	while (!released)
		sched_yield();
	expect_eq(begun, 1);
	close_service(own_service);
}

/* The callback is left, and sees the gate open: its release follows all the same. */
Test(close_real_blocked, a_callback_that_is_left_does_not_arm_its_timer_again)
{
	const struct tw_period period = {.size = sizeof period, .period_ns = MS};
	expect_last_run((struct tw_task){.fn = rearm_and_stand_still});
	expect_last_run((struct tw_task){.fn = stand_still, .period = &period});
	expect_last_run((struct tw_task){.fn = rearm_and_stand_still, .flags = TW_TASK_PERSISTENT});
}
