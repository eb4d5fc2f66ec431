/* Executors that a program brings: late, refusing, giving back, and on several threads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"

TestSuite(runs_executor, .init = open_rig, .fini = close_rig, .timeout = 30);

static struct probe probes[5000];

static void schedule_probes(int count, uint64_t delay_ns)
{
	for (int i = 0; i < count; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delay_ns);
	}
}

static void expect_each_ran_once(int count)
{
	expect_eq(rig.ran, count);
	for (int i = 0; i < count; i++)
		expect_eq(probes[i].runs, 1);
}

Test(runs_executor, gets_what_is_due_and_runs_it_when_it_likes)
{
	reopen_on_queue();
	schedule_probes(3000, MS);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + MS), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 3000);
	expect_eq(queue_executor_waiting(&queue), 3000);
	expect_eq(rig.ran, 0);
	expect_eq(stats_of(rig.service).pending, 3000);
	rig_advance(&rig, HOUR);
	expect_eq(queue_executor_waiting(&queue), 3000);
	expect_eq(queue_executor_run_all(&queue), 3000);
	expect_each_ran_once(3000);
	expect_ids_ascend(&rig);
}

Test(runs_executor, gets_no_more_than_the_budget)
{
	reopen_on_queue();
	schedule_probes(100, MS);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + SECOND), 0);
	expect_eq(tw_service_advance(rig.service, 30), 30);
	expect_eq(queue_executor_waiting(&queue), 30);
	expect_eq(tw_service_advance(rig.service, 30), 30);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 40);
	expect_eq(tw_service_advance(rig.service, 1), 0);
	expect_eq(queue_executor_run_all(&queue), 100);
	expect_each_ran_once(100);
	expect_ids_ascend(&rig);
}

/* ---------------------------------------------------- refusing, and giving back */

Test(runs_executor, that_refuses_is_offered_again_in_order)
{
	reopen_on_queue();
	queue.refuse = 3;
	schedule_probes(1000, MS);
	rig_advance(&rig, 100 * MS);
	expect_eq(queue_executor_waiting(&queue), 1000);
	expect_eq(queue_executor_run_all(&queue), 1000);
	expect_each_ran_once(1000);
	expect_ids_ascend(&rig);
	expect_ge(stats_of(rig.service).refused, 3);
}

Test(runs_executor, that_refuses_loses_no_order_to_later_ticks)
{
	reopen_on_queue();
	for (int i = 0; i < 20; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i + 1) * MS);
	}
	queue.refuse = 10;
	rig_advance(&rig, 100 * MS);
	queue_executor_run_all(&queue);
	expect_each_ran_once(20);
}

static void give_all_back(void)
{
	while (queue_executor_drop_next(&queue) == 0)
		;
}

/* Timers that the executor has refused, or given back, can be cancelled and moved. */
Test(runs_executor, that_does_not_run_leaves_timers_cancellable_and_movable)
{
	for (int refuses = 0; refuses < 2; refuses++) {
		reopen_on_queue();
		queue.refuse = refuses ? SIZE_MAX : 0;
		schedule_probes(3, MS);
		rig_advance(&rig, refuses ? 10 * MS : MS);
		give_all_back();
		expect_eq(stats_of(rig.service).pending, 3);
		expect_eq(tw_cancel(rig.service, probes[0].timer), TW_CANCELLED);
		expect_eq(tw_reset(rig.service, probes[1].timer, SECOND), 0);
		queue.refuse = 0;
		rig_advance(&rig, 10 * MS);
		expect_eq(queue_executor_run_all(&queue), 1);
		expect_eq(probes[2].runs, 1);
		rig_advance(&rig, SECOND);
		expect_eq(queue_executor_run_all(&queue), 1);
		expect_eq(probes[1].runs, 1);
		expect_eq(probes[0].runs, 0);
	}
}

/* The others of the batch run. */
Test(runs_executor, that_gives_a_run_back_gets_it_again)
{
	reopen_on_queue();
	schedule_probes(50, MS);
	rig_advance(&rig, MS);
	for (int i = 0; i < 50; i++)
		expect_eq(i % 2 ? queue_executor_drop_next(&queue)
				: queue_executor_run_next(&queue),
			  i % 2 ? 0 : 1);
	expect_eq(rig.ran, 25);
	expect_eq(stats_of(rig.service).pending, 25);
	for (int round = 0; round < 20; round++) {
		rig_advance(&rig, 2 * MS);
		expect_eq(queue_executor_waiting(&queue), 25);
		give_all_back();
	}
	rig_advance(&rig, 2 * MS);
	expect_eq(queue_executor_run_all(&queue), 25);
	expect_each_ran_once(50);
}

/* A cancelled run's ticket is used up by giving it back too. */
Test(runs_executor, may_give_back_what_was_cancelled)
{
	reopen_on_queue();
	schedule_probes(10, MS);
	rig_advance(&rig, MS);
	for (int i = 0; i < 10; i++)
		expect_eq(tw_cancel(rig.service, probes[i].timer), TW_CANCELLED);
	for (int i = 0; i < 10; i++)
		expect_eq(queue_executor_drop_next(&queue), 0);
	rig_advance(&rig, SECOND);
	expect_eq(queue_executor_run_all(&queue), 0);
	expect_eq(rig.ran, 0);
}

/* ------------------------------------------------------------ several threads */

struct helpers {
	struct queue_executor *queue;
	atomic_bool stop;
	atomic_size_t ran;
};

static void *help(void *arg)
{
	struct helpers *helpers = arg;
	while (!atomic_load(&helpers->stop)) {
		int answer = queue_executor_run_next(helpers->queue);
		if (answer == -ENOENT)
			sched_yield();
		else
			atomic_fetch_add(&helpers->ran, (size_t)answer);
	}
	return NULL;
}

Test(runs_executor, may_run_tickets_on_several_threads)
{
	reopen_on_queue();
	struct helpers helpers = {.queue = &queue};
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		expect_eq(pthread_create(&threads[i], NULL, help, &helpers), 0);
	for (int round = 0; round < 20; round++) {
		schedule_probes(1000, MS);
		rig_advance(&rig, MS);
		while (atomic_load(&helpers.ran) < (size_t)(round + 1) * 1000)
			sched_yield();
		for (int i = 0; i < 1000; i++)
			expect_eq(probes[i].runs, 1);
	}
	atomic_store(&helpers.stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	expect_eq(stats_of(rig.service).fired, 20000);
}

/* ------------------------------------------------------------ the inline one */

Test(runs_executor, inline_is_one_and_the_same)
{
	cr_assert(tw_executor_inline() != NULL);
	cr_assert(tw_executor_inline() == tw_executor_inline());
}

Test(runs_executor, inline_runs_on_the_thread_that_drives)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	cr_assert(pthread_equal(rig.events[0].thread, pthread_self()));
}

#ifdef TW_DEBUG
/* Beyond the last ticket of a batch. */
Test(runs_executor, that_uses_a_ticket_twice_is_found, .signal = SIGABRT)
{
	reopen_on_queue();
	schedule_probes(1, MS);
	rig_advance(&rig, MS);
	tw_batch *batch = queue.tickets[queue.head];
	expect_eq(queue_executor_run_next(&queue), 1);
	tw_run_one(batch);
}
#endif
