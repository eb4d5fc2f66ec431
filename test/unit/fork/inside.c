/*
 * Fork from inside callbacks, releases and visitors. The child uses the parent's service, is
 * refused, and calls _exit.
 */
#include <errno.h>
#include <sched.h>
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
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	return tw_service_advance(rig.service, TW_NO_LIMIT);
}

static int by_the_clock(struct probe *probe)
{
	return tw_clock_manual_advance_by(rig.clock, SECOND);
}

static int by_close(struct probe *probe)
{
	return tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER);
}

static int by_dropping_close(struct probe *probe)
{
	return tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER);
}

static int by_cancel(struct probe *probe)
{
	return tw_cancel(rig.service, probe->timer);
}

Test(fork_inside, from_a_callback_or_a_release_on_the_callers_own_thread)
{
	fork_inside_of(by_advance, false);
	fork_inside_of(by_the_clock, false);
	fork_inside_of(by_close, false);
	fork_inside_of(by_advance, true);
	fork_inside_of(by_the_clock, true);
	fork_inside_of(by_dropping_close, true);
	fork_inside_of(by_cancel, true);
}

static int fork_in_foreach(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg,
			   uint64_t remaining_ns)
{
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

/* ------------------------------------------------------ the worker of a shared pool */

TestSuite(fork_pool, .timeout = 30);

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

struct worker_forks {
	tw_pool *pool;
	_Atomic pid_t child;
};

/*
 * The inherited pool is gone, so the thread is no worker any more. Its own pool lets it close, and
 * AddressSanitizer finds a look at the former pool.
 */
static void use_own_pool(tw_pool *inherited)
{
	atomic_int ran = 0;
	tw_pool *pool;
	struct tw_pool_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	child_eq(tw_pool_destroy(inherited), 0);
	child_eq(tw_pool_create(&pool, &cfg), 0);
	child_eq(tw_pool_submit(pool, count, &ran), 0);
	child_eq(tw_pool_destroy(pool), 0);
	child_eq(atomic_load(&ran), 1);
}

static void worker_forks(void *arg)
{
	struct worker_forks *forking = arg;
	pid_t child = child_fork();
	if (child == 0) {
		use_own_pool(forking->pool);
		_exit(0);
	}
	forking->child = child;
}

Test(fork_pool, a_workers_child_that_has_destroyed_the_pool_may_use_its_own)
{
	struct worker_forks forking = {0};
	struct tw_pool_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	expect_eq(tw_pool_create(&forking.pool, &cfg), 0);
	expect_eq(tw_pool_submit(forking.pool, worker_forks, &forking), 0);
	expect_eq(tw_pool_destroy(forking.pool), 0);
	expect_child_well(forking.child);
}
