/*
 * What is met by chance alone, or only in the long run: groups at their end, groups whose reap
 * comes back, threads that outlive services.
 */
#include <errno.h>
#include <sched.h>

#include "test/support/faults.h"
#include "test/support/members.h"
#include "test/support/queue_executor.h"
#include "wheel/core/service.h"
#include "wheel/driver/poll.h"
#include "wheel/group/group.h"

TestSuite(service_seams, .timeout = 60);

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
	tw_service *service;
	struct tw__group *group;
	bool met;
};

static void await_vacancy(void *arg)
{
	struct leaver *leaver = arg;
	for (bool vacant = false; !vacant; sched_yield()) {
		tw__group_lock(leaver->group);
		vacant = leaver->group->vacant;
		tw__group_unlock(leaver->group);
	}
	leaver->met = true;
}

/*
 * Its last member leaves while the call that destroys it is still waking the tick thread: its
 * storage goes back once.
 */
Test(service_seams, a_group_that_is_left_while_it_is_destroyed_goes_back_once)
{
	struct rig rig = {.service = ticking_on(tw_executor_inline())};
	struct probe member = PROBE(&rig, 1);
	struct leaver leaver = {.service = rig.service};
	while (!leaver.met) {
		tw_group group = group_of(&rig);
		leaver.group = tw__group_at(&rig.service->groups, group.id & TW__GROUP_INDEX_MASK);
		expect_eq(schedule_in(&member, group, HOUR, false), 0);
		await_sleep(rig.service);
		faults_at_wakes(NULL, await_vacancy, &leaver);
		expect_eq(tw_group_destroy(rig.service, group), 0);
		faults_at_wakes(NULL, NULL, NULL);
	}
	tw_group a = group_of(&rig), b = group_of(&rig);
	expect_ne(a.id & TW__GROUP_INDEX_MASK, b.id & TW__GROUP_INDEX_MASK);
	expect_eq(tw_service_destroy(rig.service), 0);
}

static atomic_int released;

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg;
	atomic_fetch_add(&released, fate == TW_FATE_CANCELLED);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void await_ticket(struct queue_executor *queue)
{
	while (queue_executor_waiting(queue) == 0)
		sched_yield();
}

/* Nothing else would wake the tick thread for an hour. */
Test(service_seams, settling_that_is_given_back_to_a_sleeping_tick_thread_comes_again)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct rig rig = {.service = ticking_on(&queue.base)};
	tw_group group = group_of(&rig);
	struct tw_task task = {.size = sizeof task,
			       .fn = nothing,
			       .when_ns = HOUR,
			       .release = count_release,
			       .group = group};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	for (int i = 0; i < 3; i++) {
		await_ticket(&queue);
		await_sleep(rig.service);
		expect_eq(queue_executor_drop_next(&queue), 0);
	}
	await_ticket(&queue);
	queue_executor_run_all(&queue);
	expect_eq(atomic_load(&released), 1);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_service_destroy(rig.service), 0);
	queue_executor_close(&queue);
}

static void cancel_and_wait_inside(struct probe *probe)
{
	probe->answer =
	    tw_group_cancel_wait(probe->rig->service, (tw_group){probe->other->timer.id}, 0);
}

/*
 * The wait does not wait for its own member, but members that are not due for long end soon all the
 * same.
 */
Test(service_seams, a_wait_for_ones_own_group_settles_the_others)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}, inside = PROBE(&rig, 1),
		     other = PROBE(&rig, 2);
	inside.act = cancel_and_wait_inside;
	inside.other = &carrier;
	expect_eq(schedule_in(&inside, group, MS, false), 0);
	expect_eq(schedule_in(&other, group, HOUR, true), 0);
	rig_advance(&rig, 10 * MS);
	expect_eq(inside.answer, TW_SELF);
	expect_released(&other, TW_FATE_CANCELLED);
	rig_close(&rig);
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
