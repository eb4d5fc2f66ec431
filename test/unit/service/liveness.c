/* Liveness: what runs where and since when, what is overdue, whether the driver polls. */
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "test/support/liveness.h"
#include "test/support/rig_suite.h"

TestSuite(service_liveness, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(service_liveness, of_an_idle_service_is_all_quiet)
{
	rig_advance(&rig, SECOND);
	struct tw_service_liveness seen = liveness_of(rig.service);
	expect_eq(seen.now_ns, rig_now(&rig));
	expect_eq(seen.overdue + seen.overdue_ns + seen.overdue_timer.id, 0);
	expect_eq(seen.running + seen.longest_ns, 0);
	cr_assert(!seen.longest_fn && !seen.longest_arg);
}

Test(service_liveness, tells_what_is_overdue_and_since_when_nobody_has_turned)
{
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
}

Test(service_liveness, counts_far_timers_that_are_overdue)
{
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
}

/* ------------------------------------------------------------ what runs */

static struct tw_service_liveness seen_inside;

static void look(struct probe *probe)
{
	seen_inside.size = sizeof(seen_inside);
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 3 * MS);
	probe->answer = tw_service_liveness(probe->rig->service, &seen_inside);
}

Test(service_liveness, shows_the_callback_that_runs)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = look;
	probe_schedule(&probe, 10 * MS);
	rig_advance(&rig, 10 * MS);
	expect_eq(probe.answer, 0);
	expect_eq(seen_inside.running, 1);
	cr_assert(seen_inside.longest_fn == probe_run);
	cr_assert(seen_inside.longest_arg == &probe);
	expect_eq(seen_inside.longest_since_ns, RIG_START_NS + 10 * MS);
	expect_eq(seen_inside.longest_ns, 3 * MS);
	expect_eq(seen_inside.longest_thread, gettid());
	expect_eq(liveness_of(rig.service).running, 0);
}

static void run_the_next_then_look(struct probe *probe)
{
	queue_executor_run_next(&queue);
	look(probe);
}

/* A run within a run on one thread: the outer one is shown. */
Test(service_liveness, shows_the_outer_callback_when_an_inner_one_has_ended)
{
	reopen_on_queue();
	struct probe outer = PROBE(&rig, 1), inner = PROBE(&rig, 2);
	outer.act = run_the_next_then_look;
	probe_schedule(&outer, MS);
	probe_schedule(&inner, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_eq(inner.runs, 1);
	expect_eq(seen_inside.running, 1);
	cr_assert(seen_inside.longest_arg == &outer);
	expect_eq(liveness_of(rig.service).running, 0);
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

Test(service_liveness, shows_the_longest_of_several_workers)
{
	tw_service *service = open_real((struct tw_service_config){.workers = 2});
	tw_timer first, second;
	int args[2];
	expect_eq(tw_schedule(service, 0, block, &args[0], &first), 0);
	sem_await(&begun);
	sleep_ms(5);
	expect_eq(tw_schedule(service, 0, block, &args[1], &second), 0);
	sem_await(&begun);
	struct tw_service_liveness seen = liveness_of(service);
	expect_eq(seen.running, 2);
	cr_assert(seen.longest_fn == block);
	cr_assert(seen.longest_arg == &args[0]);
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
Test(service_liveness, tells_of_a_tick_thread_that_hangs)
{
	tw_service *service =
	    open_real((struct tw_service_config){.executor = tw_executor_inline()});
	tw_timer waits;
	expect_eq(tw_schedule(service, 0, block, &waits, NULL), 0);
	sem_await(&begun);
	expect_eq(tw_schedule(service, MS, block, NULL, &waits), 0);
	sleep_ms(30);
	struct tw_service_liveness seen = liveness_of(service);
	expect_ge(seen.since_turn_ns, 25 * MS);
	expect_ge(seen.turn_late_ns, 20 * MS);
	cr_assert(seen.longest_fn == block);
	cr_assert(seen.longest_arg == &waits);
	expect_ge(seen.longest_ns, 25 * MS);
	expect_ne(seen.longest_thread, gettid());
	expect_eq(seen.overdue, 1);
	expect_eq(seen.overdue_timer.id, waits.id);
	expect_ge(seen.overdue_ns, 20 * MS);
	sem_post(&go_on);
	sem_await(&begun);
	sem_post(&go_on);
	expect_eq(tw_service_destroy(service), 0);
}

Test(service_liveness, of_a_tick_thread_that_sleeps_is_not_late)
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
