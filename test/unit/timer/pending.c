/*
 * What "pending" means: armed. tw_is_pending, tw_remaining, tw_service_foreach, the listing and the
 * statistic agree at every moment of a timer's life.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/persistent_suite.h"
#include "test/support/queue_executor.h"

TestSuite(timer_pending, .timeout = 60);

static int visit_count(void *context, tw_timer timer, tw_fn *fn, void *arg, uint64_t left_ns)
{
	(void)timer, (void)fn, (void)arg, (void)left_ns;
	++*(uint64_t *)context;
	return 0;
}

static uint64_t listed(tw_service *service, const char *word)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	expect_eq(tw_service_dump(service, out), 0);
	fclose(out);
	uint64_t count = 0;
	for (const char *at = text; (at = strstr(at, word)); at++)
		count++;
	free(text);
	return count;
}

/* The states of one timer, if no other lives. */
enum state { ARMED, DISARMED, RUNS, ENDED };

static void expect_state(struct probe *probe, enum state state)
{
	tw_service *service = probe->rig->service;
	uint64_t visited = 0, left_ns, armed = state == ARMED, disarmed = state == DISARMED;
	struct tw_service_stats stats = stats_of(service);
	expect_eq(tw_is_pending(service, probe->timer), armed);
	expect_eq(tw_remaining(service, probe->timer, &left_ns), armed ? 0 : -ENOENT);
	expect_eq(tw_service_foreach(service, visit_count, &visited), 0);
	expect_eq(visited, armed);
	expect_eq(listed(service, " pending, "), armed);
	expect_eq(listed(service, " disarmed, "), disarmed);
	expect_eq(stats.pending, armed);
	expect_eq(stats.disarmed, disarmed);
	uint64_t ended = stats.fired + stats.cancelled + stats.dropped;
	expect_eq(stats.scheduled, ended + armed + disarmed + (state == RUNS));
	if (state != RUNS)
		expect_sound(service);
}

static void expect_to_run(struct probe *probe)
{
	expect_state(probe, RUNS);
}

Test(timer_pending, is_a_one_shot_until_it_runs)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	struct probe probe = PROBE(&rig, 1);
	probe.act = expect_to_run;
	probe_schedule(&probe, 10 * MS);
	expect_state(&probe, ARMED);
	rig_advance(&rig, 10 * MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_state(&probe, ARMED); /* it can still be cancelled */
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_state(&probe, ENDED);
	probe_schedule(&probe, HOUR);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_state(&probe, ENDED);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(timer_pending, is_a_series_between_its_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = expect_to_run;
	probe_schedule_every(&probe, rate_of(10 * MS, 10 * MS, 2));
	rig_advance(&rig, 15 * MS);
	expect_state(&probe, ARMED);
	rig_advance(&rig, 5 * MS);
	expect_eq(probe.runs, 2);
	expect_state(&probe, ENDED);
	rig_close(&rig);
}

static void lead_a_persistent_life(uint64_t delay_ns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = expect_to_run;
	create(&probe, TW_NEVER);
	expect_state(&probe, DISARMED);
	arm(&probe, delay_ns);
	expect_state(&probe, ARMED);
	expect_disarm(&probe, TW_CANCELLED);
	expect_state(&probe, DISARMED);
	arm(&probe, delay_ns / 2);
	expect_state(&probe, ARMED);
	rig_advance(&rig, delay_ns);
	expect_eq(probe.runs, 1);
	expect_state(&probe, DISARMED);
	arm(&probe, delay_ns);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_state(&probe, ENDED);
	create(&probe, TW_NEVER);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	expect_state(&probe, ENDED);
	rig_close(&rig);
}

Test(timer_pending, is_a_persistent_timer_while_it_is_armed)
{
	lead_a_persistent_life(10 * MS);
	lead_a_persistent_life(100 * DAY);
}

Test(timer_pending, is_no_member_of_a_cancelled_group)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base; /* on which the members end */
	for (int armed = 0; armed < 2; armed++) {
		struct rig rig;
		rig_open(&rig, &cfg);
		struct probe probe = PROBE(&rig, 1);
		struct tw_task task = probe_task(&probe);
		expect_eq(tw_group_create(&task.group, rig.service), 0);
		task.flags = TW_TASK_PERSISTENT;
		task.when_ns = TW_NEVER;
		probe_schedule_task(&probe, &task);
		if (armed)
			arm(&probe, HOUR);
		expect_state(&probe, armed ? ARMED : DISARMED);
		expect_eq(stats_of(rig.service).group_members, 1);
		expect_eq(tw_group_cancel(rig.service, task.group), 0);
		expect_state(&probe, ENDED);
		expect_eq(stats_of(rig.service).group_members, 0);
		rig_advance(&rig, MS);
		queue_executor_run_all(&queue);
		expect_released(&probe, TW_FATE_CANCELLED);
		expect_state(&probe, ENDED);
		expect_eq(tw_group_destroy(rig.service, task.group), 0);
		rig_close(&rig);
	}
	queue_executor_close(&queue);
}

Test(timer_pending, is_a_gauge_of_its_own_beside_disarmed)
{
	struct rig rig;
	rig_open(&rig, NULL);
	enum { EACH = 100 };
	static struct probe probes[3 * EACH];
	for (int i = 0; i < 3 * EACH; i++) {
		probes[i] = PROBE(&rig, i);
		if (i % 3 == 0)
			probe_schedule(&probes[i], HOUR);
		else
			create(&probes[i], i % 3 == 1 ? HOUR : TW_NEVER);
	}
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.scheduled, 3 * EACH);
	expect_eq(stats.pending, 2 * EACH);
	expect_eq(stats.disarmed, EACH);
	rig_advance(&rig, HOUR);
	stats = stats_of(rig.service);
	expect_eq(stats.fired, EACH);
	expect_eq(stats.pending, 0);
	expect_eq(stats.disarmed, 2 * EACH);
	expect_sound(rig.service);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	stats = stats_of(rig.service);
	expect_eq(stats.dropped, 2 * EACH);
	expect_eq(stats.pending + stats.disarmed, 0);
	rig_close(&rig);
}
