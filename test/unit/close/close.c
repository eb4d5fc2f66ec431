/* Closing: each mode, what it refuses, and who must not ask for it. */
#include <errno.h>

#include "test/support/closing.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(close, .init = open_rig, .fini = close_rig, .timeout = 30);

static const struct script scripts[] = {
    {"drops, and runs nothing, whatever is asked for later",
     {{"timer 0 in=1000 plain; timer 1 in=0; close drop 0; stats dropped pending",
       "1 dropped, dropped=2, pending=0"},
      {"close run; close drain; close drop", ""}}},
    {"runs each pending timer once, at any distance",
     {{"timer 0 in=0 plain; drive 1; timer 1 in=0 plain; timer 2 in=3000 plain", "run 0"},
      {"timer 3 in=8640000000 plain; timer 4 in=345600000000 plain; timer 5 every=1 plain", ""},
      {"close run; stats dropped",
       "@1 run 1 closing, run 5 closing, run 2 closing, run 3 closing, run 4 closing, dropped=0"}}},
    {"runs, and lets nothing re-arm",
     {{"timer 0 in=3600000 {reset 0 by=0; timer 1 in=0 plain}; close run",
       "run 0 closing, ESHUTDOWN, ESHUTDOWN, 0 fired"}}},
    {"runs, and still honors cancels",
     {{"timer 0 in=1000 {cancel 1} plain; timer 1 in=1000 plain; close run; stats cancelled",
       "run 0 closing, CANCELLED, cancelled=1"}}},
    {"would drain without end on a clock that nobody moves",
     {{"timer 0 in=1000 plain; close drain; timer 1 in=1000 plain; drive 1000; close drain",
       "EDEADLK, @1000 run 0, run 1"}}},
    {"waits for tickets that the executor has",
     {{"given queued; timer 0 1 in=1; hold; drive 1; close drop 0; waiting",
       "@1 0 dropped, 1 dropped, ETIMEDOUT, 2 wait"},
      {"timer 2 in=1; hold; close drop 0", "ESHUTDOWN, ETIMEDOUT"},
      {"next; give_back; close drop", ""}}},
};

Test(close, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* ------------------------------------------------------------ drain */

Test(close, that_drains_would_wait_for_ever_with_a_tick_thread_too)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, 0), -EDEADLK);
	rig_advance(&rig, SECOND);
	expect_eq(probe.runs, 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
}

/* ------------------------------------------------------------ runs that have been handed over */

/* Near, far, and moved to earlier: each kind of timer comes again, since close is to run it. */
Test(close, that_runs_hands_over_again_what_the_executor_gives_up)
{
	reopen_on_queue();
	struct probe near = PROBE(&rig, 1), far = PROBE(&rig, 2), earlier = PROBE(&rig, 3);
	probe_schedule_released(&near, MS);
	probe_schedule_released(&far, 400 * DAY);
	probe_schedule_released(&earlier, HOUR);
	rig_advance(&rig, 0);
	expect_eq(tw_reset(rig.service, earlier.timer, SECOND), 0);
	rig_advance(&rig, 0);
	struct closing closing;
	closing_start(&closing, rig.service, TW_CLOSE_RUN, TW_FOREVER);
	for (int round = 0; round < 3; round++) {
		closing_await(&queue, 3);
		while (queue_executor_drop_next(&queue) == 0)
			;
	}
	expect_eq(closing_run(&closing, &queue), 0);
	expect_released(&near, TW_FATE_FIRED);
	expect_released(&far, TW_FATE_FIRED);
	expect_released(&earlier, TW_FATE_FIRED);
}

/* A listing's visitor that tries to end the service under it. */
static int try_to_end(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg, uint64_t left_ns)
{
	(void)timer, (void)fn, (void)timer_arg, (void)left_ns;
	struct tw_run_info info = {.size = sizeof(info)};
	expect_eq(tw_service_close(arg, TW_CLOSE_DROP, 0), -EDEADLK);
	expect_eq(tw_service_destroy(arg), -EDEADLK);
	expect_eq(tw_current(&info), 0);
	return 1;
}

Test(close, visitor_of_a_listing_does_not_end_its_service)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	expect_eq(tw_service_foreach(rig.service, try_to_end, rig.service), 1);
	rig_advance(&rig, 2 * MS);
	expect_eq(probe.runs, 1);
}

static int note_self(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg, uint64_t left_ns)
{
	(void)timer, (void)fn, (void)timer_arg, (void)left_ns;
	*(tw_timer *)arg = tw_self();
	return 1;
}

static void list(struct probe *probe)
{
	tw_timer self = {0};
	probe->answer = tw_service_foreach(probe->rig->service, note_self, &self) == 1 &&
			self.id == probe->timer.id;
}

Test(close, callback_that_lists_stays_the_current_one)
{
	struct probe lists = PROBE(&rig, 1), other = PROBE(&rig, 2);
	lists.act = list;
	probe_schedule(&lists, MS);
	probe_schedule(&other, HOUR);
	rig_advance(&rig, 3 * MS);
	expect_eq(lists.answer, 1);
}
