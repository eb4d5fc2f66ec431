/*
 * Releases that take long, among runs of one batch: the callback before such a release, and the one
 * after it, look no older than they are.
 */
#include <semaphore.h>

#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(runs_watchdog_releases, .timeout = 30);

/* ------------------------------------------------------------ the run after a release */

static struct tw_service_liveness seen_inside;

static void take_long(struct probe *probe)
{
	tw_clock_manual_set(probe->rig->clock, rig_now(probe->rig) + 3 * SECOND);
}

static void look(struct probe *probe)
{
	seen_inside.size = sizeof seen_inside;
	probe->answer = tw_service_liveness(probe->rig->service, &seen_inside);
}

/* Behind what `first` schedules for the same tick runs a callback that looks. */
static void expect_young_behind(void (*first)(struct rig *rig, struct probe *probe))
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe slow = PROBE(&rig, 1), looks = PROBE(&rig, 2);
	slow.act_in_release = take_long;
	looks.act = look;
	first(&rig, &slow);
	probe_schedule(&looks, MS);
	rig_advance(&rig, MS);
	expect_eq(slow.releases, 1);
	expect_eq(looks.runs, 1);
	expect_ge(looks.ran_at_ns, RIG_START_NS + 3 * SECOND);
	expect_eq(seen_inside.running, 1);
	expect_eq(seen_inside.longest_since_ns, looks.ran_at_ns);
	expect_eq(seen_inside.longest_ns, 0);
	rig_close(&rig);
}

static void one_shot(struct rig *rig, struct probe *probe)
{
	(void)rig;
	probe_schedule_released(probe, MS);
}

Test(runs_watchdog_releases, of_a_one_shot_does_not_age_the_next_run)
{
	expect_young_behind(one_shot);
}

static void too_late(struct rig *rig, struct probe *probe)
{
	static struct probe before;
	before = PROBE(rig, 0);
	before.act = take_long;
	probe_schedule(&before, MS);
	struct tw_task task = probe_task(probe);
	task.when_ns = MS;
	task.max_lateness_ns = SECOND;
	task.late = TW_LATE_DROP;
	probe_schedule_task(probe, &task);
}

Test(runs_watchdog_releases, of_a_timer_that_is_too_late_does_not_age_the_next_run)
{
	expect_young_behind(too_late);
}

static tw_group group;

static void cancel_group(struct probe *probe)
{
	tw_group_cancel(probe->rig->service, group);
}

static void cancelled_member(struct rig *rig, struct probe *probe)
{
	static struct probe before;
	before = PROBE(rig, 0);
	before.act = cancel_group;
	probe_schedule(&before, MS);
	expect_eq(tw_group_create(&group, rig->service), 0);
	struct tw_task task = probe_task(probe);
	task.when_ns = MS;
	task.group = group;
	probe_schedule_task(probe, &task);
}

Test(runs_watchdog_releases, of_a_cancelled_member_does_not_age_the_next_run)
{
	expect_young_behind(cancelled_member);
}
