/*
 * A service with few timers has few chunks (wheel/service/create.c): they suffice whatever becomes
 * of the timers, also when the system gives no more.
 */
#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

enum { TIMERS = 60, EXECUTORS = 40 };

static struct queue_executor executors[EXECUTORS];
static struct probe probes[TIMERS], heartbeat;
static uint64_t seed;

static void open_few(void)
{
	struct tw_service_config cfg = rig_config();
	open_rig();
	for (int i = 0; i < EXECUTORS; i++)
		queue_executor_open(&executors[i]);
	cfg.max_timers = TIMERS + 1;
	cfg.executor = &queue.base;
	reopen_rig(&cfg);
	rig.service->slots.memory.wheel.many = 0; /* no more chunks than the slots' */
}

static void close_few(void)
{
	rig.service->slots.memory.wheel.many = 0;
	queue_executor_run_all(&queue);
	reopen_rig(NULL);
	for (int i = 0; i < EXECUTORS; i++)
		queue_executor_close(&executors[i]);
	close_rig();
}

TestSuite(driver_few, .init = open_few, .fini = close_few, .timeout = 120);

/* From a tick to thousands of years, so that each timer has a bucket of its own. */
static uint64_t any_delay(void)
{
	return random_next(&seed) % (UINT64_C(1) << (20 + random_below(&seed, 40)));
}

static void schedule_again(struct probe *probe)
{
	tw_cancel(rig.service, probe->timer);
	*probe = PROBE(&rig, 1);
	struct tw_task task = probe_task(probe);
	task.release = NULL;
	task.when_ns = any_delay();
	if (random_percent(&seed, 70))
		task.executor = &executors[random_below(&seed, EXECUTORS)].base;
	probe_schedule_task(probe, &task);
}

/* hang: some executors run nothing. */
static void do_anything(bool hang)
{
	struct probe *probe = &probes[random_below(&seed, TIMERS)];
	uint64_t first = hang ? EXECUTORS / 2 : 0;
	struct queue_executor *executor =
	    &executors[first + random_below(&seed, EXECUTORS - first)];
	switch (random_below(&seed, 8)) {
	case 0:
	case 1:
		schedule_again(probe);
		break;
	case 2:
	case 3:
		tw_reset(rig.service, probe->timer, any_delay());
		break;
	case 4:
		tw_cancel(rig.service, probe->timer);
		break;
	case 5:
		queue_executor_run_next(executor);
		break;
	case 6:
		queue_executor_drop_next(executor);
		break;
	default:
		executor->refuse = random_percent(&seed, 20) ? random_below(&seed, 9) : 0;
		executor->refuse_with = EAGAIN;
		rig_advance(&rig, any_delay() % (10 * SECOND));
	}
	queue_executor_run_all(&queue);
}

static void expect_to_go_on(bool hang)
{
	const struct tw__wheel *wheel = &rig.service->driver->wheel;
	for (int step = 0; step < 10000; step++) {
		do_anything(hang);
		if (step % 100)
			continue;
		expect_eq(tw__wheel_check(wheel), NULL);
		heartbeat = PROBE(&rig, 2);
		probe_schedule(&heartbeat, MS);
		for (int turns = 0; turns < 3; turns++) { /* a batch comes back in the next turn */
			rig_advance(&rig, MS);
			queue_executor_run_all(&queue);
		}
		expect_eq(heartbeat.runs, 1);
		rig.ran = 0;
	}
	expect_lt(wheel->arena_chunks, 1600);
	for (int i = 0; i < TIMERS; i++)
		tw_cancel(rig.service, probes[i].timer);
	for (int turns = 0; turns < 20; turns++) {
		for (int i = 0; i < EXECUTORS; i++) {
			executors[i].refuse = 0;
			while (queue_executor_run_next(&executors[i]) != -ENOENT) {
			}
		}
		rig_advance(&rig, MS);
	}
	expect_eq(rig.service->driver->outboxes.out, 0);
}

Test(driver_few, timers_and_executors_need_no_more_chunks)
{
	expect_to_go_on(false);
}

Test(driver_few, executors_that_hang_leave_chunks_to_others)
{
	expect_to_go_on(true);
}
