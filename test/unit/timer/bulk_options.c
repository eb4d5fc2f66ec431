/*
 * Batches of members, series and timers with options, beside plain ones: as if each had been
 * scheduled by itself, or not at all.
 */
#include <errno.h>

#include "test/support/members.h"
#include "test/support/queue_executor.h"

TestSuite(timer_bulk_options, .timeout = 60);

enum { MANY = 1200, KINDS = 8 };

static struct probe probes[MANY], single[MANY];
static struct tw_task tasks[MANY];
static tw_timer timers[MANY];
static struct tw_period periods[3];

static bool is_member(int i)
{
	return i % KINDS == 1 || i % KINDS == 3;
}

static bool is_series(int i)
{
	return i % KINDS == 2 || i % KINDS == 3;
}

static bool is_elsewhere(int i)
{
	return i % KINDS == 6;
}

static void set_kind(struct tw_task *task, int i, tw_group group, tw_executor *other)
{
	if (i % KINDS)
		task->release = probe_release;
	if (is_member(i))
		task->group = group;
	if (is_series(i)) {
		task->period = &periods[i / KINDS % 3];
		task->when_ns = 0;
	}
	if (is_elsewhere(i))
		task->executor = other;
	if (i % KINDS == 7) {
		task->max_lateness_ns = 5 * MS;
		task->late = TW_LATE_DROP;
	}
}

static void make_tasks(struct rig *rig, struct probe *of, tw_group group, tw_executor *other)
{
	for (int missed = 0; missed < 3; missed++) {
		periods[missed] = rate_of(10 * MS, 10 * MS, 4);
		periods[missed].missed = (enum tw_missed_policy)missed;
	}
	for (int i = 0; i < MANY; i++) {
		of[i] = PROBE(rig, i);
		tasks[i] =
		    (struct tw_task){.size = sizeof(tasks[i]), .fn = probe_run, .arg = &of[i]};
		tasks[i].when_ns = 10 * MS;
		timers[i].id = 1;
		set_kind(&tasks[i], i, group, other);
	}
}

static void open_seeded(struct rig *rig)
{
	struct tw_service_config cfg = rig_config();
	cfg.seed = 4711;
	rig_open(rig, &cfg);
}

/* ------------------------------------------------------------ as if one by one */

static void run_single(struct rig *rig, tw_executor *other)
{
	open_seeded(rig);
	make_tasks(rig, single, group_of(rig), other);
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_schedule_task(rig->service, &tasks[i], &single[i].timer), 0);
	rig_advance(rig, SECOND);
}

static void run_batch(struct rig *rig, tw_executor *other)
{
	open_seeded(rig);
	tw_group group = group_of(rig);
	make_tasks(rig, probes, group, other);
	expect_eq(tw_schedule_bulk(rig->service, tasks, MANY, timers), 0);
	expect_sound(rig->service);
	expect_eq(gauges(rig, group).members, MANY / KINDS * 2);
	rig_advance(rig, SECOND);
	expect_eq(gauges(rig, group).members, 0);
}

/* The same runs in the same order at the same instants. */
Test(timer_bulk_options, run_as_the_same_tasks_scheduled_one_by_one)
{
	struct queue_executor other;
	queue_executor_open(&other);
	struct rig one_by_one, together;
	run_single(&one_by_one, &other.base);
	expect_eq(queue_executor_run_all(&other), MANY / KINDS);
	run_batch(&together, &other.base);
	expect_eq(queue_executor_run_all(&other), MANY / KINDS);
	expect_eq(together.ran, one_by_one.ran);
	for (size_t i = 0; i < together.ran; i++) {
		expect_eq(together.events[i].id, one_by_one.events[i].id);
		expect_eq(together.events[i].at_ns, one_by_one.events[i].at_ns);
		expect_eq(together.events[i].self, timers[together.events[i].id].id);
	}
	for (int i = 0; i < MANY; i++) {
		expect_eq(probes[i].runs, is_series(i) ? 4 : 1);
		expect_eq(probes[i].releases, i % KINDS != 0);
		expect_eq(probes[i].fate, TW_FATE_FIRED);
	}
	queue_executor_close(&other);
	rig_close(&one_by_one);
	rig_close(&together);
}

