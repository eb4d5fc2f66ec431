/* Cancelling: each outcome, at each stage of a timer's life. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_cancel, .timeout = 30);

Test(timer_cancel, of_an_armed_timer_wins)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, 9 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	rig_advance(&rig, HOUR);
	expect_eq(probe.runs, 0);
	expect_eq(stats_of(rig.service).cancelled, 1);
	rig_close(&rig);
}

Test(timer_cancel, before_the_driver_has_seen_the_timer_wins)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 0);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	expect_eq(probe.runs, 0);
	rig_close(&rig);
}

Test(timer_cancel, is_told_to_one_only)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	expect_eq(tw_cancel_wait(rig.service, probe.timer, TW_FOREVER), TW_GONE);
	rig_close(&rig);
}

Test(timer_cancel, after_the_run_finds_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, 10 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	expect_eq(tw_cancel_wait(rig.service, probe.timer, TW_FOREVER), TW_GONE);
	expect_eq(stats_of(rig.service).fired, 1);
	rig_close(&rig);
}

Test(timer_cancel, wait_of_an_armed_timer_cancels_at_once)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * MS);
	expect_eq(tw_cancel_wait(rig.service, probe.timer, 0), TW_CANCELLED);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 0);
	rig_close(&rig);
}

Test(timer_cancel, of_timers_at_all_distances_leaves_none_to_run)
{
	struct rig rig;
	rig_open(&rig, NULL);
	static struct probe probes[200];
	uint64_t delay_ns = 1;
	for (int i = 0; i < 200; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delay_ns);
		delay_ns = delay_ns * 6 / 5 + 1;
		if (delay_ns > 1000 * DAY)
			delay_ns = 1;
	}
	tw_service_advance(rig.service, TW_NO_LIMIT);
	for (int i = 0; i < 200; i++)
		expect_eq(tw_cancel(rig.service, probes[i].timer), TW_CANCELLED);
	expect_eq(stats_of(rig.service).pending, 0);
	rig_advance(&rig, 1100 * DAY);
	expect_eq(rig.ran, 0);
	rig_close(&rig);
}

/* -------------------------------------------------- handed over, not yet claimed */

static void cancel_the_other(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->other->timer);
}

Test(timer_cancel, of_a_neighbour_due_in_the_same_tick_wins)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	first.act = cancel_the_other;
	first.other = &second;
	probe_schedule(&first, 10 * MS);
	probe_schedule(&second, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(first.answer, TW_CANCELLED);
	expect_eq(second.runs, 0);
	expect_eq(stats_of(rig.service).cancelled, 1);
	rig_close(&rig);
}

Test(timer_cancel, of_an_earlier_neighbour_that_has_run_finds_nothing)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	second.act = cancel_the_other;
	second.other = &first;
	probe_schedule(&first, 10 * MS);
	probe_schedule(&second, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(second.answer, TW_GONE);
	expect_eq(rig.ran, 2);
	rig_close(&rig);
}

Test(timer_cancel, during_hand_over_wins_until_the_run_is_claimed)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2), third = PROBE(&rig, 3);
	probe_schedule(&first, MS);
	probe_schedule(&second, MS);
	probe_schedule(&third, MS);
	rig_advance(&rig, HOUR);
	expect_eq(queue_executor_waiting(&queue), 3);
	expect_eq(tw_is_pending(rig.service, second.timer), true);
	expect_eq(tw_cancel(rig.service, second.timer), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, second.timer), TW_GONE);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(queue_executor_run_next(&queue), 0);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(first.runs, 1);
	expect_eq(second.runs, 0);
	expect_eq(third.runs, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* The slot of a cancelled run may serve a new timer; the old ticket must not run it. */
Test(timer_cancel, during_hand_over_keeps_the_ticket_off_the_next_timer)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	static struct probe probes[300];
	struct probe victim = PROBE(&rig, 1000);
	probe_schedule(&victim, MS);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, victim.timer), TW_CANCELLED);
	for (int i = 0; i < 300; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], MS);
	}
	expect_eq(queue_executor_run_all(&queue), 0);
	expect_eq(rig.ran, 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_all(&queue), 300);
	expect_ids_ascend(&rig);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* ------------------------------------------------------------ while it runs */

struct stage {
	struct rig rig;
	struct queue_executor queue;
	sem_t entered, go_on;
	pthread_t runner;
	atomic_bool go_on_asked;
};

static struct stage stage;

/* Holds the run (or the release) open until the test lets it go on. */
static void stand_still(struct probe *probe)
{
	(void)probe;
	sem_post(&stage.entered);
	while (sem_wait(&stage.go_on) != 0)
		;
}

static void *run_next(void *arg)
{
	(void)arg;
	queue_executor_run_next(&stage.queue);
	return NULL;
}

