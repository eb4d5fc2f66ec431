/*
 * Liveness: what runs where and since when, what is overdue, whether the driver turns; and the
 * telling of what is stuck.
 */
#include <errno.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/support/liveness.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(runs_watchdog, .timeout = 30);

Test(runs_watchdog, of_an_idle_service_is_all_quiet)
{
	struct rig rig;
	rig_open(&rig, NULL);
	rig_advance(&rig, SECOND);
	struct tw_service_liveness seen = liveness_of(rig.service);
	expect_eq(seen.now_ns, rig_now(&rig));
	expect_eq(seen.overdue + seen.overdue_ns + seen.overdue_timer.id, 0);
	expect_eq(seen.running + seen.longest.id + seen.longest_ns, 0);
	cr_assert(!seen.longest_fn);
	rig_close(&rig);
}

Test(runs_watchdog, tells_what_is_overdue_and_since_when_nobody_has_turned)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probes[] = {PROBE(&rig, 0), PROBE(&rig, 1), PROBE(&rig, 2), PROBE(&rig, 3)};
	probe_schedule(&probes[0], 5 * MS);
	probe_schedule(&probes[1], 2 * MS);
	probe_schedule(&probes[2], HOUR);
	probe_schedule(&probes[3], 400 * DAY);
	rig_advance(&rig, MS);
	expect_eq(liveness_of(rig.service).overdue, 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 30 * MS), 0);
	struct tw_service_liveness seen = liveness_of(rig.service);
	expect_eq(seen.since_turn_ns, 29 * MS);
	expect_eq(seen.turn_late_ns, 0); /* nobody has planned a turn */
	expect_eq(seen.overdue, 2);
	expect_eq(seen.overdue_ns, 28 * MS);
	expect_eq(seen.overdue_timer.id, probes[1].timer.id);
	tw_service_advance(rig.service, TW_NO_LIMIT);
	expect_eq(liveness_of(rig.service).overdue, 0);
	expect_eq(liveness_of(rig.service).since_turn_ns, 0);
	rig_close(&rig);
}

Test(runs_watchdog, counts_far_timers_that_are_overdue)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probes[] = {PROBE(&rig, 0), PROBE(&rig, 1)};
	probe_schedule(&probes[0], 40 * DAY);
	probe_schedule(&probes[1], 400 * DAY);
	rig_advance(&rig, 20 * DAY);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 41 * DAY), 0);
	struct tw_service_liveness seen = liveness_of(rig.service);
	expect_eq(seen.overdue, 1);
	expect_eq(seen.overdue_ns, DAY);
	expect_eq(seen.overdue_timer.id, probes[0].timer.id);
	tw_service_advance(rig.service, TW_NO_LIMIT);
	expect_eq(liveness_of(rig.service).overdue, 0);
	rig_close(&rig);
}

/* ------------------------------------------------------------ what runs */

static struct tw_service_liveness seen_inside;

static void look(struct probe *probe)
{
	seen_inside.size = sizeof(seen_inside);
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 3 * MS);
	probe->answer = tw_service_liveness(probe->rig->service, &seen_inside);
}

Test(runs_watchdog, shows_the_callback_that_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = look;
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, 10 * MS);
	expect_eq(probe.answer, 0);
	expect_eq(seen_inside.running, 1);
	expect_eq(seen_inside.longest.id, probe.timer.id);
	cr_assert(seen_inside.longest_fn == probe_run);
	expect_eq(seen_inside.longest_since_ns, RIG_START_NS + 10 * MS);
	expect_eq(seen_inside.longest_ns, 3 * MS);
	expect_eq(seen_inside.longest_thread, gettid());
	expect_eq(liveness_of(rig.service).running, 0);
	rig_close(&rig);
}

static struct queue_executor queue;

static void run_the_next_then_look(struct probe *probe)
{
	queue_executor_run_next(&queue);
	look(probe);
}

