/* Liveness: what runs where and since when, what is overdue, whether the driver polls. */
#include <time.h>
#include <unistd.h>

#include "test/support/gates.h"
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

/* ------------------------------------------------- an inner run, or a release before it */

static struct rig inner;
static struct tw_service_liveness seen_of_inner;

static void look_at_both(void *arg)
{
	seen_inside = liveness_of(rig.service);
	seen_of_inner = liveness_of(inner.service);
}

/* Drives another service inline, whose callback looks. */
static void drive_the_other(void *arg)
{
	tw_schedule(inner.service, 0, look_at_both, arg, NULL);
	rig_advance(&inner, MS);
}

Test(service_liveness, shows_the_outer_run_to_its_service)
{
	tw_strand *strand;
	rig_open(&inner, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, drive_the_other, &inner), 0);
	rig_advance(&rig, MS);
	expect_eq(seen_inside.running, 1);
	cr_assert(seen_inside.longest_fn == drive_the_other && seen_inside.longest_arg == &inner);
	expect_eq(seen_of_inner.running, 0);
	expect_eq(liveness_of(rig.service).running + liveness_of(inner.service).running, 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&inner);
}

static tw_group group;

static void take_long(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 3 * SECOND);
}

static void cancel_group(struct probe *probe)
{
	tw_group_cancel(probe->rig->service, group);
}

/* The release of a one-shot, or of a member that a callback cancels, takes long. */
static void expect_young_behind_a_release(bool of_member)
{
	reopen_rig(NULL);
	struct probe cancels = PROBE(&rig, 0), slow = PROBE(&rig, 1), looks = PROBE(&rig, 2);
	struct tw_task task = probe_task(&slow);
	cancels.act = cancel_group;
	slow.act_in_release = take_long;
	looks.act = look;
	task.when_ns = MS;
	if (of_member) {
		expect_eq(tw_group_create(&group, rig.service), 0);
		task.group = group;
		probe_schedule(&cancels, MS);
	}
	probe_schedule_task(&slow, &task);
	probe_schedule(&looks, MS);
	rig_advance(&rig, MS);
	expect_eq(slow.releases, 1);
	expect_ge(looks.ran_at_ns, RIG_START_NS + 3 * SECOND);
	expect_eq(seen_inside.running, 1);
	expect_eq(seen_inside.longest_since_ns, looks.ran_at_ns);
}

Test(service_liveness, shows_a_run_behind_a_slow_release_no_older_than_it_is)
{
	expect_young_behind_a_release(false);
	expect_young_behind_a_release(true);
}

/* ---------------------------------------------------------------------- real time */

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* A service in real time whose callbacks stand still until told to go on. */
static tw_service *open_real(struct tw_service_config cfg)
{
	tw_service *service;
	open_gates();
	cfg.size = sizeof(cfg);
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

Test(service_liveness, shows_the_longest_of_several_workers)
{
	tw_service *service = open_real((struct tw_service_config){.workers = 2});
	tw_timer first, second;
	atomic_int args[2] = {0};
	expect_eq(tw_schedule(service, 0, stand_still, &args[0], &first), 0);
	await(&entered, 1);
	sleep_ms(5);
	expect_eq(tw_schedule(service, 0, stand_still, &args[1], &second), 0);
	await(&entered, 1);
	struct tw_service_liveness seen = liveness_of(service);
	expect_eq(seen.running, 2);
	cr_assert(seen.longest_fn == stand_still);
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
	atomic_int args[2] = {0};
	expect_eq(tw_schedule(service, 0, stand_still, &args[0], NULL), 0);
	await(&entered, 1);
	expect_eq(tw_schedule(service, MS, stand_still, &args[1], &waits), 0);
	sleep_ms(30);
	struct tw_service_liveness seen = liveness_of(service);
	expect_ge(seen.since_turn_ns, 25 * MS);
	expect_ge(seen.turn_late_ns, 20 * MS);
	cr_assert(seen.longest_fn == stand_still);
	cr_assert(seen.longest_arg == &args[0]);
	expect_ge(seen.longest_ns, 25 * MS);
	expect_ne(seen.longest_thread, gettid());
	expect_eq(seen.overdue, 1);
	expect_eq(seen.overdue_timer.id, waits.id);
	expect_ge(seen.overdue_ns, 20 * MS);
	sem_post(&go_on);
	await(&entered, 1);
	sem_post(&go_on);
	expect_eq(tw_service_destroy(service), 0);
}

Test(service_liveness, of_a_tick_thread_that_sleeps_is_not_late)
{
	tw_service *service = open_real((struct tw_service_config){.workers = 1});
	expect_eq(tw_schedule(service, HOUR, stand_still, NULL, NULL), 0);
	struct tw_service_liveness seen;
	do {
		seen = liveness_of(service);
		expect_eq(seen.overdue, 0);
	} while (seen.since_turn_ns < 30 * MS ||
		 seen.turn_late_ns > 0); /* it ticks for a while, then sleeps */
	expect_eq(tw_service_destroy(service), 0);
}
