/*
 * Timers that name a pool, in a service whose other timers run elsewhere; and an executor that
 * passes runs to the inline one.
 */
#include <errno.h>
#include <sched.h>

#include "executor/pool/layer.h"
#include "pools.h"
#include "test/support/rig.h"

TestSuite(pool_timers, .timeout = 30);

enum { MANY = 2000 };

static struct probe probes[MANY];
static atomic_int on_workers;
static tw_pool *pool;

static void note_thread(struct probe *probe)
{
	(void)probe;
	on_workers += tw__pool_is_worker(pool);
}

static void schedule_on(struct rig *rig, int i, tw_executor *executor)
{
	probes[i] = PROBE(rig, i);
	probes[i].act = note_thread;
	struct tw_task task = probe_task(&probes[i]);
	task.when_ns = MS;
	task.executor = executor;
	probe_schedule_task(&probes[i], &task);
}

static void await_releases(int count)
{
	for (int i = 0; i < count; i++)
		while (!probes[i].releases)
			sched_yield();
}

Test(pool_timers, run_on_its_workers_and_the_others_do_not)
{
	struct rig rig;
	rig_open(&rig, NULL);
	pool = pool_of(2, 1024);
	for (int i = 0; i < MANY; i++)
		schedule_on(&rig, i, i % 2 ? tw_pool_executor(pool) : NULL);
	rig_advance(&rig, MS);
	await_releases(MANY);
	expect_eq(on_workers, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		expect_eq(probes[i].runs, 1);
		expect_released(&probes[i], TW_FATE_FIRED);
	}
	rig_close(&rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_timers, take_no_place_in_the_queue_of_tasks)
{
	struct rig rig;
	struct gate gate = {0};
	atomic_int tasks = 0;
	rig_open(&rig, NULL);
	pool = pool_of(1, 16);
	occupy(pool, &gate, 1);
	while (tw_pool_submit(pool, count, &tasks) == 0) {
	}
	for (int i = 0; i < MANY; i++)
		schedule_on(&rig, i, tw_pool_executor(pool));
	rig_advance(&rig, 5 * MS);
	expect_eq(stats_of(rig.service).refused, 0);
	expect_eq(rig.ran, 0);
	let_go(&gate, 1);
	for (int i = 0; i < MANY; i++)
		while (!probes[i].releases) {
			rig_advance(&rig, MS);
			sched_yield();
		}
	expect_eq(tasks, 16); /* first in, first out */
	expect_eq(on_workers, MANY);
	expect_ids_ascend(&rig); /* one worker: the order of G6 */
	rig_close(&rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* Told of the task that was submitted last: what waited before it has been given back. */
static void open_gate(void *gate, tw_fn *fn, void *arg)
{
	(void)fn, (void)arg;
	let_go(gate, 1);
}

/*
 * Batches that wait in a pool as it closes go back to their service, which hears then that the pool
 * is closed.
 */
Test(pool_timers, wait_for_a_pool_that_has_closed_until_close)
{
	struct rig rig;
	struct gate gate = {0};
	rig_open(&rig, NULL);
	pool = pool_of(1, 1024);
	occupy(pool, &gate, 1);
	for (int i = 0; i < MANY; i++)
		schedule_on(&rig, i, tw_pool_executor(pool));
	expect_eq(tw_cancel(rig.service, probes[7].timer), TW_CANCELLED);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, probes[8].timer), TW_CANCELLED); /* in its batch */
	expect_eq(tw_pool_submit(pool, pass, &gate), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DROP, open_gate, &gate), 0);
	expect_eq(rig.ran, 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(stats_of(rig.service).pending, MANY - 2);
	expect_gt(stats_of(rig.service).refused, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < MANY; i++) {
		bool was_cancelled = i == 7 || i == 8;
		expect_eq(probes[i].runs, 0);
		expect_released(&probes[i], was_cancelled ? TW_FATE_CANCELLED : TW_FATE_DROPPED);
	}
	expect_eq(on_workers, 0);
	rig_close(&rig);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* ------------------------------------------------------------ handing on */

static atomic_int handed_on;

static int hand_on(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self;
	handed_on += (int)n;
	return tw_executor_inline()->ops->submit(tw_executor_inline(), batch, n);
}

Test(pool_timers, an_executor_may_hand_on_to_the_inline_one)
{
	static const struct tw_executor_ops ops = {sizeof ops, hand_on};
	tw_executor executor = {&ops};
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.executor = &executor;
	rig_open(&rig, &cfg);
	for (int i = 0; i < MANY; i++)
		schedule_on(&rig, i, NULL);
	expect_eq(tw_cancel(rig.service, probes[3].timer), TW_CANCELLED);
	rig_advance(&rig, MS);
	expect_ge(handed_on, MANY - 1);
	expect_eq(rig.ran, MANY - 1);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}