static void stage_open(void)
{
	queue_executor_open(&stage.queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &stage.queue.base;
	rig_open(&stage.rig, &cfg);
	sem_init(&stage.entered, 0, 0);
	sem_init(&stage.go_on, 0, 0);
}

/* Another thread runs what is due; back when it stands still in the callback or release. */
static void stage_enter(void)
{
	rig_advance(&stage.rig, MS);
	expect_eq(pthread_create(&stage.runner, NULL, run_next, NULL), 0);
	while (sem_wait(&stage.entered) != 0)
		;
}

static void stage_leave(void)
{
	sem_post(&stage.go_on);
	pthread_join(stage.runner, NULL);
}

static void stage_close(void)
{
	queue_executor_close(&stage.queue);
	rig_close(&stage.rig);
}

Test(timer_cancel, of_a_running_timer_says_so_and_does_not_wait)
{
	stage_open();
	struct probe probe = PROBE(&stage.rig, 1);
	probe.act = stand_still;
	probe_schedule(&probe, MS);
	stage_enter();
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_RUNNING);
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_RUNNING);
	expect_eq(tw_cancel_wait(stage.rig.service, probe.timer, 0), TW_RUNNING);
	expect_eq(tw_is_pending(stage.rig.service, probe.timer), false);
	uint64_t left_ns;
	expect_eq(tw_remaining(stage.rig.service, probe.timer, &left_ns), -ENOENT);
	expect_eq(tw_reset(stage.rig.service, probe.timer, SECOND), -EBUSY);
	expect_eq(tw_reset_at(stage.rig.service, probe.timer, UINT64_MAX / 4), -EBUSY);
	stage_leave();
	expect_eq(probe.runs, 1);
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_GONE);
	stage_close();
}

static void *let_go_on(void *arg)
{
	atomic_store(&stage.go_on_asked, true);
	sem_post(arg);
	return NULL;
}

/* The order of the two is left to chance; the answer holds either way. */
Test(timer_cancel, wait_returns_after_the_callback_has_returned)
{
	stage_open();
	struct probe probe = PROBE(&stage.rig, 1);
	probe.act = stand_still;
	probe_schedule(&probe, MS);
	stage_enter();
	pthread_t helper;
	expect_eq(pthread_create(&helper, NULL, let_go_on, &stage.go_on), 0);
	int answer = tw_cancel_wait(stage.rig.service, probe.timer, TW_FOREVER);
	bool asked = atomic_load(&stage.go_on_asked);
	int runs = probe.runs;
	pthread_join(helper, NULL);
	pthread_join(stage.runner, NULL);
	cr_assert(answer == TW_FINISHED || (answer == TW_GONE && asked));
	expect_eq(runs, 1);
	stage_close();
}

Test(timer_cancel, of_a_running_series_ends_it_after_this_run)
{
	stage_open();
	struct probe probe = PROBE(&stage.rig, 1);
	probe.act = stand_still;
	probe_schedule_every_released(&probe, rate_of(MS, MS, 0));
	stage_enter();
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_RUNNING);
	expect_eq(probe.releases, 0);
	stage_leave();
	expect_released(&probe, TW_FATE_CANCELLED);
	rig_advance(&stage.rig, SECOND);
	expect_eq(queue_executor_waiting(&stage.queue), 0);
	expect_eq(probe.runs, 1);
	struct tw_service_stats stats = stats_of(stage.rig.service);
	expect_eq(stats.cancelled, 1);
	expect_eq(stats.fired, 0);
	stage_close();
}

Test(timer_cancel, while_the_release_runs_is_told_that_it_runs)
{
	stage_open();
	struct probe probe = PROBE(&stage.rig, 1);
	probe.act_in_release = stand_still;
	probe_schedule_released(&probe, MS);
	stage_enter();
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_RUNNING);
	expect_eq(tw_cancel_wait(stage.rig.service, probe.timer, 0), TW_RUNNING);
	expect_lt(tw_reset(stage.rig.service, probe.timer, SECOND), 0);
	stage_leave();
	expect_eq(tw_cancel(stage.rig.service, probe.timer), TW_GONE);
	expect_released(&probe, TW_FATE_FIRED);
	stage_close();
}

/* ------------------------------------------------------------ several at once */

enum { CONTESTED = 20000, CANCELLERS = 4 };
static tw_timer contested[CONTESTED];
static tw_service *contested_service;

static void *cancel_all(void *won)
{
	for (int i = 0; i < CONTESTED; i++)
		*(int *)won += tw_cancel(contested_service, contested[i]) == TW_CANCELLED;
	return NULL;
}

Test(timer_cancel, by_several_threads_succeeds_for_exactly_one)
{
	struct rig rig;
	rig_open(&rig, NULL);
	contested_service = rig.service;
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < CONTESTED; i++) {
		probe_schedule(&probe, SECOND);
		contested[i] = probe.timer;
	}
	pthread_t threads[CANCELLERS];
	int won[CANCELLERS] = {0}, sum = 0;
	for (int i = 0; i < CANCELLERS; i++)
		expect_eq(pthread_create(&threads[i], NULL, cancel_all, &won[i]), 0);
	for (int i = 0; i < CANCELLERS; i++) {
		pthread_join(threads[i], NULL);
		sum += won[i];
	}
	expect_eq(sum, CONTESTED);
	rig_advance(&rig, HOUR);
	expect_eq(rig.ran, 0);
	rig_close(&rig);
}
