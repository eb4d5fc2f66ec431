/*
 * Outboxes: an executor that takes batches and runs none, and hundreds of executors that refuse,
 * cost the others nothing. Small services (1024 timers) on a virtual clock, so that what is not
 * bounded fails within seconds.
 */
#include <errno.h>
#include <stdlib.h>

#include "wheel/driver/driver.h"
#include "test/support/big.h"
#include "test/support/rig_suite.h"

enum { MOST = 50000 };

static struct probe *probes; /* MOST */

static void allocate(void)
{
	probes = big_array(MOST, sizeof *probes);
	open_rig();
}

TestSuite(driver_outbox, .init = allocate, .fini = close_rig, .timeout = 60);

/* Chunks that are not in the store. */
static size_t chunks_in_use(void)
{
	const struct tw__wheel *wheel = &rig.service->driver->wheel;
	return wheel->arena_chunks - tw__wheel_chunks_left(wheel);
}

static void schedule_to(struct probe *probe, uint64_t delay_ns, tw_executor *executor)
{
	struct tw_task task = probe_task(probe);
	task.release = NULL;
	task.when_ns = delay_ns;
	task.executor = executor;
	probe_schedule_task(probe, &task);
}

/* An executor that takes what it is given and runs nothing, and one that runs all: the queue. */
static struct queue_executor hung;
static bool hung_is_own;
static struct probe *last; /* on the hung one */

static void open_hang(bool own)
{
	struct tw_service_config cfg = rig_config();
	hung_is_own = own;
	last = NULL;
	queue_executor_open(&hung);
	cfg.max_timers = 1024;
	cfg.executor = own ? &hung.base : &queue.base;
	reopen_rig(&cfg);
}

static void close_hang(void)
{
	reopen_rig(NULL);
	queue_executor_close(&hung);
}

/*
 * Each turn a timer of the hung executor comes due, and is cancelled in the next turn; a timer of
 * the other executor comes due too, and must run.
 */
static void hang_for(int turns)
{
	tw_executor *hangs = hung_is_own ? NULL : &hung.base;
	tw_executor *well = hung_is_own ? &queue.base : NULL;
	for (int i = 0; i < turns; i++) {
		struct probe *probe = &probes[i % 2], *heartbeat = &probes[2];
		if (last)
			expect_eq(tw_cancel(rig.service, last->timer), TW_CANCELLED);
		last = probe;
		*probe = PROBE(&rig, 1);
		*heartbeat = PROBE(&rig, 2);
		schedule_to(probe, MS, hangs);
		schedule_to(heartbeat, MS, well);
		rig_advance(&rig, MS);
		expect_eq(queue_executor_run_all(&queue), 1);
		expect_ran_at(heartbeat, rig_now(&rig));
		rig.ran = 0;
	}
}

static void expect_a_hung_executor_to_stop_nobody(bool own, bool refuses)
{
	enum { TURNS = 60000 };
	open_hang(own);
	hung.refuse = refuses ? SIZE_MAX : 0;
	hang_for(TURNS);
	size_t held = chunks_in_use(), batches = hung.submits;
	expect_le(batches, rig.service->driver->outboxes.submit_limit / 2 + 1);
	hang_for(TURNS);
	expect_le(chunks_in_use(), held + 8);
	expect_eq(hung.submits, batches);
	while (queue_executor_run_all(&hung) > 0 || queue_executor_waiting(&hung)) {
	}
	hung.refuse = 0;
	rig_advance(&rig, 2 * MS);
	expect_eq(queue_executor_run_all(&hung), 1);
	expect_eq(last->runs, 1);
	close_hang();
}

Test(driver_outbox, of_an_executor_that_hangs_or_refuses_takes_a_bounded_part_of_the_chunks)
{
	for (int i = 0; i < 4; i++)
		expect_a_hung_executor_to_stop_nobody(i % 2, i / 2);
}

/* Each of them takes less than the one before, and each gets at least one batch. */
Test(driver_outbox, of_many_executors_that_hang_share_what_may_be_out)
{
	enum { HUNG = 300, TURNS = 40 };
	static struct queue_executor many[HUNG];
	open_hang(false);
	uint32_t limit = rig.service->driver->outboxes.submit_limit = 200;
	for (int i = 0; i < HUNG; i++)
		queue_executor_open(&many[i]);
	for (int i = 0; i < HUNG; i++)
		for (int turn = 0; turn < TURNS; turn++) {
			probes[0] = PROBE(&rig, 1);
			schedule_to(&probes[0], 0, &many[i].base);
			rig_advance(&rig, MS);
			tw_cancel(rig.service, probes[0].timer);
		}
	expect_le(rig.service->driver->outboxes.out, limit + HUNG);
	for (int i = 0; i < HUNG; i++) {
		expect_ge(many[i].submits, 1);
		expect_le(many[i].submits, limit / 2);
	}
	hang_for(100);
	for (int i = 0; i < HUNG; i++)
		queue_executor_run_all(&many[i]);
	queue_executor_run_all(&hung);
	rig_advance(&rig, 2 * MS);
	queue_executor_run_all(&hung);
	for (int i = 0; i < HUNG; i++) {
		queue_executor_run_all(&many[i]);
		queue_executor_close(&many[i]);
	}
	expect_eq(rig.service->driver->outboxes.queued, 0);
	close_hang();
}

