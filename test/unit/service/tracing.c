/*
 * The static probes: each fires once for each event, on each path of a call, and carries the call's
 * answer.
 */
#include <errno.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"
#include "test/support/tracer.h"

enum { SERVICE, SLOT, GENERATION, OUTCOME };

static struct rig rig;
static bool traced;

static void opened(void)
{
	rig_open(&rig, NULL);
	traced = tracer_open();
}

static void closed(void)
{
	rig_close(&rig);
}

TestSuite(service_tracing, .init = opened, .fini = closed, .timeout = 30);

/* Where there are no probes nothing can be said. */
static void expect_traced(const char *name, unsigned times)
{
	if (traced)
		expect_eq(tracer_count(name), times);
}

/* One more of it, which said this in its argument. */
static void expect_told_by_probe(const char *name, int argument, uint64_t value)
{
	if (!traced)
		return;
	expect_eq(tracer_count(name), 1);
	expect_eq(tracer_last(name)->arguments[SERVICE], (uintptr_t)rig.service);
	expect_eq(tracer_last(name)->arguments[argument], value);
	tracer_forget();
}

/* Both ways of cancelling, the second where it need not wait. */
static int cancel(tw_timer timer, bool waits)
{
	tracer_forget();
	return waits ? tw_cancel_wait(rig.service, timer, 0) : tw_cancel(rig.service, timer);
}

static void expect_cancel(tw_timer timer, bool waits, int outcome)
{
	expect_eq(cancel(timer, waits), outcome);
	expect_told_by_probe("cancel", OUTCOME, (uint64_t)outcome);
}

Test(service_tracing, cancel_is_seen_at_each_of_its_ends)
{
	for (int waits = 0; waits < 2; waits++) {
		struct probe plain = PROBE(&rig, 1), released = PROBE(&rig, 2),
			     moved = PROBE(&rig, 3);
		probe_schedule(&plain, 10 * MS);
		expect_cancel(plain.timer, waits, TW_CANCELLED);
		expect_cancel(plain.timer, waits, TW_GONE);
		/* its slot is free, and of this generation */
		expect_cancel((tw_timer){plain.timer.id + (UINT64_C(1) << 32)}, waits, TW_GONE);
		probe_schedule_released(&released, 10 * MS);
		expect_cancel(released.timer, waits, TW_CANCELLED);
		expect_cancel(released.timer, waits, TW_GONE);
		probe_schedule(&moved, 10 * MS);
		expect_eq(tw_reset(rig.service, moved.timer, 30 * MS), 0);
		expect_cancel(moved.timer, waits, TW_CANCELLED);
	}
}

static void cancel_self(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->timer);
}

static void cancel_self_and_wait(struct probe *probe)
{
	probe->answer = tw_cancel_wait(probe->rig->service, probe->timer, TW_FOREVER);
}

static void runs_are_seen(bool waits)
{
	struct probe plain = PROBE(&rig, 1), released = PROBE(&rig, 2);
	plain.act = released.act = waits ? cancel_self_and_wait : cancel_self;
	probe_schedule(&plain, MS);
	tracer_forget();
	rig_advance(&rig, 5 * MS);
	expect_eq(plain.answer, waits ? TW_SELF : TW_RUNNING);
	expect_told_by_probe("cancel", OUTCOME, TW_RUNNING);
	probe_schedule_released(&released, MS);
	rig_advance(&rig, 5 * MS);
	expect_eq(released.answer, waits ? TW_SELF : TW_RUNNING);
	expect_told_by_probe("cancel", OUTCOME, TW_RUNNING);
}

Test(service_tracing, cancel_of_what_runs_is_seen)
{
	runs_are_seen(false);
	runs_are_seen(true);
}

Test(service_tracing, cancel_of_what_is_being_released_is_seen)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act_in_release = cancel_self;
	probe_schedule_released(&probe, MS);
	tracer_forget();
	rig_advance(&rig, 5 * MS);
	expect_told_by_probe("cancel", OUTCOME, (uint64_t)probe.answer);
}

Test(service_tracing, each_step_of_a_timers_life_is_seen_once)
{
	struct probe near = PROBE(&rig, 1), far = PROBE(&rig, 2);
	tracer_forget();
	probe_schedule(&near, 5 * MS);
	expect_traced("arm", 1);
	probe_schedule(&far, 300 * DAY);
	expect_traced("arm", 2);
	expect_traced("file", 0);
	rig_advance(&rig, 2 * MS);
	expect_traced("file", 2);
	expect_eq(tw_reset(rig.service, near.timer, 10 * MS), 0);
	expect_traced("reset", 1);
	expect_eq(tw_reset(rig.service, (tw_timer){near.timer.id ^ UINT64_C(1) << 40}, 10 * MS),
		  -ENOENT);
	expect_traced("reset", 2);
	rig_advance(&rig, 20 * MS);
	expect_eq(near.runs, 1);
	expect_traced("handover", 0);
	expect_traced("run", 1);
	expect_traced("done", 1);
	tracer_forget();
	expect_eq(tw_cancel(rig.service, far.timer), TW_CANCELLED);
	expect_traced("cancel", 1);
}

Test(service_tracing, a_batch_that_is_handed_over_is_seen_once)
{
	struct queue_executor queue, other;
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&queue);
	queue_executor_open(&other);
	cfg.executor = &queue.base;
	rig_close(&rig);
	rig_open(&rig, &cfg);
	traced = tracer_open();
	struct probe mine = PROBE(&rig, 1), others = PROBE(&rig, 2);
	struct tw_task task = probe_task(&others);
	task.when_ns = MS;
	task.executor = &other.base;
	probe_schedule(&mine, MS);
	rig_advance(&rig, 3 * MS);
	expect_traced("handover", 1);
	probe_schedule_task(&others, &task);
	tracer_forget();
	rig_advance(&rig, 3 * MS);
	expect_traced("handover", 1);
	queue_executor_run_all(&queue);
	queue_executor_run_all(&other);
	expect_eq(mine.runs + others.runs, 2);
	closed();
	queue_executor_close(&queue);
	queue_executor_close(&other);
	opened();
}
