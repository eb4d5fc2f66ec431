/* Timers that name an executor of their own: batches, order, refusals, budget, close. */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

/* The service's own executor is a queue; and more queues for timers to name. */
enum { QUEUES = 3 };

static struct queue_executor others[QUEUES];
static struct queue_executor *const queues[QUEUES] = {&queue, &others[1], &others[2]};

static void open_routes(void)
{
	open_rig();
	reopen_on_queue();
	for (int i = 1; i < QUEUES; i++)
		queue_executor_open(queues[i]);
}

static void close_routes(void)
{
	close_rig();
	for (int i = 1; i < QUEUES; i++)
		queue_executor_close(queues[i]);
}

TestSuite(driver_executors, .init = open_routes, .fini = close_routes, .timeout = 30);

static struct probe probes[2000];

static void schedule_to(struct probe *probe, int id, uint64_t delay_ns, int nth)
{
	*probe = PROBE(&rig, id);
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	task.executor = nth ? &queues[nth]->base : NULL;
	probe_schedule_task(probe, &task);
}

/* Timer i goes to queue i % QUEUES. */
static void schedule_in_turn(int count, uint64_t delay_ns)
{
	for (int i = 0; i < count; i++)
		schedule_to(&probes[i], i, delay_ns, i % QUEUES);
}

/* Runs what is in a queue. All of it must be that queue's, in order. */
static void expect_own_in_order(int nth, size_t count)
{
	size_t before = rig.ran;
	expect_eq(queue_executor_run_all(queues[nth]), count);
	for (size_t i = before; i < rig.ran; i++) {
		expect_eq(rig.events[i].id % QUEUES, nth);
		if (i > before)
			expect_gt(rig.events[i].id, rig.events[i - 1].id);
	}
}

Test(driver_executors, lead_each_timer_to_its_executor_in_order)
{
	schedule_in_turn(1500, MS);
	rig_advance(&rig, MS);
	expect_eq(rig.ran, 0);
	for (int nth = QUEUES - 1; nth >= 0; nth--) {
		if (nth > 0) /* those of one executor share batches */
			expect_le(queues[nth]->submits, 500 / 56 + 1);
		expect_own_in_order(nth, 500);
	}
	for (int i = 0; i < 1500; i++)
		expect_released(&probes[i], TW_FATE_FIRED);
}

Test(driver_executors, share_the_budget)
{
	schedule_in_turn(300, MS);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + MS), 0);
	size_t total = 0;
	for (int calls = 0; total < 300; calls++) {
		int done = tw_service_advance(rig.service, 7);
		expect_gt(done, 0);
		expect_le(done, 7);
		total += (size_t)done;
		size_t waiting = 0;
		for (int nth = 0; nth < QUEUES; nth++)
			waiting += queue_executor_waiting(queues[nth]);
		expect_eq(waiting, total);
		if (calls == 3) /* nobody is left out for long */
			for (int nth = 0; nth < 2; nth++)
				expect_gt(queue_executor_waiting(queues[nth]), 0);
	}
	expect_eq(tw_service_advance(rig.service, 7), 0);
	for (int nth = 0; nth < QUEUES; nth++)
		expect_own_in_order(nth, 100);
}

/* ------------------------------------------------------------ refusals */

Test(driver_executors, that_are_refused_hold_up_nobody_else)
{
	queues[1]->refuse = SIZE_MAX;
	schedule_in_turn(600, MS);
	rig_advance(&rig, 10 * MS);
	expect_own_in_order(0, 200);
	expect_own_in_order(2, 200);
	expect_eq(queue_executor_waiting(queues[1]), 0);
	for (int i = 600; i < 900; i++) /* more come due behind those that wait */
		schedule_to(&probes[i], i, MS, i % QUEUES);
	rig_advance(&rig, 10 * MS);
	expect_own_in_order(2, 100);
	expect_eq(tw_cancel(rig.service, probes[1].timer), TW_CANCELLED);
	expect_eq(tw_reset(rig.service, probes[4].timer, HOUR), 0);
	expect_sound(rig.service);
	queues[1]->refuse = 0;
	rig_advance(&rig, 2 * MS);
	expect_own_in_order(1, 298);
	expect_own_in_order(0, 100);
	expect_ge(stats_of(rig.service).refused, 10);
	rig_advance(&rig, 2 * HOUR);
	expect_own_in_order(1, 1);
}

/* A part that was split off for the budget, refused, and then more behind it. */
Test(driver_executors, that_are_refused_in_parts_keep_their_order)
{
	queues[1]->refuse = 1;
	for (int i = 0; i < 20; i++)
		schedule_to(&probes[i], 1 + i * QUEUES, MS, 1);
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + MS), 0);
	tw_service_advance(rig.service, 7);
	for (int i = 20; i < 40; i++)
		schedule_to(&probes[i], 1 + i * QUEUES, 0, 1);
	rig_advance(&rig, 2 * MS);
	expect_own_in_order(1, 40);
}

/* ------------------------------------------------------------ many */

static const struct script scripts[] = {
    {"lead away from an inline service",
     {{"timer 0 in=1 other plain; timer 1 in=1 plain; hold; drive 1; waiting; pump",
       "@1 run 1, 1 wait, run 0"}}},
    {"are kept by resets and series",
     {{"timer 0 in=10 other plain; reset 0 by=2; timer 1 first=1 every=1 count=3 other", ""},
      {"hold; drive 2; waiting; pump", "@2 2 wait, run 1 overruns=1, run 0"},
      {"hold; drive 1; waiting; pump; advance 2", "@3 1 wait, run 1, @4 run 1, 1 fired"}}},
    {"may give back what was cancelled",
     {{"timer 0 in=1 other plain; timer 1 in=1 other plain; hold; drive 1; cancel 0",
       "@1 CANCELLED"},
      {"hold; give_back; give_back; drive 2; waiting; pump", "@3 1 wait, run 1 late=2"}}},
    {"lead back to the executor that gave a run back",
     {{"timer 0 in=1 other plain; hold; drive 1; give_back; hold; drive 2; waiting; pump",
       "@3 1 wait, run 0 late=2"}}},
};

Test(driver_executors, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