/*
 * G6: plain ones, members and those with an own lateness are due together, and keep the array's
 * order.
 */
Test(timer_bulk_options, keep_the_arrays_order_in_one_tick)
{
	struct queue_executor other;
	queue_executor_open(&other);
	struct rig rig;
	run_batch(&rig, &other.base);
	int last = -1;
	size_t seen = 0;
	for (size_t i = 0; i < rig.ran; i++) {
		int id = rig.events[i].id, kind = id % KINDS;
		if (kind != 0 && kind != 1 && kind != 7)
			continue;
		expect_eq(rig.events[i].at_ns, RIG_START_NS + 10 * MS);
		expect_lt(last, id);
		last = id;
		seen++;
	}
	expect_eq(seen, 3 * MANY / KINDS);
	size_t before = rig.ran;
	expect_eq(queue_executor_run_all(&other), MANY / KINDS);
	for (size_t i = before + 1; i < rig.ran; i++)
		expect_lt(rig.events[i - 1].id, rig.events[i].id);
	queue_executor_close(&other);
	rig_close(&rig);
}

/* A stall: what is too late is dropped, series do as their policies say, and overruns add up. */
Test(timer_bulk_options, follow_their_policies_after_a_stall)
{
	struct queue_executor other;
	queue_executor_open(&other);
	struct rig rig;
	open_seeded(&rig);
	tw_group group = group_of(&rig);
	make_tasks(&rig, probes, group, &other.base);
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	/* 10, 20, 30 are past */
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 35 * MS), 0);
	expect_gt(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	rig_advance(&rig, SECOND);
	queue_executor_run_all(&other);
	for (int i = 0; i < MANY; i++) {
		bool late = i % KINDS == 7;
		static const uint64_t overruns[] = {
		    [TW_MISSED_SKIP] = 2, [TW_MISSED_COALESCE] = 2, [TW_MISSED_BURST] = 0};
		expect_eq(probes[i].runs, late ? 0 : is_series(i) ? 4 : 1);
		if (i % KINDS)
			expect_released(&probes[i], late ? TW_FATE_LATE : TW_FATE_FIRED);
		if (is_series(i))
			expect_eq(probes[i].overruns, overruns[i / KINDS % 3]);
	}
	expect_eq(stats_of(rig.service).late_dropped, MANY / KINDS);
	queue_executor_close(&other);
	rig_close(&rig);
}

