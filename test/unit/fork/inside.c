/*
 * Fork from inside callbacks, releases and visitors. The child uses the parent's service, is
 * refused, and calls _exit.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/inherited.h"
#include "test/support/current.h"
#include "test/support/rig_suite.h"

TestSuite(fork_inside, .init = open_rig, .fini = close_rig, .timeout = 60);

static _Atomic pid_t forked_child;

/* What a callback's child finds while it is still inside. */
static void check_inside(struct probe *probe)
{
	check_calls(probe->rig->service, probe->timer);
	child_eq(tw_self().id, 0);
	child_eq(current_run().overruns, 0);
	child_eq(current_run().closing, false);
	child_eq(tw_service_destroy(probe->rig->service), -EDEADLK);
	check_own_service();
}

static void fork_and_exit(struct probe *probe)
{
	pid_t child = fork_amid_locks(probe->rig->service);
	if (child == 0) {
		check_inside(probe);
		_exit(0);
	}
	forked_child = child;
}

static pid_t await_child(void)
{
	while (!forked_child)
		sched_yield();
	return atomic_exchange(&forked_child, 0);
}

static const struct tw_service_config with_tick_thread = {.size = sizeof(struct tw_service_config)};

/* A callback that forks, and others behind it in the same tick, which the child must not run. */
static void fork_in_threads(bool pool, bool in_release)
{
	struct tw_service_config cfg = with_tick_thread;
	cfg.executor = pool ? NULL : tw_executor_inline();
	cfg.workers = pool ? 2 : 0;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1), behind[50];
	*(in_release ? &probe.act_in_release : &probe.act) = fork_and_exit;
	probe_schedule_released(&probe, MS);
	for (int i = 0; i < 50; i++) {
		behind[i] = PROBE(&rig, 2);
		probe_schedule(&behind[i], MS);
	}
	rig_advance(&rig, MS);
	expect_child_well(await_child());
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(rig.ran, 51);
	expect_released(&probe, TW_FATE_FIRED);
}

Test(fork_inside, from_a_callback_in_the_pool)
{
	fork_in_threads(true, false);
}

Test(fork_inside, from_a_callback_on_the_tick_thread)
{
	fork_in_threads(false, false);
}

Test(fork_inside, from_a_release)
{
	fork_in_threads(true, true);
}

static void fork_inside_of(int (*call)(struct probe *), bool in_release)
{
	reopen_rig(NULL);
	static struct probe probe, behind; /* which the close of the rig may release */
	probe = PROBE(&rig, 1);
	behind = PROBE(&rig, 2);
	*(in_release ? &probe.act_in_release : &probe.act) = fork_and_exit;
	probe_schedule_released(&probe, MS);
	probe_schedule_released(&behind, MS);
	cr_assert(call(&probe) >= 0);
	expect_child_well(await_child());
	expect_eq(probe.releases, 1);
}

static int by_advance(struct probe *probe)
{
	(void)probe;
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	return tw_service_advance(rig.service, TW_NO_LIMIT);
}

static int by_the_clock(struct probe *probe)
{
	(void)probe;
	return tw_clock_manual_advance_by(rig.clock, SECOND);
}

static int by_close(struct probe *probe)
{
	(void)probe;
	return tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER);
}

static int by_dropping_close(struct probe *probe)
{
	(void)probe;
	return tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER);
}

Test(fork_inside, from_a_callback_on_the_callers_own_thread)
{
	fork_inside_of(by_advance, false);
	fork_inside_of(by_the_clock, false);
	fork_inside_of(by_close, false);
}

Test(fork_inside, from_a_release_on_the_callers_own_thread)
{
	fork_inside_of(by_advance, true);
	fork_inside_of(by_the_clock, true);
	fork_inside_of(by_dropping_close, true);
}

static int fork_in_foreach(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			   uint64_t remaining_ns)
{
	(void)timer, (void)fn, (void)timer_arg, (void)remaining_ns;
	pid_t child = child_fork();
	if (child == 0) {
		check_calls(((struct probe *)arg)->rig->service, timer);
		check_own_service();
		_exit(0);
	}
	forked_child = child;
	return 0;
}

Test(fork_inside, from_a_visitor_of_foreach)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	expect_eq(tw_service_foreach(rig.service, fork_in_foreach, &probe), 0);
	expect_child_well(await_child());
}

static int by_cancel(struct probe *probe)
{
	return tw_cancel(rig.service, probe->timer);
}

Test(fork_inside, from_a_release_in_a_cancel)
{
	fork_inside_of(by_cancel, true);
}

static void fork_in_task(void *arg)
{
	tw_service *service = arg;
	pid_t child = child_fork();
	if (child == 0) {
		child_eq(tw_service_destroy(service), -EDEADLK);
		_exit(0);
	}
	forked_child = child;
}

Test(fork_inside, from_a_task_of_a_strand)
{
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, fork_in_task, rig.service), 0);
	rig_advance(&rig, MS);
	expect_child_well(await_child());
	expect_eq(tw_strand_destroy(strand), 0);
}
