/*
 * Fork: a child may use nothing of its parent's services, each call says so, and the parent notices
 * nothing.
 */
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/inherited.h"
#include "test/support/rig_suite.h"

TestSuite(fork_service, .init = open_rig, .fini = close_rig, .timeout = 60);

static void count(void *arg)
{
	++*(atomic_int *)arg;
}

static void check_clock(tw_clock *clock)
{
	child_eq(tw_clock_manual_advance_by(clock, MS), -EPERM);
	child_eq(tw_clock_manual_advance_by(clock, 1), -EPERM);
	child_eq(tw_clock_manual_set(clock, 0), -EPERM);
}

struct inherited {
	struct rig *rig;
	tw_timer timer;
};

static void use_all(void *arg)
{
	struct inherited *in = arg;
	check_calls(in->rig->service, in->timer);
	check_clock(in->rig->clock);
	check_own_service();
	check_calls(in->rig->service, in->timer); /* still */
	check_own_clock();
	child_eq(tw_service_destroy(in->rig->service), 0);
	check_own_service();
	child_eq(tw_clock_manual_destroy(in->rig->clock), 0);
}

/* ------------------------------------------------------------ each kind of service */

static const struct tw_service_config on_pool = {.size = sizeof on_pool, .workers = 3};

Test(fork_service, child_of_each_kind_of_service)
{
	const struct tw_service_config on_tick_thread = {.size = sizeof on_tick_thread,
							 .executor = tw_executor_inline()};
	const struct tw_service_config *const configs[] = {NULL, &on_tick_thread, &on_pool};
	for (int k = 0; k < 3; k++) {
		reopen_rig(configs[k]);
		struct probe probe = PROBE(&rig, 1);
		probe_schedule_released(&probe, SECOND);
		struct inherited in = {&rig, probe.timer};
		for (int i = 0; i < 3; i++) {
			expect_amid_locks(rig.service, use_all, &in);
			expect_eq(probe.releases, 0);
			expect_eq(tw_reset(rig.service, probe.timer, SECOND), 0);
			expect_sound(rig.service);
		}
		rig_advance(&rig, SECOND);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
		expect_released(&probe, TW_FATE_FIRED);
	}
}

/*
 * A child that leaves the service as it is, and ends its thread in the ordinary way: the exit hook
 * runs.
 */
static void *end_thread(void *arg)
{
	return arg;
}

static void leave_by_pthread_exit(void *arg)
{
	pthread_t other;
	child_eq(pthread_create(&other, NULL, end_thread, NULL), 0);
	child_eq(pthread_join(other, NULL), 0);
	pthread_exit(NULL); /* the last thread: exit status 0 */
}

Test(fork_service, child_that_ends_its_thread)
{
	reopen_rig(&on_pool);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	expect_amid_locks(rig.service, leave_by_pthread_exit, NULL);
}

static void fork_again(void *arg)
{
	struct inherited *in = arg;
	check_own_service();
	pid_t grandchild = child_fork();
	if (grandchild == 0) {
		use_all(in);
		_exit(0);
	}
	int status = -1;
	while (waitpid(grandchild, &status, 0) == -1)
		;
	child_eq(status, 0);
	check_calls(in->rig->service, in->timer);
}

Test(fork_service, grandchild)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	struct inherited in = {&rig, probe.timer};
	expect_in_child(fork_again, &in);
}

static void exec_something(void *arg)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(127);
}

Test(fork_service, child_that_execs)
{
	tw_service *service;
	atomic_int runs = 0;
	expect_eq(tw_service_create(&service, NULL), 0);
	for (int i = 0; i < 20; i++) {
		char *const argv[] = {"true", NULL};
		pid_t spawned;
		expect_eq(tw_schedule(service, MS, count, &runs, NULL), 0);
		expect_in_child(exec_something, NULL);
		expect_eq(posix_spawn(&spawned, "/bin/true", NULL, NULL, argv, NULL), 0);
		expect_child_well(spawned);
	}
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(runs, 20);
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ tickets */

static void use_tickets(void *arg)
{
	tw_batch *batch = arg;
	child_eq(tw_run_one(batch), -EPERM);
	tw_run_return(batch);
	child_eq(tw_run_one(batch), -EPERM);
}

Test(fork_service, child_that_holds_tickets)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_in_child(use_tickets, queue.tickets[0]);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(probe.runs, 1);
}

/*
 * ------------------------------------------------------------ beside threads that are in the
 * middle
 */

struct busy {
	tw_service *service;
	atomic_bool stop;
};

static void free_nothing(void *arg, enum tw_fate fate)
{
}

static void do_nothing(void *arg)
{
}

/* Locks of the depot, of extension records, of the registry are taken all the time. */
static void *work_hard(void *arg)
{
	struct busy *busy = arg;
	tw_timer timers[300];
	struct tw_task task = {
	    .size = sizeof(task), .fn = do_nothing, .when_ns = SECOND, .release = free_nothing};
	for (int i = 0; i < 300; i++)
		tw_schedule_task(busy->service, &task, &timers[i]);
	for (int i = 0; i < 300; i++) {
		tw_reset(busy->service, timers[i], MS);
		tw_reset_earlier(busy->service, timers[i], MS / 2);
		if (i % 4)
			tw_cancel(busy->service, timers[i]);
	}
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(busy->service, &stats);
	return NULL;
}

/* Threads come and go: they attach, and their exit hooks run. */
static void *come_and_go(void *arg)
{
	struct busy *busy = arg;
	while (!busy->stop) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work_hard, busy) == 0)
			pthread_join(thread, NULL);
	}
	return NULL;
}

static void use_all_of_busy(void *arg)
{
	struct busy *busy = arg;
	check_calls(busy->service, (tw_timer){1});
	if (!CHILD_ALLOCATES)
		return;
	check_own_service();
	child_eq(tw_service_destroy(busy->service), 0);
	check_own_service();
}

Test(fork_service, child_while_others_are_in_the_middle_of_calls)
{
	struct busy busy = {0};
	pthread_t threads[3];
	expect_eq(tw_service_create(&busy.service, NULL), 0);
	for (int i = 0; i < 3; i++)
		expect_eq(pthread_create(&threads[i], NULL, come_and_go, &busy), 0);
	for (int i = 0; i < 60; i++)
		expect_in_child(use_all_of_busy, &busy);
	busy.stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	expect_eq(tw_service_close(busy.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_sound(busy.service);
	expect_eq(tw_service_destroy(busy.service), 0);
}
