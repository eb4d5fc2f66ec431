/* Closing: each mode, what it refuses, and who must not ask for it. */
#include <errno.h>

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
    /* near, far, and moved to earlier: each kind of timer comes again */
    {"that runs hands over again what the executor gives up",
     {{"given queued; timer 0 in=1; timer 1 in=34560000000; timer 2 in=3600000; drive 0", ""},
      {"reset 2 by=1000; drive 0; beside 0 {close run}; queued 3; give_back; give_back; give_back; "
       "queued 3; give_back; give_back; give_back; queued 3; pump; joined 0",
       "run 0 closing, 0 fired, run 2 closing, 2 fired, run 1 closing, 1 fired"}}},
    {"calls releases that may call what any release may",
     {{"timer 0 in=9 [timer 1 in=0; cancel 0; cancel_wait 0; reset 0 by=0; left 0; close drop 0; "
       "destroy; stats dropped]; close drop",
       "0 dropped, ESHUTDOWN, RUNNING, SELF, ESHUTDOWN, ENOENT, EDEADLK, EDEADLK, dropped=1"}}},
    {"calls releases that may cancel the others",
     {{"timer 0 in=9 [cancel 1 2]; timer 1 2 in=9; close drop",
       "0 dropped, 1 cancelled, CANCELLED, 2 cancelled, CANCELLED"}}},
};

Test(close, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* ------------------------------------------------------------ run */

static int runs_at_once(tw_executor *executor, tw_batch *batch, size_t count)
{
	while (count--)
		tw_run_one(batch);
	return 0;
}

/* More executors than the driver has outboxes for: what finds none comes back to the wheel. */
Test(close, that_runs_ends_with_any_number_of_executors)
{
	enum { EXECUTORS = 5000 };
	static const struct tw_executor_ops ops = {sizeof ops, runs_at_once};
	static tw_executor executors[EXECUTORS];
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < EXECUTORS; i++) {
		executors[i].ops = &ops;
		struct tw_task task = probe_task(&probe);
		task.when_ns = SECOND;
		task.release = NULL;
		task.executor = &executors[i];
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	}
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, 10 * SECOND), 0);
	expect_eq(probe.runs, EXECUTORS);
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
