/* Timers that name an executor of their own: batches, order, refusals, budget, close. */
#include <errno.h>

#include "test/support/closing.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

/* A rig whose own executor is a queue, and more queues for timers to name. */
enum { QUEUES = 3 };

struct routes {
	struct rig rig;
	struct queue_executor queues[QUEUES]; /* the first is the service's */
};

static struct routes r;

static void open_routes(void)
{
	struct tw_service_config cfg = rig_config();
	for (int i = 0; i < QUEUES; i++)
		queue_executor_open(&r.queues[i]);
	cfg.executor = &r.queues[0].base;
	rig_open(&r.rig, &cfg);
}

static void close_routes(void)
{
	expect_in_fini();
	rig_close(&r.rig);
	for (int i = 0; i < QUEUES; i++)
		queue_executor_close(&r.queues[i]);
}

TestSuite(driver_executors, .init = open_routes, .fini = close_routes, .timeout = 30);

static struct probe probes[2000];

static void schedule_to(struct probe *probe, int id, uint64_t delay_ns, int queue)
{
	*probe = PROBE(&r.rig, id);
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	task.executor = queue ? &r.queues[queue].base : NULL;
	probe_schedule_task(probe, &task);
}

/* Timer i goes to queue i % QUEUES. */
static void schedule_in_turn(int count, uint64_t delay_ns)
{
	for (int i = 0; i < count; i++)
		schedule_to(&probes[i], i, delay_ns, i % QUEUES);
}

/* Runs what is in a queue. All of it must be that queue's, in order. */
static void expect_own_in_order(int queue, size_t count)
{
	size_t before = r.rig.ran;
	expect_eq(queue_executor_run_all(&r.queues[queue]), count);
	for (size_t i = before; i < r.rig.ran; i++) {
		expect_eq(r.rig.events[i].id % QUEUES, queue);
		if (i > before)
			expect_gt(r.rig.events[i].id, r.rig.events[i - 1].id);
	}
}

Test(driver_executors, lead_each_timer_to_its_executor_in_order)
{
	schedule_in_turn(1500, MS);
	rig_advance(&r.rig, MS);
	expect_eq(r.rig.ran, 0);
	for (int queue = QUEUES - 1; queue >= 0; queue--) {
		if (queue > 0) /* those of one executor share batches */
			expect_le(r.queues[queue].submits, 500 / 56 + 1);
		expect_own_in_order(queue, 500);
	}
	for (int i = 0; i < 1500; i++)
		expect_released(&probes[i], TW_FATE_FIRED);
}

Test(driver_executors, are_kept_by_resets_and_series)
{
	schedule_to(&probes[0], 1, 10 * MS, 1);
	struct tw_period period = rate_of(MS, MS, 5);
	struct tw_task task = probe_task(&probes[1]);
	probes[1] = PROBE(&r.rig, 2);
	task.period = &period;
	task.executor = &r.queues[2].base;
	probe_schedule_task(&probes[1], &task);
	expect_eq(tw_reset(r.rig.service, probes[0].timer, 2 * MS), 0);
	for (int i = 0; i < 8; i++) {
		rig_advance(&r.rig, MS);
		queue_executor_run_all(&r.queues[1]);
		queue_executor_run_all(&r.queues[2]);
	}
	expect_eq(queue_executor_waiting(&r.queues[0]), 0);
	expect_ran_at(&probes[0], RIG_START_NS + 2 * MS);
	expect_eq(probes[1].runs, 5);
	expect_released(&probes[1], TW_FATE_FIRED);
}

Test(driver_executors, lead_back_to_the_executor_that_gave_a_run_back)
{
	schedule_in_turn(30, MS);
	rig_advance(&r.rig, MS);
	while (queue_executor_drop_next(&r.queues[1]) == 0)
		;
	rig_advance(&r.rig, 2 * MS);
	expect_own_in_order(0, 10);
	expect_own_in_order(2, 10);
	expect_eq(queue_executor_run_all(&r.queues[1]), 10);
}

Test(driver_executors, may_lead_to_the_driver)
{
	struct probe probe = PROBE(&r.rig, 1);
	struct tw_task task = probe_task(&probe);
	task.when_ns = MS;
	task.executor = tw_executor_inline();
	probe_schedule_task(&probe, &task);
	rig_advance(&r.rig, MS);
	expect_ran_at(&probe, RIG_START_NS + MS);
	cr_assert(pthread_equal(r.rig.events[0].thread, pthread_self()));
}

