/* What cancel, disarm and reset answer where several calls meet, as their pages say. */
#include <errno.h>

#include "test/support/persistent_suite.h"
#include "test/support/queue_executor.h"

TestSuite(timer_answers, .timeout = 30);

/* A member whose group was cancelled, and whose executor has not ended it yet. */
static void open_cancelled(struct rig *rig, struct queue_executor *queue, struct probe *probe)
{
	queue_executor_open(queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue->base;
	rig_open(rig, &cfg);
	*probe = PROBE(rig, 1);
	struct tw_task task = probe_task(probe);
	expect_eq(tw_group_create(&task.group, rig->service), 0);
	task.when_ns = HOUR;
	probe_schedule_task(probe, &task);
	expect_eq(tw_group_cancel(rig->service, task.group), 0);
	expect_eq(tw_group_destroy(rig->service, task.group), 0);
}

Test(timer_answers, of_cancel_is_gone_while_the_release_of_a_cancelled_groups_member_is_to_come)
{
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	open_cancelled(&rig, &queue, &probe);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	expect_eq(probe.releases, 0);
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_released(&probe, TW_FATE_CANCELLED);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(timer_answers, of_cancel_wait_is_gone_and_it_calls_that_release)
{
	struct rig rig;
	struct queue_executor queue;
	struct probe probe;
	open_cancelled(&rig, &queue, &probe);
	expect_eq(tw_cancel_wait(rig.service, probe.timer, 0), TW_GONE);
	expect_released(&probe, TW_FATE_CANCELLED);
	expect_eq(pthread_equal(probe.released_on, pthread_self()) != 0, true);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* ------------------------------------------------------------ how many get TW_CANCELLED */

static void cancel_self_twice(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, tw_self()) == TW_RUNNING &&
			tw_cancel(probe->rig->service, tw_self()) == TW_RUNNING;
}

Test(timer_answers, are_never_cancelled_for_a_timer_that_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	once.act = series.act = cancel_self_twice;
	probe_schedule(&once, MS);
	probe_schedule_every(&series, rate_of(MS, MS, 0));
	rig_advance(&rig, SECOND);
	expect_eq(once.answer + series.answer, 2);
	expect_eq(once.runs + series.runs, 2);
	expect_eq(tw_cancel(rig.service, once.timer), TW_GONE);
	expect_eq(tw_cancel(rig.service, series.timer), TW_GONE);
	rig_close(&rig);
}

Test(timer_answers, are_cancelled_for_a_disarm_and_for_the_cancel_that_follows)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	create(&probe, HOUR);
	expect_disarm(&probe, TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_GONE);
	expect_disarm(&probe, TW_GONE);
	rig_close(&rig);
}

/* ------------------------------------------------------------ in a run */

static void cancel_then_disarm_self(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, tw_self()) == TW_RUNNING &&
			tw_disarm(probe->rig->service, tw_self()) == TW_RUNNING;
}

Test(timer_answers, of_disarm_is_running_and_the_timer_ends_if_it_was_cancelled_in_that_run)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = cancel_then_disarm_self;
	struct tw_task task = probe_task(&probe);
	task.flags = TW_TASK_PERSISTENT;
	task.when_ns = MS;
	probe_schedule_task(&probe, &task);
	rig_advance(&rig, MS);
	expect_eq(probe.answer, true);
	expect_released(&probe, TW_FATE_CANCELLED);
	expect_disarm(&probe, TW_GONE);
	expect_eq(tw_reset(rig.service, probe.timer, MS), -ENOENT);
	rig_close(&rig);
}

struct asked {
	struct rig *rig;
	tw_timer timer;
	tw_group group;
	int here, elsewhere;
};

static void *ask_elsewhere(void *arg)
{
	struct asked *asked = arg;
	asked->elsewhere = tw_reset(asked->rig->service, asked->timer, MS);
	return NULL;
}

static void cancel_own_group(void *arg)
{
	struct asked *asked = arg;
	pthread_t thread;
	tw_group_cancel(asked->rig->service, asked->group);
	asked->here = tw_reset(asked->rig->service, asked->timer, MS);
	if (!pthread_create(&thread, NULL, ask_elsewhere, asked))
		pthread_join(thread, NULL);
}

static struct asked ask_a_running_member(uint32_t flags)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct asked asked = {.rig = &rig};
	expect_eq(tw_group_create(&asked.group, rig.service), 0);
	struct tw_task task = {.size = sizeof task,
			       .fn = cancel_own_group,
			       .arg = &asked,
			       .when_ns = MS,
			       .flags = flags,
			       .group = asked.group};
	expect_eq(tw_schedule_task(rig.service, &task, &asked.timer), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_cancel(rig.service, asked.timer), TW_GONE);
	expect_eq(tw_group_destroy(rig.service, asked.group), 0);
	rig_close(&rig);
	return asked;
}

Test(timer_answers, of_reset_for_a_running_member_of_a_cancelled_group)
{
	struct asked once = ask_a_running_member(0);
	expect_eq(once.here, -ECANCELED);
	expect_eq(once.elsewhere, -EBUSY);
	struct asked persistent = ask_a_running_member(TW_TASK_PERSISTENT);
	expect_eq(persistent.here, -ECANCELED);
	expect_eq(persistent.elsewhere, -ECANCELED);
}
