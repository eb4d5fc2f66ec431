/*
 * A drain is a phase: what is pending may be moved and may arm itself again, what is new is
 * refused. Each service here has a timer that is an hour away, which holds the drain up until the
 * test cancels it.
 */
#include <errno.h>

#include "test/support/closing.h"
#include "test/support/timer_script.h"

TestSuite(close_real_drain, .timeout = 60);

/*
 * An hour away until the drain has begun, then moved: what is left of it goes on, also if its runs
 * arm it again. Timer 63 holds the drain up.
 */
static const struct script scripts[] = {
    {"a one-shot",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000; beside 1 {close drain}", ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; over 0; reset 63 by=0; joined 1",
       "run 0, 0 fired"}}},
    {"a one-shot that arms itself",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000 times=3 {reset 0 by=1}; beside 1 {close "
       "drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=1; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a background timer that arms itself",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000 background times=3 {reset 0 by=0}; beside 1 "
       "{close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a background timer that is far",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000 background; beside 1 {close drain}", ""},
      {"until_closed; reset 0 by=7200000; reset 63 by=0; joined 1", "0 dropped"}}},
    {"a background series",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 background silent; beside 1 "
       "{close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=1; ran 0 9; reset 63 by=0; joined 1", ""}}},
    {"a series of five",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 count=5; beside 1 {close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a series of five that moves itself",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 count=5 times=3 {reset 0 by=0}; "
       "beside 1 {close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=1; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a series of two that moves itself",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 count=2 times=3 {reset 0 by=1}; "
       "beside 1 {close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a series without a count",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1; beside 1 {close drain}", ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=1; over 0; reset 63 by=0; joined 1",
       "run 0, 0 fired"}}},
    {"a series without a count that moves itself",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 times=3 {reset 0 by=0}; beside 1 "
       "{close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a series that moves itself to earlier",
     {{"timer 63 in=3600000 silent; timer 0 first=3600000 every=1 times=3 {earlier 0 by=0}; beside "
       "1 {close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=1; over 0; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 fired"}}},
    {"a persistent timer",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000 persistent; beside 1 {close drain}", ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; ran 0 1; reset 63 by=0; joined 1",
       "run 0, 0 dropped"}}},
    {"a persistent timer that arms itself",
     {{"timer 63 in=3600000 silent; timer 0 in=3600000 persistent times=3 {reset 0 by=1}; beside 1 "
       "{close drain}",
       ""},
      {"until_closed; reset 0 by=7200000; reset 0 by=0; ran 0 4; reset 63 by=0; joined 1",
       "run 0, run 0, run 0, run 0, 0 dropped"}}},
    /* a disarmed timer is not pending: to arm it is new work */
    {"what is new is refused",
     {{"timer 63 in=3600000 silent; timer 0 never persistent; beside 1 {close drain}", ""},
      {"until_closed; timer 1 in=0; reset 0 by=0; earlier 0 by=0; reset 5 by=0; disarm 0",
       "ESHUTDOWN, ESHUTDOWN, ESHUTDOWN, ENOENT, DISARMED"},
      {"reset 63 by=0; joined 1; reset 63 by=0", "0 dropped, ESHUTDOWN"}}},
};

Test(close_real_drain, follows_the_scripts)
{
	static const char *const given[] = {"real workers=2", "real", "real by_hand"};
	for (int i = 0; i < 3; i++) {
		script_given = given[i];
		PLAY(&timer_stage, NULL, scripts);
	}
}

/* ------------------------------------------------------------ its end */

static tw_service *service;
static tw_timer holder;
static struct closing drain;
static atomic_int runs;

static void never(void *arg)
{
}

static void run_again(void *arg)
{
	runs++;
	tw_reset(service, tw_self(), 0);
}

static void open_held(void)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 1};
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_schedule(service, HOUR, never, NULL, &holder), 0);
	expect_eq(tw_schedule(service, 0, run_again, NULL, NULL), 0);
}

/* The mode falls under a timer that would go on for as long as it may. */
static void expect_ends_at(enum tw_close_mode mode)
{
	open_held();
	closing_start(&drain, service, TW_CLOSE_DRAIN, TW_FOREVER);
	while (tw_schedule(service, HOUR, never, NULL, NULL) == 0)
		sched_yield();
	for (int seen = runs; runs < seen + 3;)
		sched_yield();
	expect_eq(tw_service_close(service, mode, TW_FOREVER), 0);
	expect_eq(closing_end(&drain), 0);
	expect_eq(tw_reset(service, holder, 0), -ESHUTDOWN);
	expect_eq(stats_of(service).pending, 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(close_real_drain, ends_with_a_lower_mode)
{
	expect_ends_at(TW_CLOSE_RUN);
	expect_ends_at(TW_CLOSE_DROP);
}

/* With its timeout a drain becomes a drop. What arms itself without end ends there. */
Test(close_real_drain, ends_with_its_timeout)
{
	for (int round = 0; round < 20; round++) {
		open_held();
		while (tw_service_close(service, TW_CLOSE_DRAIN, MS) == -ETIMEDOUT)
			expect_eq(stats_of(service).pending, 0);
		int runs_then = runs;
		expect_eq(stats_of(service).pending, 0);
		expect_eq(tw_service_destroy(service), 0);
		expect_eq(runs, runs_then);
	}
}
