/* Closes beside a callback that does not return: each close answers in time, and truly. */
#include <errno.h>
#include <poll.h>

#include "test/support/closing.h"
#include "test/support/gates.h"
#include "wheel/core/service.h"

TestSuite(close_real_blocked, .timeout = 60);

static tw_service *service;
static atomic_int stood, runs;

static void open_gated(tw_service *opened)
{
	open_gates();
	stood = runs = 0;
	service = opened;
}

static tw_service *open_inline(void)
{
	tw_service *opened;
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&opened, &cfg), 0);
	return opened;
}

static void schedule_counted(uint64_t delay_ns)
{
	expect_eq(tw_schedule(service, delay_ns, count, &runs, NULL), 0);
}

/* A callback that does not return before go_on is posted. */
static void block(void)
{
	expect_eq(tw_schedule(service, 0, stand_still, &stood, NULL), 0);
	await(&entered, 1);
}

/* Each answers in time, and truly. */
static void expect_no_end(void)
{
	for (int mode = TW_CLOSE_DRAIN; mode >= TW_CLOSE_DROP; mode--) {
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 20 * MS), -ETIMEDOUT);
		expect_eq(tw_service_close(service, (enum tw_close_mode)mode, 0), -ETIMEDOUT);
	}
}

Test(close_real_blocked, are_not_held_up_by_a_callback_in_the_pool)
{
	open_gated(open_service(2));
	block();
	schedule_counted(HOUR);
	do /* what is pending may have to wait until the tick thread gets a processor */
		expect_no_end();
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
	tw_manual *queue;
	tw_timer later, queued;
	open_gated(open_inline());
	expect_eq(tw_manual_create(&queue, NULL), 0);
	struct tw_task task = {
	    .size = sizeof(task), .fn = count, .arg = &runs, .executor = tw_manual_executor(queue)};
	struct pollfd readable = {.fd = tw_manual_fd(queue), .events = POLLIN};
	expect_eq(tw_schedule_task(service, &task, &queued), 0);
	expect_eq(poll(&readable, 1, -1), 1);
	expect_eq(tw_schedule(service, HOUR, count, &runs, &later), 0);
	block();
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
	open_gated(open_service(1));
	block();
	for (int i = 0; i < 300; i++)
		schedule_counted(HOUR);
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
	struct closing run;
	open_gated(open_inline());
	schedule_counted(HOUR);
	block();
	closing_start(&run, service, TW_CLOSE_RUN, TW_FOREVER);
	while (tw_load_acquire(&service->phase.closing) == 0)
		sched_yield();
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, 20 * MS), -ETIMEDOUT);
	expect_eq(stats_of(service).pending, 0);
	schedule_counted(0); /* the gate is open still: the tick thread could not close it */
	sem_post(&go_on);
	expect_eq(closing_end(&run), 0);
	expect_eq(runs, 0);
	expect_eq(stats_of(service).dropped, 2);
	expect_eq(tw_service_destroy(service), 0);
}

static void *advance(void *unused)
{
	tw_service_advance(service, TW_NO_LIMIT);
	return unused;
}

/* Nobody could close the gate, so it accepts. What it accepts does not run. */
static void expect_refusal_to_wait(enum tw_drive drive)
{
	tw_service *opened;
	pthread_t driver;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .executor = tw_executor_inline(), .drive = drive};
	expect_eq(tw_service_create(&opened, &cfg), 0);
	open_gated(opened);
	expect_eq(tw_schedule_at(service, 0, stand_still, &stood, NULL), 0);
	if (drive == TW_DRIVE_MANUAL)
		expect_eq(pthread_create(&driver, NULL, advance, NULL), 0);
	await(&entered, 1);
	expect_no_end();
	expect_eq(tw_schedule_at(service, 0, count, &runs, NULL), 0);
	sem_post(&go_on);
	if (drive == TW_DRIVE_MANUAL) {
		pthread_join(driver, NULL);
		tw_service_advance(service, TW_NO_LIMIT);
	}
	close_service(service);
	expect_eq(stood, 1);
	expect_eq(runs, 0);
}

Test(close_real_blocked, are_not_held_up_by_a_callback_on_the_driver)
{
	expect_refusal_to_wait(TW_DRIVE_THREAD);
	expect_refusal_to_wait(TW_DRIVE_MANUAL);
}

/* ------------------------------------------------------------ arming again */

static atomic_int released;

static void rearm_and_stand_still(void *arg)
{
	tw_reset(service, tw_self(), 0);
	stand_still(arg);
}

static void note_release(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	released++;
}

static void expect_last_run(struct tw_task task)
{
	open_gated(open_inline());
	released = 0;
	task.size = sizeof task;
	task.arg = &stood;
	task.release = note_release;
	expect_eq(tw_schedule_task(service, &task, NULL), 0);
	await(&entered, 1);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	sem_post(&go_on);
	while (!released)
		sched_yield();
	expect_eq(stood, 1);
	close_service(service);
}

/* The callback is left, and sees the gate open: its release follows all the same. */
Test(close_real_blocked, a_callback_that_is_left_does_not_arm_its_timer_again)
{
	const struct tw_period period = {.size = sizeof period, .period_ns = MS};
	expect_last_run((struct tw_task){.fn = rearm_and_stand_still});
	expect_last_run((struct tw_task){.fn = stand_still, .period = &period});
	expect_last_run((struct tw_task){.fn = rearm_and_stand_still, .flags = TW_TASK_PERSISTENT});
}