/* An inline service with a timer for a queue. */
Test(driver_executors, lead_away_from_an_inline_service)
{
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	rig_open(&rig, NULL);
	struct probe own = PROBE(&rig, 1), routed = PROBE(&rig, 2);
	struct tw_task task = probe_task(&routed);
	task.when_ns = MS;
	task.executor = &queue.base;
	probe_schedule_task(&routed, &task);
	probe_schedule(&own, MS);
	rig_advance(&rig, MS);
	expect_eq(own.runs, 1);
	expect_eq(routed.runs, 0);
	expect_eq(queue_executor_run_all(&queue), 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(driver_executors, share_the_budget)
{
	schedule_in_turn(300, MS);
	expect_eq(tw_clock_manual_set(r.rig.clock, rig_now(&r.rig) + MS), 0);
	size_t total = 0;
	for (int calls = 0; total < 300; calls++) {
		int done = tw_service_advance(r.rig.service, 7);
		expect_gt(done, 0);
		expect_le(done, 7);
		total += (size_t)done;
		size_t waiting = 0;
		for (int queue = 0; queue < QUEUES; queue++)
			waiting += queue_executor_waiting(&r.queues[queue]);
		expect_eq(waiting, total);
		if (calls == 3) /* nobody is left out for long */
			for (int queue = 0; queue < 2; queue++)
				expect_gt(queue_executor_waiting(&r.queues[queue]), 0);
	}
	expect_eq(tw_service_advance(r.rig.service, 7), 0);
	for (int queue = 0; queue < QUEUES; queue++)
		expect_own_in_order(queue, 100);
}

/* ------------------------------------------------------------ refusals */

Test(driver_executors, that_are_refused_hold_up_nobody_else)
{
	r.queues[1].refuse = SIZE_MAX;
	schedule_in_turn(600, MS);
	rig_advance(&r.rig, 10 * MS);
	expect_own_in_order(0, 200);
	expect_own_in_order(2, 200);
	expect_eq(queue_executor_waiting(&r.queues[1]), 0);
	for (int i = 600; i < 900; i++) /* more come due behind those that wait */
		schedule_to(&probes[i], i, MS, i % QUEUES);
	rig_advance(&r.rig, 10 * MS);
	expect_own_in_order(2, 100);
	expect_eq(tw_cancel(r.rig.service, probes[1].timer), TW_CANCELLED);
	expect_eq(tw_reset(r.rig.service, probes[4].timer, HOUR), 0);
	expect_sound(r.rig.service);
	r.queues[1].refuse = 0;
	rig_advance(&r.rig, 2 * MS);
	expect_own_in_order(1, 298);
	expect_own_in_order(0, 100);
	expect_ge(stats_of(r.rig.service).refused, 10);
	rig_advance(&r.rig, 2 * HOUR);
	expect_own_in_order(1, 1);
}

Test(driver_executors, that_are_refused_now_and_then_keep_their_order)
{
	r.queues[1].refuse = 3;
	r.queues[2].refuse = 1;
	schedule_in_turn(1500, MS);
	for (int i = 1500; i < 1800; i++)
		schedule_to(&probes[i], i, 2 * MS, i % QUEUES);
	rig_advance(&r.rig, 10 * MS);
	for (int queue = 0; queue < QUEUES; queue++)
		expect_own_in_order(queue, 600);
	expect_eq(stats_of(r.rig.service).refused, 4);
}

/* A part that was split off for the budget, refused, and then more behind it. */
Test(driver_executors, that_are_refused_in_parts_keep_their_order)
{
	r.queues[1].refuse = 1;
	for (int i = 0; i < 20; i++)
		schedule_to(&probes[i], 1 + i * QUEUES, MS, 1);
	expect_eq(tw_clock_manual_set(r.rig.clock, rig_now(&r.rig) + MS), 0);
	tw_service_advance(r.rig.service, 7);
	for (int i = 20; i < 40; i++)
		schedule_to(&probes[i], 1 + i * QUEUES, 0, 1);
	rig_advance(&r.rig, 2 * MS);
	expect_own_in_order(1, 40);
}

/* ------------------------------------------------------------ close */

Test(driver_executors, are_kept_by_a_close_that_runs)
{
	schedule_in_turn(90, HOUR);
	struct closing closing;
	closing_start(&closing, r.rig.service, TW_CLOSE_RUN, TW_FOREVER);
	for (int queue = 0; queue < QUEUES; queue++) {
		closing_await(&r.queues[queue], 30);
		expect_own_in_order(queue, 30);
	}
	expect_eq(closing_end(&closing), 0);
	expect_eq(stats_of(r.rig.service).fired, 90);
}

/* ------------------------------------------------------------ many */

/* Wherever the executors happen to lie in memory: a simulation counts on it. */
Test(driver_executors, to_dozens_of_executors_are_one_batch_each_and_refusals_are_each_its_own)
{
	enum { FEW = 90, EACH = 5 };
	static struct queue_executor queues[FEW];
	struct rig rig;
	rig_open(&rig, NULL);
	for (int i = 0; i < FEW; i++) {
		queue_executor_open(&queues[i]);
		queues[i].refuse = i % 6 ? 0 : SIZE_MAX;
	}
	for (int wave = 0; wave < 2; wave++) { /* the second joins what was refused of the first */
		for (int i = 0; i < FEW * EACH; i++) {
			struct probe *probe = &probes[wave * FEW * EACH + i];
			*probe = PROBE(&rig, wave * FEW * EACH + i);
			struct tw_task task = probe_task(probe);
			task.when_ns = MS;
			task.executor = &queues[i % FEW].base;
			probe_schedule_task(probe, &task);
		}
		rig_advance(&rig, 2 * MS);
		for (int i = 0; i < FEW; i++)
			expect_eq(queues[i].submits, i % 6 ? wave + 1 : 0);
	}
	for (int i = 0; i < FEW; i++)
		queues[i].refuse = 0;
	rig_advance(&rig, MS);
	for (int i = 0; i < FEW; i++) {
		expect_eq(queues[i].submits, i % 6 ? 2 : 1);
		size_t before = rig.ran;
		expect_eq(queue_executor_run_all(&queues[i]), 2 * EACH);
		for (size_t j = before; j < rig.ran; j++)
			expect_eq(rig.events[j].id, i + (int)(j - before) * FEW);
		queue_executor_close(&queues[i]);
	}
	rig_close(&rig);
}
