/* Persistent timers that are armed and disarmed while they run, or while they wait to run. */
#include <errno.h>
#include <pthread.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"

TestSuite(timer_persistent_runs, .init = open_rig, .fini = close_rig, .timeout = 60);

/* ------------------------------------------------------------ while it runs */

static void arm_itself(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, probe->timer, 10 * MS);
}

static void arm_and_disarm_itself(struct probe *probe)
{
	arm_itself(probe);
	probe->answer = tw_disarm(probe->rig->service, probe->timer);
}

static void arm_itself_twice(struct probe *probe)
{
	arm_itself(probe);
	probe->answer = tw_reset_earlier_at(probe->rig->service, probe->timer,
					    tw_service_now(probe->rig->service) + 20 * MS);
	tw_reset_earlier_at(probe->rig->service, probe->timer,
			    tw_service_now(probe->rig->service) + 5 * MS);
}

Test(timer_persistent_runs, may_arm_itself)
{
	struct probe probe = PROBE(&rig, 1);
	create(&probe, 10 * MS);
	probe.act = arm_itself;
	rig_advance(&rig, 100 * MS);
	expect_eq(probe.runs, 10);
	expect_eq(probe.answer, 0);
	probe.act = arm_and_disarm_itself;
	rig_advance(&rig, 100 * MS);
	expect_eq(probe.runs, 11);
	expect_eq(probe.answer, TW_RUNNING);
	expect_disarm(&probe, TW_DISARMED);
	probe.act = arm_itself_twice;
	arm(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, TW_RESET_KEPT);
	rig_advance(&rig, 4 * MS);
	expect_eq(probe.runs, 12);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 13);
}

/* What another thread says while the callback runs. The callback waits until it has been said. */
struct said {
	struct probe *probe;
	int (*say)(tw_service *service, tw_timer timer);
	int answer;
};

static void *say(void *arg)
{
	struct said *said = arg;
	said->answer = said->say(said->probe->rig->service, said->probe->timer);
	return NULL;
}

static struct said now_said;

static void hear(struct probe *probe)
{
	pthread_t thread;
	now_said.probe = probe;
	probe->act = NULL;
	if (pthread_create(&thread, NULL, say, &now_said) == 0)
		pthread_join(thread, NULL);
}

static int say_reset(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 10 * MS);
}

static int say_far(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 90 * DAY);
}

static int say_reset_and_disarm(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 10 * MS) ? -1 : tw_disarm(service, timer);
}

static int say_cancel_and_reset(tw_service *service, tw_timer timer)
{
	return tw_cancel(service, timer) == TW_RUNNING ? tw_reset(service, timer, MS) : -1;
}

static void expect_said(struct probe *probe, int (*what)(tw_service *, tw_timer), int answer)
{
	now_said = (struct said){.say = what};
	probe->act = hear;
	arm(probe, MS);
	rig_advance(probe->rig, MS);
	expect_eq(now_said.answer, answer);
}

Test(timer_persistent_runs, is_armed_by_others_while_it_runs)
{
	struct probe probe = PROBE(&rig, 1);
	create(&probe, TW_NEVER);
	expect_said(&probe, say_reset, 0);
	rig_advance(&rig, 9 * MS);
	expect_eq(probe.runs, 1);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 2);
	expect_said(&probe, say_far, 0);
	rig_advance(&rig, 89 * DAY);
	expect_eq(probe.runs, 3);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 4);
	expect_said(&probe, say_reset_and_disarm, TW_RUNNING);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 5);
	expect_said(&probe, say_cancel_and_reset, -ECANCELED);
	rig_advance(&rig, DAY);
	expect_eq(probe.runs, 6);
	expect_disarm(&probe, TW_GONE);
	expect_eq(stats_of(rig.service).cancelled, 1);
}

/* ------------------------------------------------------------ at its executor */

Test(timer_persistent_runs, is_disarmed_while_it_waits_for_its_executor)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	create(&probe, TW_NEVER);
	for (int way = 0; way < 6; way++) {
		arm(&probe, MS);
		rig_advance(&rig, MS);
		expect_eq(queue_executor_waiting(&queue), 1);
		expect_disarm(&probe, TW_CANCELLED);
		if (way & 1)
			arm(&probe, 20 * MS);
		if (way & 2)
			expect_eq(queue_executor_drop_next(&queue), 0);
		else
			expect_eq(queue_executor_run_next(&queue), 0);
		expect_eq(probe.runs, 0);
		if (way & 4)
			rig_advance(&rig, 0);
		if (!(way & 1))
			arm(&probe, 20 * MS);
		rig_advance(&rig, 19 * MS);
		expect_eq(queue_executor_waiting(&queue), 0);
		rig_advance(&rig, MS);
		expect_eq(queue_executor_run_all(&queue), 1);
		expect_eq(probe.runs, 1);
		probe.runs = 0;
	}
}
