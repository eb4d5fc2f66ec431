/*
 * What is met by chance alone, or only in the long run: groups at their end, completions that come
 * back, threads that outlive services.
 */
#include <sched.h>

#include "test/support/faults.h"
#include "test/support/members.h"
#include "test/support/queue_executor.h"
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

TestSuite(service_seams, .timeout = 60);

enum { INDEX = 0xffffff };

static tw_service *ticking_on(tw_executor *executor)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/*
 * What was pushed has been taken first: a tick thread that is about to be woken for it may look
 * asleep.
 */
static void await_sleep(tw_service *service)
{
	while (tw__driver_any_unread(service))
		sched_yield();
	while (!(tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED))
		sched_yield();
}

/* ------------------------------------------------------------------- groups */

struct leaver {
	struct rig *rig;
	tw_timer member;
	atomic_int turn, done;
};

enum { ROUNDS = 20000 };

static void *cancel_members(void *arg)
{
	struct leaver *leaver = arg;
	for (int i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&leaver->turn) != i)
			sched_yield();
		(void)tw_cancel(leaver->rig->service, leaver->member);
		atomic_store(&leaver->done, i);
	}
	return NULL;
}

/* Its last member leaves while another thread destroys it: its storage goes back once. */
Test(service_seams, a_group_that_is_left_while_it_is_destroyed_goes_back_once)
{
	struct rig rig = {.service = ticking_on(tw_executor_inline())};
	struct probe member = PROBE(&rig, 1);
	struct leaver leaver = {.rig = &rig};
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, cancel_members, &leaver), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		tw_group group = group_of(&rig), other = group_of(&rig);
		expect_ne(group.id & INDEX, other.id & INDEX);
		expect_le(other.id & INDEX, 2);
		expect_le(group.id & INDEX, 2);
		expect_eq(schedule_in(&member, group, HOUR, false), 0);
		leaver.member = member.timer;
		atomic_store(&leaver.turn, i);
		expect_eq(tw_group_destroy(rig.service, group), 0);
		while (atomic_load(&leaver.done) != i)
			sched_yield();
		expect_eq(tw_group_destroy(rig.service, other), 0);
	}
	pthread_join(thread, NULL);
	expect_eq(tw_service_destroy(rig.service), 0);
}

static atomic_int completed;

static void count_completion(void *arg)
{
	atomic_fetch_add(&completed, 1);
}

static void await_ticket(struct queue_executor *queue)
{
	while (queue_executor_waiting(queue) == 0)
		sched_yield();
}

/* Nothing else would wake the tick thread for an hour. */
Test(service_seams, a_completion_that_is_given_back_to_a_sleeping_tick_thread_comes_again)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct rig rig = {.service = ticking_on(&queue.base)};
	tw_group group = group_of(&rig);
	struct probe member = PROBE(&rig, 1);
	expect_eq(schedule_in(&member, group, HOUR, false), 0);
	expect_eq(tw_group_close(rig.service, group, count_completion, NULL), 0);
	for (int i = 0; i < 3; i++) {
		await_ticket(&queue);
		await_sleep(rig.service);
		expect_eq(queue_executor_drop_next(&queue), 0);
	}
	await_ticket(&queue);
	queue_executor_run_all(&queue);
	expect_eq(atomic_load(&completed), 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(rig.service), 0);
	queue_executor_close(&queue);
}

/* ------------------------------------------------------------------- threads */

static void use_and_end_services(int n)
{
	for (int i = 0; i < n; i++) {
		struct rig rig;
		rig_open(&rig, NULL);
		struct probe probe = PROBE(&rig, 1);
		probe_schedule(&probe, MS);
		rig_close(&rig);
	}
}

Test(service_seams, a_thread_keeps_next_to_nothing_of_services_that_are_gone)
{
	use_and_end_services(10);
	long before = faults_outstanding();
	use_and_end_services(100);
	expect_eq(faults_outstanding(), before);
}