/* ------------------------------------------------------------------ refusals */

struct refusers {
	struct queue_executor *executors;
	int count;
};

static void open_refusers(struct refusers *r, int count, uint32_t max_timers)
{
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = max_timers;
	cfg.buckets = 64;
	*r = (struct refusers){.executors = calloc((size_t)count, sizeof *r->executors),
			       .count = count};
	for (int i = 0; i < count; i++) {
		queue_executor_open(&r->executors[i]);
		r->executors[i].refuse = SIZE_MAX;
	}
	reopen_rig(&cfg);
}

static void refuse(struct refusers *r, size_t how_often)
{
	for (int i = 0; i < r->count; i++)
		r->executors[i].refuse = how_often;
}

/*
 * Schedules timers for all executors, one after the other; executor i gets the ids i, i + count,
 * ...
 */
static void schedule_all(struct refusers *r, int timers)
{
	for (int i = 0; i < timers; i++) {
		probes[i] = PROBE(&rig, i);
		schedule_to(&probes[i], (uint64_t)(1 + i / 8000) * MS,
			    &r->executors[i % r->count].base);
	}
}

/*
 * A timer that the driver runs itself, scheduled now, runs in the next tick: the lanes are drained.
 */
static void expect_drained(struct refusers *r)
{
	struct probe fresh = PROBE(&rig, -1);
	schedule_to(&fresh, MS, NULL);
	rig_advance(&rig, 2 * MS);
	expect_eq(fresh.runs, 1);
	rig.ran = 0;
}

static void expect_all_in_order(struct refusers *r, int timers)
{
	for (int i = 0; i < r->count; i++) {
		rig.ran = 0;
		queue_executor_run_all(&r->executors[i]);
		expect_eq(rig.ran, (size_t)(timers / r->count));
		for (size_t j = 0; j < rig.ran; j++)
			expect_eq(rig.events[j].id, i + (int)j * r->count);
	}
}

static void close_refusers(struct refusers *r)
{
	reopen_rig(NULL);
	for (int i = 0; i < r->count; i++)
		queue_executor_close(&r->executors[i]);
	free(r->executors);
}

Test(driver_outbox, of_two_hundred_executors_that_refuse_are_packed)
{
	enum { EXECUTORS = 200, TIMERS = 40000 };
	struct refusers r;
	open_refusers(&r, EXECUTORS, TIMERS + 10);
	schedule_all(&r, TIMERS);
	rig_advance(&rig, 10 * MS);
	expect_drained(&r);
	expect_le(chunks_in_use(), TIMERS / TW__CHUNK_ENTRIES + 2 * EXECUTORS + 8);
	refuse(&r, 0);
	rig_advance(&rig, MS);
	expect_all_in_order(&r, TIMERS);
	close_refusers(&r);
}

/*
 * More executors than there are outboxes: the others get one when these have run. Some refuse now
 * and then.
 */
Test(driver_outbox, of_more_executors_than_there_are_come_later)
{
	enum { EXECUTORS = TW__OUTBOXES + 900, EACH = 6, TIMERS = EXECUTORS * EACH };
	static int next[EXECUTORS]; /* of each executor, the next id divided by EXECUTORS */
	struct refusers r;
	open_refusers(&r, EXECUTORS, TIMERS + 10);
	schedule_all(&r, TIMERS);
	rig_advance(&rig, 10 * MS);
	expect_drained(&r);
	expect_le(rig.service->driver->outboxes.queued, TW__OUTBOXES);
	expect_eq(rig.service->driver->outboxes.refiled, true);
	for (int i = 0; i < EXECUTORS; i++)
		r.executors[i].refuse = (size_t)(i % 4);
	for (int turn = 0; turn < 20; turn++) {
		rig_advance(&rig, MS);
		for (int i = 0; i < EXECUTORS; i++)
			queue_executor_run_all(&r.executors[i]);
	}
	expect_eq(rig.ran, (size_t)TIMERS);
	for (size_t i = 0; i < rig.ran; i++)
		expect_eq(rig.events[i].id / EXECUTORS, next[rig.events[i].id % EXECUTORS]++);
	expect_eq(rig.service->driver->outboxes.refiled, false);
	close_refusers(&r);
}