/* A run within a run on one thread: when the inner one is over, the outer one is shown again. */
Test(runs_watchdog, shows_the_outer_callback_when_an_inner_one_has_ended)
{
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe outer = PROBE(&rig, 1), inner = PROBE(&rig, 2);
	outer.act = run_the_next_then_look;
	probe_schedule(&outer, MS);
	probe_schedule(&inner, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(inner.runs, 1);
	expect_eq(seen_inside.running, 1);
	expect_eq(seen_inside.longest.id, outer.timer.id);
	expect_eq(liveness_of(rig.service).running, 0);
	queue_executor_close(&queue);
	rig_close(&rig);
}

static sem_t begun, go_on;

static void block(void *arg)
{
	(void)arg;
	sem_post(&begun);
	while (sem_wait(&go_on) != 0)
		;
}

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* A service in real time whose callbacks block until told to go on. */
static tw_service *open_real(struct tw_service_config cfg)
{
	tw_service *service;
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	cfg.size = sizeof(cfg);
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

Test(runs_watchdog, shows_the_longest_of_several_workers)
{
	tw_service *service = open_real((struct tw_service_config){.workers = 2});
	tw_timer first, second;
	expect_eq(tw_schedule(service, 0, block, NULL, &first), 0);
	sem_await(&begun);
	sleep_ms(5);
	expect_eq(tw_schedule(service, 0, block, NULL, &second), 0);
	sem_await(&begun);
	struct tw_service_liveness seen = liveness_of(service);
	expect_eq(seen.running, 2);
	expect_eq(seen.longest.id, first.id);
	cr_assert(seen.longest_fn == block);
	expect_ge(seen.longest_ns, 5 * MS);
	expect_ne(seen.longest_thread, gettid());
	expect_ne(seen.longest_thread, 0);
	sem_post(&go_on);
	sem_post(&go_on);
	expect_eq(tw_cancel_wait(service, first, TW_FOREVER) == TW_RUNNING, 0);
	expect_eq(tw_cancel_wait(service, second, TW_FOREVER) == TW_RUNNING, 0);
	while (liveness_of(service).running)
		sched_yield();
	expect_eq(tw_service_destroy(service), 0);
}

/*
 * The tick thread hangs in an inline callback: any other thread can see that, and what is overdue
 * by it.
 */
Test(runs_watchdog, tells_of_a_tick_thread_that_hangs)
{
	tw_service *service =
	    open_real((struct tw_service_config){.executor = tw_executor_inline()});
	tw_timer hangs, waits;
	expect_eq(tw_schedule(service, 0, block, NULL, &hangs), 0);
	sem_await(&begun);
	expect_eq(tw_schedule(service, MS, block, NULL, &waits), 0);
	sleep_ms(30);
	struct tw_service_liveness seen = liveness_of(service);
	expect_ge(seen.since_turn_ns, 25 * MS);
	expect_ge(seen.turn_late_ns, 20 * MS);
	expect_eq(seen.longest.id, hangs.id);
	expect_eq(seen.overdue, 1);
	expect_eq(seen.overdue_timer.id, waits.id);
	expect_ge(seen.overdue_ns, 20 * MS);
	sem_post(&go_on);
	sem_await(&begun);
	sem_post(&go_on);
	expect_eq(tw_service_destroy(service), 0);
}

Test(runs_watchdog, of_a_tick_thread_that_sleeps_is_not_late)
{
	tw_service *service = open_real((struct tw_service_config){.workers = 1});
	tw_timer timer;
	expect_eq(tw_schedule(service, HOUR, block, NULL, &timer), 0);
	struct tw_service_liveness seen;
	do {
		seen = liveness_of(service);
		expect_eq(seen.overdue, 0);
	} while (seen.since_turn_ns < 30 * MS ||
		 seen.turn_late_ns > 0); /* it ticks for a while, then sleeps */
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ on_stuck */

static atomic_int told;
static struct tw_service_liveness told_of;
static tw_service *told_service;
static int told_answers[3];

static void on_stuck(void *arg, const struct tw_service_liveness *seen)
{
	told_of = *seen;
	told_answers[0] = tw_service_close(told_service, TW_CLOSE_DROP, 0);
	told_answers[1] = tw_cancel(told_service, seen->longest);
	told_answers[2] = tw_self().id == 0;
	atomic_fetch_add((atomic_int *)arg, 1);
}

Test(runs_watchdog, stuck_callbacks_are_told_once_each)
{
	tw_service *service = open_real((struct tw_service_config){
	    .workers = 2, .stuck_ns = 20 * MS, .on_stuck = on_stuck, .stuck_arg = &told});
	told_service = service;
	for (int round = 1; round <= 2; round++) {
		tw_timer timer;
		uint64_t before_ns = tw_service_now(service);
		expect_eq(tw_schedule(service, 0, block, NULL, &timer), 0);
		while (atomic_load(&told) < round)
			sched_yield();
		expect_ge(tw_service_now(service) - before_ns, 20 * MS);
		expect_eq(told_of.longest.id, timer.id);
		expect_ge(told_of.longest_ns, 20 * MS);
		cr_assert(told_of.longest_fn == block);
		expect_eq(told_answers[0], -EDEADLK);
		expect_eq(told_answers[1], TW_RUNNING);
		expect_eq(told_answers[2], true);
		sleep_ms(50);
		expect_eq(atomic_load(&told), round);
		sem_post(&go_on);
		expect_eq(tw_cancel_wait(service, timer, TW_FOREVER) == TW_RUNNING, 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* Manual clock: quick callbacks are not told of, however far the clock moves between them. */
Test(runs_watchdog, callbacks_that_return_are_not_stuck)
{
	struct tw_service_config cfg = rig_config();
	cfg.stuck_ns = MS;
	cfg.on_stuck = on_stuck;
	cfg.stuck_arg = &told;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < 100; i++) {
		probe_schedule(&probe, 10 * MS);
		rig_advance(&rig, SECOND);
	}
	expect_eq(probe.runs, 100);
	expect_eq(atomic_load(&told), 0);
	rig_close(&rig);
}

Test(runs_watchdog, nothing_wakes_for_a_stuck_callback_where_nothing_runs)
{
	tw_service *service = open_real((struct tw_service_config){
	    .workers = 1, .stuck_ns = MS, .on_stuck = on_stuck, .stuck_arg = &told});
	sleep_ms(50);
	uint64_t before = stats_of(service).wakeups;
	sleep_ms(100);
	expect_le(stats_of(service).wakeups - before, 2);
	expect_eq(tw_service_destroy(service), 0);
}

/* Such a limit is as good as none: the tick thread has nothing to look for. */
Test(runs_watchdog, nothing_wakes_for_a_limit_that_no_clock_reaches)
{
	tw_timer timer;
	tw_service *service = open_real((struct tw_service_config){
	    .workers = 1, .stuck_ns = TW_FOREVER, .on_stuck = on_stuck, .stuck_arg = &told});
	expect_eq(tw_schedule(service, 0, block, NULL, &timer), 0);
	sleep_ms(50);
	uint64_t before = stats_of(service).wakeups;
	sleep_ms(100);
	expect_le(stats_of(service).wakeups - before, 2);
	expect_eq(atomic_load(&told), 0);
	sem_post(&go_on);
	expect_eq(tw_service_destroy(service), 0);
}

Test(runs_watchdog, half_an_on_stuck_is_refused)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = rig_config();
	cfg.stuck_ns = SECOND;
	expect_eq(tw_service_create(&service, &cfg), -EINVAL);
	cfg.stuck_ns = 0;
	cfg.on_stuck = on_stuck;
	expect_eq(tw_service_create(&service, &cfg), -EINVAL);
	cr_assert(!service);
}

/* ------------------------------------------------------------ sizes */

Test(runs_watchdog, bad_input_and_sizes)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct {
		struct tw_service_liveness known;
		unsigned char unknown[40];
	} newer;
	memset(&newer, 0xa5, sizeof(newer));
	expect_eq(tw_service_liveness(NULL, &newer.known), -EINVAL);
	expect_eq(tw_service_liveness(rig.service, NULL), -EINVAL);
	newer.known.size = sizeof(size_t);
	expect_eq(tw_service_liveness(rig.service, &newer.known), -EINVAL);
	newer.known.size = offsetof(struct tw_service_liveness, overdue);
	expect_eq(tw_service_liveness(rig.service, &newer.known), 0);
	expect_eq(newer.known.now_ns, RIG_START_NS);
	expect_eq(newer.known.overdue, UINT64_C(0xa5a5a5a5a5a5a5a5));
	newer.known.size = sizeof(newer);
	expect_eq(tw_service_liveness(rig.service, &newer.known), 0);
	for (size_t i = 0; i < sizeof(newer.unknown); i++)
		expect_eq(newer.unknown[i], 0);
	rig_close(&rig);
}
