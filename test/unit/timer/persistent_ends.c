/*
 * What ends persistent timers, armed, disarmed or running: cancels, groups, closes; and what is
 * refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wheel/core/ticks.h"
#include "wheel/timer/reset.h"
#include "test/support/rig_suite.h"

TestSuite(timer_persistent_ends, .init = open_rig, .fini = close_rig, .timeout = 60);

static struct tw_task task_of(struct probe *probe, uint64_t when_ns, bool released)
{
	return (struct tw_task){.size = sizeof(struct tw_task),
				.fn = probe_run,
				.arg = probe,
				.when_ns = when_ns,
				.release = released ? probe_release : NULL,
				.flags = TW_TASK_PERSISTENT};
}

static void create(struct probe *probe, uint64_t when_ns, bool released)
{
	struct tw_task task = task_of(probe, when_ns, released);
	expect_eq(tw_schedule_task(probe->rig->service, &task, &probe->timer), 0);
}

/* Never armed; disarmed with an entry; after a run; armed. */
enum state { NEW, DISARMED, HAS_RUN, ARMED, STATES };

static void bring_to(struct probe *probe, enum state state, bool released)
{
	*probe = PROBE(probe->rig, 1);
	create(probe, TW_NEVER, released);
	tw_service *service = probe->rig->service;
	if (state == NEW)
		return;
	expect_eq(tw_reset(service, probe->timer, MS), 0);
	if (state == HAS_RUN)
		rig_advance(probe->rig, MS);
	if (state == DISARMED)
		expect_eq(tw_disarm(service, probe->timer), TW_CANCELLED);
}

/* ------------------------------------------------------------ close */

Test(timer_persistent_ends, with_its_service)
{
	for (int mode = TW_CLOSE_DROP; mode <= TW_CLOSE_DRAIN; mode++)
		for (int state = NEW; state < STATES; state++)
			for (int released = 0; released < 2; released++) {
				reopen_rig(NULL);
				struct probe probe = {.rig = &rig};
				bring_to(&probe, state, released);
				bool waits = mode == TW_CLOSE_DRAIN && state == ARMED;
				/* a manual clock: nobody could advance it */
				expect_eq(tw_service_close(rig.service, (enum tw_close_mode)mode,
							   TW_FOREVER),
					  waits ? -EDEADLK : 0);
				if (waits)
					expect_eq(
					    tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER),
					    0);
				bool runs = state == ARMED && mode != TW_CLOSE_DROP;
				expect_eq(probe.runs, runs || state == HAS_RUN);
				if (released)
					expect_released(&probe,
							runs ? TW_FATE_FIRED : TW_FATE_DROPPED);
				expect_eq(tw_disarm(rig.service, probe.timer), TW_GONE);
				expect_eq(tw_reset(rig.service, probe.timer, 0), -ESHUTDOWN);
				struct tw_service_stats stats = stats_of(rig.service);
				expect_eq(stats.pending + stats.disarmed, 0);
				expect_eq(stats.dropped, !runs);
			}
}

/* Disarmed timers take slots, too. */
Test(timer_persistent_ends, that_fill_the_service_are_refused)
{
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 1000;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	static tw_timer timers[2000];
	struct tw_task task = task_of(&probe, TW_NEVER, false);
	int n = 0, r;
	while ((r = tw_schedule_task(rig.service, &task, &timers[n])) == 0)
		n++;
	expect_eq(r, -EAGAIN);
	expect_ge(n, 1000);
	for (int i = 0; i < n; i++)
		expect_eq(tw_reset(rig.service, timers[i], MS), 0);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, n);
	for (int i = 0; i < n; i++)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_CANCELLED);
	expect_eq(tw_schedule_task(rig.service, &task, &timers[0]), 0);
}

/* As a thread's reset does that has found the service open, and stood still. */
static void reset_late(struct probe *probe)
{
	tw_service *service = probe->rig->service;
	uint64_t entry;
	expect_eq(tw__handle_entry(&service->slots, probe->other->timer, &entry), true);
	uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
	probe->answer =
	    tw__reset_seen(service, entry, &word, rig_now(probe->rig) + 40 * SECOND, false, false);
}

/*
 * The close takes the disarmed timer's entry out of its bucket. The note of that entry must go with
 * it: else it covers the entry of the reset, and the close never ends.
 */
Test(timer_persistent_ends, a_close_that_runs_all_meets_a_reset_that_comes_late)
{
	for (int relocated = 0; relocated < 2; relocated++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1), late = PROBE(&rig, 2);
		create(&probe, MINUTE, false);
		rig_advance(&rig, MS);
		if (relocated)
			expect_eq(tw_reset(rig.service, probe.timer, 30 * SECOND), 0);
		rig_advance(&rig, MS);
		expect_eq(tw_disarm(rig.service, probe.timer), TW_CANCELLED);
		late.other = &probe;
		late.act = reset_late;
		expect_eq(tw_schedule(rig.service, 90 * SECOND, probe_run, &late, &late.timer), 0);
		rig_advance(&rig, MS);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, 5 * SECOND), 0);
		expect_eq(late.answer, 0);
		expect_eq(probe.runs, 1);
	}
}
