/* Liveness: what runs where and since when, what is overdue, whether the driver polls. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/support/gates.h"
#include "test/support/liveness.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(service_liveness, .init = open_rig, .fini = close_rig, .timeout = 30);

#define GAUGE(name) GAUGE_OF(tw_service_liveness, name)

static const struct gauge gauges[] = {
    GAUGE(since_turn_ns), GAUGE(turn_late_ns), GAUGE(overdue),          GAUGE(overdue_ns),
    GAUGE(running),       GAUGE(longest_ns),   GAUGE(longest_since_ns), {NULL, 0},
};

/* By ms, or a number. */
static void say_liveness(const struct words *words)
{
	struct tw_service_liveness seen = liveness_of(timer_stage.rig->service);
	expect_eq(seen.now_ns, rig_now(timer_stage.rig));
	expect_eq(seen.longest_thread, seen.running ? gettid() : 0);
	seen.longest_since_ns -= seen.running ? RIG_START_NS : 0;
	for (const struct gauge *gauge = gauges; gauge->name; gauge++) {
		uint64_t *value = (uint64_t *)(void *)((char *)&seen + gauge->offset);
		*value /= strstr(gauge->name, "_ns") ? MS : 1;
	}
	say_gauges(words, gauges, &seen);
}

static const struct verb verbs[] = {{"alive", say_liveness}, {NULL, NULL}};

static const struct script scripts[] = {
    {"of an idle service is all quiet",
     {{"drive 1000; alive overdue overdue_ns running longest_ns",
       "@1000 overdue=0, overdue_ns=0, running=0, longest_ns=0"}}},
    /* nobody has planned a turn, which would be late */
    {"tells what is overdue and since when nobody has turned",
     {{"timer 0 in=5 plain; timer 1 in=2 plain; timer 2 in=3600000 plain; timer 3 in=34560000000 "
       "plain; drive 1; alive overdue",
       "@1 overdue=0"},
      {"pass 29; alive since_turn_ns turn_late_ns overdue overdue_ns",
       "@30 since_turn_ns=29, turn_late_ns=0, overdue=2, overdue_ns=28"},
      {"poll; alive overdue since_turn_ns",
       "run 1 late=28, run 0 late=25, 2, overdue=0, since_turn_ns=0"}}},
    {"counts far timers that are overdue",
     {{"timer 0 in=3456000000 plain; timer 1 in=34560000000 plain; drive 1728000000", ""},
      {"pass 1814400000; alive overdue overdue_ns", "@3542400000 overdue=1, overdue_ns=86400000"},
      {"poll; alive overdue", "run 0 late=86400000, 1, overdue=0"}}},
    {"shows the callback that runs",
     {{"timer 0 in=10 plain stays=3 {alive running longest_ns longest_since_ns}; drive 10",
       "@10 run 0, @13 running=1, longest_ns=3, longest_since_ns=10"},
      {"alive running", "running=0"}}},
    /* on one thread */
    {"shows the outer callback when an inner one has ended",
     {{"given queued; timer 0 in=1 plain stays=3 {next; alive running longest_since_ns}; timer 1 "
       "in=1 plain; hold; drive 1",
       ""},
      {"next; alive running",
       "@1 run 0, @4 run 1 late=3, running=1, longest_since_ns=1, running=0"}}},
    {"shows a run behind a slow release no older than it is",
     {{"timer 0 in=1 [pass 3000]; timer 1 in=1 plain {alive running longest_ns longest_since_ns}",
       ""},
      {"drive 1", "@1 run 0, 0 fired, @3001 run 1 late=3000, running=1, longest_ns=0, "
		  "longest_since_ns=3001"}}},
    {"the same behind the release of a member that a callback cancels",
     {{"group 0; timer 0 in=1 plain {group_cancel 0}; timer 1 in=9 group=0 [pass 3000]", ""},
      {"timer 2 in=1 plain {alive running longest_ns longest_since_ns}; drive 1",
       "@1 run 0, 1 cancelled, @3001 run 2 late=3000, running=1, longest_ns=0, "
       "longest_since_ns=3001"}}},
};

Test(service_liveness, follows_the_scripts)
{
	PLAY(&timer_stage, verbs, scripts);
}

/* ------------------------------------------------------------ an inner run */

static struct rig inner;
static struct tw_service_liveness seen_inside, seen_of_inner;

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
