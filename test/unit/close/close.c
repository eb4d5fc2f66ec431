/* Closing: each mode, what it refuses, and who must not ask for it. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "test/support/closing.h"
#include "test/support/rig_suite.h"
#include "test/support/current.h"

TestSuite(close, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ drop */

Test(close, that_drops_runs_nothing)
{
	struct probe probe = PROBE(&rig, 1), due = PROBE(&rig, 2);
	probe_schedule(&probe, SECOND);
	probe_schedule(&due, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(rig.ran, 0);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.dropped, 2);
	expect_eq(stats.pending, 0);
}

Test(close, refuses_everything_new)
{
	struct probe probe = PROBE(&rig, 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	struct tw_service_stats before = stats_of(rig.service);
	struct tw_period period = rate_of(0, MS, 0);
	struct tw_task task = {
	    .size = sizeof(task), .fn = probe_run, .arg = &probe, .release = probe_release};
	tw_timer none = {.id = 1};
	expect_eq(tw_schedule(rig.service, 0, probe_run, &probe, &none), -ESHUTDOWN);
	expect_eq(none.id, 0);
	none.id = 1;
	expect_eq(tw_schedule_at(rig.service, 0, probe_run, &probe, &none), -ESHUTDOWN);
	expect_eq(none.id, 0);
	none.id = 1;
	expect_eq(tw_schedule_every(rig.service, &period, probe_run, &probe, &none), -ESHUTDOWN);
	expect_eq(none.id, 0);
	none.id = 1;
	expect_eq(tw_schedule_task(rig.service, &task, &none), -ESHUTDOWN);
	expect_eq(none.id, 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), -ESHUTDOWN);
	struct tw_service_stats after = stats_of(rig.service);
	expect_same_state(&before, &after);
	expect_eq(after.rejected, before.rejected + 4);
	expect_eq(probe.releases, 0);
	reopen_rig(NULL);
	expect_eq(probe.releases, 0);
}

Test(close, of_a_closed_service_answers_the_same)
{
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++)
		expect_eq(tw_service_close(rig.service, (enum tw_close_mode)mode, TW_FOREVER), 0);
}

/* ------------------------------------------------------------ run */

Test(close, that_runs_runs_each_pending_timer_once)
{
	static const uint64_t delays_ns[] = {0, MS, 3 * SECOND, HOUR, 100 * DAY, 4000 * DAY};
	enum { COUNT = sizeof(delays_ns) / sizeof(delays_ns[0]) };
	struct probe probes[COUNT], series = PROBE(&rig, COUNT), ran = PROBE(&rig, COUNT + 1);
	probe_schedule(&ran, 0);
	rig_advance(&rig, MS);
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delays_ns[i]);
	}
	probe_schedule_every(&series, rate_of(MS, MS, 0));
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	for (int i = 0; i < COUNT; i++)
		expect_eq(probes[i].runs, 1);
	expect_eq(series.runs, 1);
	expect_eq(ran.runs, 1);
	expect_eq(rig.events[0].closing, false);
	for (size_t i = 1; i < rig.ran; i++)
		expect_eq(rig.events[i].closing, true);
	expect_eq(stats_of(rig.service).dropped, 0);
	expect_eq(current_run().closing, false);
}

static void try_to_go_on(struct probe *probe)
{
	tw_timer timer;
	probe->answer = tw_reset(probe->rig->service, tw_self(), 0) == -ESHUTDOWN &&
			tw_schedule(probe->rig->service, 0, probe_run, probe, &timer) == -ESHUTDOWN;
}

Test(close, that_runs_lets_nothing_re_arm)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act = try_to_go_on;
	probe_schedule_released(&probe, HOUR);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(probe.answer, 1);
	expect_eq(probe.runs, 1);
	expect_released(&probe, TW_FATE_FIRED);
}

static void cancel_the_other(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->other->timer);
}

