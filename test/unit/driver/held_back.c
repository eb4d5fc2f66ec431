/*
 * Batches that an executor does not finish hold chunks. Over its quota, its runs wait at the
 * driver: it turns all the same, serves the other executors, loses nothing, and goes on when
 * batches come back. And one turn over more ticks than there are chunks.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "wheel/driver/driver.h"
#include "test/support/big.h"
#include "test/support/closing.h"
#include "test/support/rig_suite.h"

/*
 * So many timers, each in a tick of its own, need more chunks than there are, if each has one to
 * itself.
 */
enum { MANY = 80000, MOST = 2 * MANY };

/* A rig whose executor keeps its batches; timers may name another one that does. */
static struct queue_executor named;
static struct {
	struct queue_executor *used;
	int scheduled;
} k;

static struct probe *probes; /* MOST */

static void open_keeper_with(bool names_another, uint32_t max_timers, uint32_t buckets)
{
	struct tw_service_config cfg = rig_config();
	memset(&k, 0, sizeof k);
	k.used = names_another ? &named : &queue;
	cfg.max_timers = max_timers;
	cfg.buckets = buckets; /* 64: what is set aside for the wheel is little */
	cfg.executor = &queue.base;
	reopen_rig(&cfg);
	queue_executor_close(&named);
	queue_executor_open(&named);
}

static void close_keeper(void)
{
	close_rig();
	queue_executor_close(&named);
}

static void open_keeper(void)
{
	probes = big_array(MOST, sizeof *probes);
	open_rig();
	queue_executor_open(&named);
	open_keeper_with(false, MANY, 0);
}

TestSuite(driver_held_back, .init = open_keeper, .fini = close_keeper, .timeout = 60);

static struct probe *add_for(int ticks, tw_executor *executor)
{
	struct probe *probe = &probes[k.scheduled];
	*probe = PROBE(&rig, k.scheduled++);
	struct tw_task task = probe_task(probe);
	task.release = NULL;
	task.when_ns = (uint64_t)ticks * MS;
	task.executor = executor;
	probe_schedule_task(probe, &task);
	return probe;
}

static struct probe *add_in(int ticks)
{
	return add_for(ticks, k.used == &named ? &named.base : NULL);
}

/* The next tick that has no timer yet gets one; until there are `count`. */
static void add_up_to(int count)
{
	while (k.scheduled < count)
		add_in(k.scheduled + 1);
}

/* Turns tick by tick until the timer that has come due is not handed over. */
static void turn_until_held_back(void)
{
	size_t ticks = 0;
	do {
		rig_advance(&rig, MS);
		ticks++;
	} while (queue_executor_waiting(k.used) == ticks && ticks < MANY);
	expect_lt(ticks, MANY);
	expect_eq(queue_executor_waiting(k.used), ticks - 1);
}

/* Batches return as they are run, and the driver submits the runs that it held back. */
static void run_all(void)
{
	while (queue_executor_run_all(k.used) > 0)
		rig_advance(&rig, MS);
}

static void expect_what_is_due_to_wait(bool names_another)
{
	uint64_t next_ns;
	open_keeper_with(names_another, MANY, 0);
	add_up_to(MANY);
	turn_until_held_back();
	size_t lent = k.used->submits;
	for (int i = 0; i < 20; i++)
		rig_advance(&rig, MS);
	expect_eq(k.used->submits, lent);
	expect_eq(tw_service_next_expiry(rig.service, &next_ns), 0);
	expect_eq(next_ns, rig_now(&rig) + MS);
	rig_advance(&rig, MANY * MS);
	expect_eq(rig.ran, 0);
	expect_eq(stats_of(rig.service).pending, MANY);
	expect_eq(stats_of(rig.service).refused, 0);
	run_all();
	expect_eq(rig.ran, MANY);
	expect_ids_ascend(&rig);
}

Test(driver_held_back, what_is_due_waits_until_batches_come_home_and_keeps_its_order)
{
	expect_what_is_due_to_wait(false);
	expect_what_is_due_to_wait(true);
}

/* They are not filed, which would take chunks. */
Test(driver_held_back, what_is_scheduled_meanwhile_stays_in_its_lane)
{
	enum { AT_FIRST = 50000 };
	open_keeper_with(false, MOST, 64);
	add_up_to(AT_FIRST);
	turn_until_held_back();
	add_up_to(MOST);
	for (int i = 0; i < 20; i++)
		rig_advance(&rig, MS);
	run_all();
	rig_advance(&rig, MOST * MS);
	run_all();
	expect_eq(rig.ran, MOST);
	expect_ids_ascend(&rig);
}

static atomic_int completed;

static void count_completion(void *arg)
{
	(void)arg;
	completed++;
}

/* The quota is of runs. A completion is no run. */
Test(driver_held_back, a_groups_completion_is_handed_over_to_an_executor_over_its_quota)
{
	tw_group group;
	completed = 0;
	expect_eq(tw_group_create(&group, rig.service), 0);
	add_up_to(MANY);
	turn_until_held_back();
	size_t lent = queue_executor_waiting(&queue);
	expect_eq(tw_group_close(rig.service, group, count_completion, NULL), 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), lent + 1);
	run_all();
	expect_eq(completed, 1);
	rig_advance(&rig, MANY * MS);
	run_all();
	expect_eq(tw_group_destroy(rig.service, group), 0);
}

/* What is ready, and what is out, both end: each timer has its fate. */
Test(driver_held_back, a_close_that_runs_all_gets_to_the_end)
{
	add_up_to(MANY);
	turn_until_held_back();
	struct closing closing;
	closing_start(&closing, rig.service, TW_CLOSE_RUN, TW_FOREVER);
	expect_eq(closing_run(&closing, &queue), 0);
	expect_eq(rig.ran, MANY);
}

/*
 * The clock jumps forward, and one poll passes all these ticks. Each tick has a chunk in the wheel.
 */
Test(driver_held_back, not_by_a_turn_over_more_ticks_than_there_are_chunks)
{
	add_up_to(MANY);
	rig_advance(&rig, MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + MANY * MS), 0);
	expect_eq(tw_service_advance(rig.service, SIZE_MAX), MANY - 1);
	expect_eq(queue_executor_waiting(&queue), MANY);
	run_all();
	expect_eq(rig.ran, MANY);
	expect_ids_ascend(&rig);
}