Test(timer_bulk_options, are_cancelled_with_their_group)
{
	struct queue_executor other;
	queue_executor_open(&other);
	struct rig rig;
	open_seeded(&rig);
	tw_group group = group_of(&rig);
	make_tasks(&rig, probes, group, &other.base);
	for (int i = 0; i < MANY; i++)
		if (is_elsewhere(i))
			tasks[i].group = group; /* members that have options too */
	expect_eq(tw_schedule_bulk(rig.service, tasks, MANY, timers), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(stats_of(rig.service).cancelled, MANY / KINDS * 3);
	rig_advance(&rig, SECOND);
	expect_eq(queue_executor_waiting(&other), 0);
	for (int i = 0; i < MANY; i++) {
		bool member = is_member(i) || is_elsewhere(i);
		expect_eq(probes[i].runs, member ? 0 : is_series(i) ? 4 : 1);
		expect_eq(tw_cancel(rig.service, timers[i]), TW_GONE);
		if (i % KINDS)
			expect_released(&probes[i], member ? TW_FATE_CANCELLED : TW_FATE_FIRED);
	}
	expect_eq(gauges(&rig, group).members, 0);
	queue_executor_close(&other);
	rig_close(&rig);
}

/* ------------------------------------------------------------ none of them */

struct refusal {
	struct rig rig;
	struct queue_executor other;
	tw_group group, ended;
};

static void open_refusal(struct refusal *refusal, int (*end)(tw_service *, tw_group),
			 uint32_t max_timers)
{
	queue_executor_open(&refusal->other);
	struct tw_service_config cfg = rig_config();
	cfg.seed = 4711;
	cfg.max_timers = max_timers;
	rig_open(&refusal->rig, &cfg);
	refusal->group = group_of(&refusal->rig);
	refusal->ended = group_of(&refusal->rig);
	if (end)
		expect_eq(end(refusal->rig.service, refusal->ended), 0);
	make_tasks(&refusal->rig, probes, refusal->group, &refusal->other.base);
}

/* Twice, so that what the first has taken and given back is used by the second. */
static void expect_refused(struct refusal *refusal, int error)
{
	tw_service *service = refusal->rig.service;
	for (int round = 0; round < 2; round++) {
		struct tw_service_stats before = stats_of(service);
		expect_eq(tw_schedule_bulk(service, tasks, MANY, timers), error);
		struct tw_service_stats after = stats_of(service);
		expect_same_state(&before, &after);
		expect_eq(after.rejected - before.rejected, error == -EINVAL ? 0 : MANY);
		for (int i = 0; i < MANY; i++)
			expect_eq(timers[i].id, error == -EINVAL);
		expect_eq(gauges(&refusal->rig, refusal->group).members, 0);
		expect_sound(service);
		rig_advance(&refusal->rig, SECOND);
	}
	expect_eq(refusal->rig.ran + queue_executor_waiting(&refusal->other), 0);
	for (int i = 0; i < MANY; i++)
		expect_eq(probes[i].releases, 0);
}

static void close_refusal(struct refusal *refusal)
{
	queue_executor_close(&refusal->other);
	rig_close(&refusal->rig);
}

static void refuse_for_group(int (*end)(tw_service *, tw_group), int error)
{
	static const int places[] = {0, 1, 255, MANY - 1};
	for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++) {
		struct refusal refusal;
		open_refusal(&refusal, end, 0);
		tasks[places[p]].group = refusal.ended;
		expect_refused(&refusal, error);
		close_refusal(&refusal);
	}
}

Test(timer_bulk_options, of_a_closed_group_are_refused_all)
{
	refuse_for_group(tw_group_close, -ESHUTDOWN);
}

Test(timer_bulk_options, of_a_destroyed_group_are_refused_all)
{
	refuse_for_group(tw_group_destroy, -ENOENT);
}

Test(timer_bulk_options, beyond_max_timers_are_refused_all)
{
	struct refusal refusal;
	open_refusal(&refusal, NULL, MANY / 2);
	expect_refused(&refusal, -EAGAIN);
	close_refusal(&refusal);
}

Test(timer_bulk_options, with_a_bad_one_at_the_end_are_refused_all)
{
	for (int bad = 0; bad < 4; bad++) {
		struct tw_executor_ops no_ops = {.size = sizeof(no_ops)};
		tw_executor unsound = {&no_ops};
		struct tw_period period = rate_of(0, MS, 0);
		struct refusal refusal;
		open_refusal(&refusal, NULL, 0);
		struct tw_task *last = &tasks[MANY - 1];
		*last = (struct tw_task){
		    .size = sizeof(*last), .fn = probe_run, .group = refusal.group};
		period.missed = (enum tw_missed_policy)3;
		if (bad == 0)
			last->period = &period;
		if (bad == 1)
			last->executor = &unsound;
		if (bad == 2)
			last->late = TW_LATE_DROP; /* without a limit */
		if (bad == 3)
			last->when_ns = TW_MAX_DELAY_NS + 1;
		expect_refused(&refusal, bad == 3 ? -ERANGE : -EINVAL);
		close_refusal(&refusal);
	}
}
