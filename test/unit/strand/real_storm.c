/* Many delayed tasks of a strand end at the same time: in pieces, and their memory goes back. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "test/support/big.h"
#include "test/support/faults.h"
#include "test/support/rig.h"
#include "test/support/threads.h"

TestSuite(strand_real_storm, .timeout = 120);

enum { MANY = 300000 };

/* ThreadSanitizer's shadow of the timers' memory is resident, too, and stays. */
#ifdef __SANITIZE_THREAD__
enum { HAS_SHADOW = true };
#else
enum { HAS_SHADOW = false };
#endif

static tw_service *service;
static tw_strand *strand;
static tw_strand_task_id *tasks; /* MANY */

static void never(void *arg)
{
}

static void opened(void)
{
	tasks = big_array(MANY, sizeof *tasks);
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
}

static void closed(void)
{
	expect_in_fini();
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(service), 0);
}

static void submit_many(uint64_t delay_ns)
{
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_strand_schedule(strand, delay_ns ? delay_ns + (uint64_t)i : 0, never,
					     NULL, &tasks[i]),
			  0);
}

static void cancel_many(void)
{
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_strand_cancel(strand, tasks[i]), TW_CANCELLED);
}

/* At the latest after the 15 s of the README, without another call. */
static void expect_memory_went_back(int64_t before_bytes)
{
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + 15 * TW_SECOND;
	while (!HAS_SHADOW && resident_bytes() > before_bytes + (4 << 20) &&
	       tw_clock_now(tw_clock_monotonic()) < end_ns)
		sched_yield();
	if (!HAS_SHADOW)
		expect_le(resident_bytes(), before_bytes + (4 << 20));
}

Test(strand_real_storm, memory_of_cancelled_tasks_goes_back_while_the_strand_lives, .init = opened,
     .fini = closed)
{
	submit_many(HOUR); /* once before it is measured: handles, the first slabs */
	cancel_many();
	int64_t before_bytes = resident_bytes();
	submit_many(HOUR);
	expect_ge(resident_bytes(), before_bytes + (20 << 20));
	cancel_many();
	expect_memory_went_back(before_bytes);
}

Test(strand_real_storm, memory_of_closed_tasks_goes_back_while_the_service_lives, .init = opened,
     .fini = closed)
{
	submit_many(HOUR);
	int64_t full_bytes = resident_bytes();
	expect_eq(tw_strand_close(strand, 0), 0);
	if (!HAS_SHADOW)
		expect_le(resident_bytes(), full_bytes - (25 << 20));
}

/* --------------------------------------------------------------------- in pieces */

static struct tw_strand_stats stats_now(void)
{
	struct tw_strand_stats stats = {.size = sizeof stats};
	expect_eq(tw_strand_stats(strand, &stats), 0);
	return stats;
}

/* In a pause of the close: another thread could call, and some of the tasks have ended. */
static void look_between(void *between)
{
	struct tw_strand_stats stats = stats_now();
	*(int *)between += stats.cancelled > 0 && stats.cancelled < MANY;
}

/* Pauses of a close in which calls on the strand are answered. */
static int calls_beside_close(int wanted)
{
	int between = 0;
	faults_at_pauses(look_between, &between);
	int answer = tw_strand_close(strand, 0);
	faults_at_pauses(NULL, NULL);
	expect_eq(answer, wanted);
	expect_eq(stats_now().cancelled, MANY);
	return between;
}

Test(strand_real_storm, calls_beside_a_close_of_delayed_tasks_come_in_between, .init = opened,
     .fini = closed)
{
	submit_many(HOUR);
	expect_ge(calls_beside_close(0), 1000);
}

static void hold(void *arg)
{
	while (!atomic_load((atomic_bool *)arg))
		usleep(1000);
}

Test(strand_real_storm, calls_beside_a_close_of_queued_tasks_come_in_between, .init = opened,
     .fini = closed)
{
	static atomic_bool over; /* the task looks at it after the test has returned */
	expect_eq(tw_strand_submit(strand, hold, &over), 0);
	while (!stats_now().running)
		usleep(1000);
	submit_many(0);
	expect_ge(calls_beside_close(-ETIMEDOUT), 1000); /* the first task holds the strand */
	atomic_store(&over, true);
}

/*
 * Looks at the strand while tasks that are due in the same moment move to the queue. How many looks
 * saw some of both. In each round there is more time to submit them until they are due.
 */
static int looks_between(unsigned round)
{
	uint64_t due_ns = tw_service_now(service) + round * SECOND;
	int between = 0;
	for (int i = 0; i < MANY; i++) {
		struct tw_strand_task spec = {
		    .size = sizeof spec, .fn = never, .delay_ns = due_ns, .flags = TW_TASK_AT};
		expect_eq(tw_strand_submit_task(strand, &spec, NULL), 0);
	}
	while (stats_now().runs < (uint64_t)MANY * round) {
		struct tw_strand_stats stats = stats_now();
		between += stats.delayed > 0 && stats.delayed < MANY && stats.queued < MANY / 2;
	}
	return between;
}

/* A busy machine may give this thread no processor during a whole round. */
Test(strand_real_storm, calls_beside_many_due_tasks_come_in_between, .init = opened, .fini = closed)
{
	enum { ROUNDS = 8 };
	int between = 0;
	for (unsigned round = 1; round <= ROUNDS && between < 10; round++)
		between += looks_between(round);
	expect_ge(between, 10);
}