/* Each of two cancels the other: one runs, whichever comes first. */
Test(close, that_runs_still_honours_cancels)
{
	struct probe one = PROBE(&rig, 1), two = PROBE(&rig, 2);
	one.act = two.act = cancel_the_other;
	one.other = &two;
	two.other = &one;
	probe_schedule(&one, SECOND);
	probe_schedule(&two, SECOND);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(one.runs + two.runs, 1);
	expect_eq(stats_of(rig.service).cancelled, 1);
}

/* ------------------------------------------------------------ drain */

Test(close, that_drains_would_wait_for_ever_on_a_clock_that_nobody_moves)
{
	struct probe probe = PROBE(&rig, 1), after = PROBE(&rig, 2);
	probe_schedule(&probe, SECOND);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), -EDEADLK);
	probe_schedule(&after, SECOND);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 2);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
}

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

/* ------------------------------------------------------------ refused */

Test(close, of_an_unknown_mode_changes_nothing)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	struct tw_service_stats before = stats_of(rig.service);
	expect_eq(tw_service_close(rig.service, (enum tw_close_mode)3, 0), -EINVAL);
	expect_eq(tw_service_close(rig.service, (enum tw_close_mode) - 1, 0), -EINVAL);
	expect_untouched(&before, rig.service);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 1);
}

/* ------------------------------------------------------------ runs that have been handed over */

Test(close, waits_for_tickets_that_the_executor_holds)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_released(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(tw_schedule(rig.service, 0, probe_run, &probe, NULL), -ESHUTDOWN);
	queue_executor_run_all(&queue);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(probe.releases, 1);
	expect_eq(probe.runs, probe.fate == TW_FATE_FIRED);
}

Test(close, takes_back_tickets_that_the_executor_gives_up)
{
	reopen_on_queue();
	static struct probe probes[100];
	for (int i = 0; i < 100; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], MS);
	}
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 100);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	while (queue_executor_drop_next(&queue) == 0)
		;
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < 100; i++)
		expect_released(&probes[i], TW_FATE_DROPPED);
	expect_eq(rig.ran, 0);
}

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

/* ------------------------------------------------------------ callbacks that still run */

static sem_t entered, go_on;

static void stand_still(struct probe *probe)
{
	(void)probe;
	sem_post(&entered);
	while (sem_wait(&go_on) != 0)
		;
}

static void *run_next(void *arg)
{
	(void)arg;
	queue_executor_run_next(&queue);
	return NULL;
}

Test(close, waits_for_a_callback_that_runs)
{
	sem_init(&entered, 0, 0);
	sem_init(&go_on, 0, 0);
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe.act = stand_still;
	probe_schedule_every_released(&probe, rate_of(MS, MS, 0));
	rig_advance(&rig, MS);
	pthread_t runner;
	expect_eq(pthread_create(&runner, NULL, run_next, NULL), 0);
	while (sem_wait(&entered) != 0)
		;
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	sem_post(&go_on);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(probe.runs, 1);
	expect_eq(probe.releases, 1);
	pthread_join(runner, NULL);
}

/* ------------------------------------------------------------ destroy */

Test(close, destroy_takes_null)
{
	expect_eq(tw_service_destroy(NULL), 0);
}

Test(close, many_services_come_and_go)
{
	for (int i = 0; i < 300; i++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1);
		probe_schedule(&probe, i % 2 ? MS : DAY);
		if (i % 3)
			rig_advance(&rig, MS);
	}
}

/* Services live side by side on one thread, and each knows its own timers. */
Test(close, of_one_service_leaves_others_alone)
{
	enum { COUNT = 40 };
	static struct rig rigs[COUNT];
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		rig_open(&rigs[i], NULL);
		probes[i] = PROBE(&rigs[i], i);
		probe_schedule(&probes[i], SECOND);
	}
	for (int i = 0; i < COUNT; i += 2)
		rig_close(&rigs[i]);
	for (int i = 1; i < COUNT; i += 2) {
		rig_advance(&rigs[i], SECOND);
		expect_eq(probes[i].runs, 1);
		expect_eq(tw_cancel(rigs[i].service, probes[i - 1].timer), TW_GONE);
		rig_close(&rigs[i]);
	}
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
