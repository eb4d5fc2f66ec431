/*
 * The descriptor of a manual executor: readable while runs wait, from any thread, made once, closed
 * with the queue.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "test/support/by_hand.h"
#include "test/support/child.h"
#include "test/support/faults.h"
#include "manuals.h"

TestSuite(manual_real_fd, .init = open_usual, .fini = end_all, .timeout = 60);

Test(manual_real_fd, is_readable_while_runs_wait)
{
	int fd = tw_manual_fd(manual);
	expect_ge(fd, 0);
	expect_eq(readable(fd, 0), false);
	for (int round = 0; round < 3; round++) {
		hand_over(200); /* several hand-overs */
		expect_eq(readable(fd, 0), true);
		expect_eq(tw_manual_pump(manual, 199), 199);
		expect_eq(readable(fd, 0), true);
		hand_over(1);
		expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 2);
		expect_eq(readable(fd, 0), false);
	}
}

Test(manual_real_fd, that_is_asked_for_late_knows_what_waits)
{
	hand_over(3);
	int fd = tw_manual_fd(manual);
	expect_eq(readable(fd, 0), true);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 3);
	expect_eq(readable(fd, 0), false);
}

Test(manual_real_fd, is_made_once_and_closed_with_the_queue)
{
	int fd = tw_manual_fd(manual);
	expect_eq(tw_manual_fd(manual), fd);
	expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close_all();
	expect_eq(fcntl(fd, F_GETFD), -1);
	open_usual();
}

/*
 * Its counter says how often it was written; whoever reads it breaks the rule, and loses that
 * wake-up, but none after it.
 */
Test(manual_real_fd, is_written_once_however_many_runs_come)
{
	int fd = tw_manual_fd(manual);
	uint64_t writes = 0;
	for (int i = 0; i < 5; i++)
		hand_over(100);
	expect_eq(read(fd, &writes, sizeof writes), (ssize_t)sizeof writes);
	expect_eq(writes, 1);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 500);
	hand_over(1);
	expect_eq(readable(fd, 0), true);
}

static void pump_the_rest(struct probe *probe)
{
	probe->answer = (int)tw_manual_pump(manual, TW_NO_LIMIT);
}

Test(manual_real_fd, callback_that_pumps_leaves_it_right)
{
	int fd = tw_manual_fd(manual);
	for (int i = 0; i < 2; i++) {
		probes[i] = PROBE(&rig, i);
		probes[i].act = i == 0 ? pump_the_rest : NULL;
		probe_schedule(&probes[i], MS);
	}
	rig_advance(&rig, MS);
	expect_eq(tw_manual_pump(manual, 1), 1);
	expect_eq(probes[0].answer, 1);
	expect_eq(readable(fd, 0), false);
}

/* -------------------------------------------------------------------- refusals */

Test(manual_real_fd, that_the_system_refuses_can_be_asked_for_again)
{
	hand_over(1);
	faults_arm(0, false);
	expect_eq(tw_manual_fd(manual), -EMFILE);
	expect_eq(faults_disarm(), true);
	expect_eq(readable(tw_manual_fd(manual), 0), true);
}

static void check_in_child(void *arg)
{
	child_eq(tw_manual_pump(manual, TW_NO_LIMIT), -EPERM);
	child_eq(tw_manual_fd(manual), -EPERM);
	child_eq(tw_manual_destroy(manual), 0);
	child_eq(fcntl(*(int *)arg, F_GETFD), -1);
}

Test(manual_real_fd, is_refused_with_its_queue_in_a_forked_child_and_the_parents_goes_on)
{
	int fd = tw_manual_fd(manual);
	hand_over(1);
	expect_in_child(check_in_child, &fd);
	expect_eq(readable(fd, 0), true);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 1);
	expect_eq(readable(fd, 0), false);
}

/* --------------------------------------------------------------------- threads */

enum { RUNS = 20000, SCHEDULERS = 2, LONGEST_IDLE_S = 20 };
static atomic_int runs;

static void count_run(void *arg)
{
	runs++;
}

static void *schedule_many(void *service)
{
	for (int i = 0; i < RUNS; i++)
		while (tw_schedule(service, 0, count_run, NULL, NULL) == -EAGAIN) {
		}
	return NULL;
}

/*
 * Sleeps on the descriptor alone. After a lost wake-up nothing would run any more, though runs
 * wait.
 */
static bool pump_while_readable(int fd)
{
	struct pollfd at = {.fd = fd, .events = POLLIN};
	int before = 0;
	for (int idle = 0; runs < SCHEDULERS * RUNS && idle < LONGEST_IDLE_S;
	     idle = runs == before ? idle + 1 : 0) {
		before = runs;
		if (poll(&at, 1, 1000) == 1)
			tw_manual_pump(manual, 1 + (size_t)runs % 50);
	}
	return runs == SCHEDULERS * RUNS;
}

/* Two threads pump, each by the descriptor: the one that finds nothing left sleeps again. */
static void *pump_beside(void *fd)
{
	struct pollfd at = {.fd = *(int *)fd, .events = POLLIN};
	while (runs < SCHEDULERS * RUNS)
		if (poll(&at, 1, 50) == 1)
			tw_manual_pump(manual, 7);
	return NULL;
}

Test(manual_real_fd, wakes_a_loop_for_each_run_that_other_threads_bring)
{
	tw_service *service;
	pthread_t schedulers[SCHEDULERS], beside;
	struct tw_service_config config = {.size = sizeof config,
					   .executor = tw_manual_executor(manual)};
	expect_eq(tw_service_create(&service, &config), 0);
	int fd = tw_manual_fd(manual);
	runs = 0;
	expect_eq(pthread_create(&beside, NULL, pump_beside, &fd), 0);
	for (int i = 0; i < SCHEDULERS; i++)
		expect_eq(pthread_create(&schedulers[i], NULL, schedule_many, service), 0);
	expect_eq(pump_while_readable(fd), true);
	for (int i = 0; i < SCHEDULERS; i++)
		pthread_join(schedulers[i], NULL);
	pthread_join(beside, NULL);
	expect_eq(readable(fd, 0), false);
	expect_eq(runs, SCHEDULERS * RUNS);
	expect_eq(tw_service_destroy(service), 0);
}
