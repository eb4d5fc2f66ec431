/*
 * Stalls of several lengths and the policies for missed instants, as a table: a series with a
 * period of one second, whose first instant is at one second.
 */
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(timer_missed_stalls, .timeout = 30);

enum { SKIP, COALESCE, BURST, DELAY, KINDS };

/* What a series of one kind does at the end of the stall, and when it runs after that. */
struct expected {
	size_t runs;       /* at the end of the stall */
	uint64_t overruns; /* of the first of them */
	uint64_t next_ms;  /* the first run after the stall */
	uint64_t next_overruns;
};

struct row {
	uint64_t end_ms; /* of the stall */
	struct expected of[KINDS];
};

/* The clock stands from 0 on: the first run comes late. */
static const struct row before_a_run[] = {
    {1000, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}}},
    {1001, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2001, 0}}},
    {1999, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2999, 0}}},
    {2000, {{1, 1, 3000, 0}, {1, 1, 3000, 0}, {2, 0, 3000, 0}, {1, 0, 3000, 0}}},
    {2999, {{1, 1, 3000, 0}, {1, 1, 3000, 0}, {2, 0, 3000, 0}, {1, 0, 3999, 0}}},
    {3000, {{1, 2, 4000, 0}, {1, 2, 4000, 0}, {3, 0, 4000, 0}, {1, 0, 4000, 0}}},
    {10000, {{1, 9, 11000, 0}, {1, 9, 11000, 0}, {10, 0, 11000, 0}, {1, 0, 11000, 0}}},
    {10500, {{1, 9, 11000, 0}, {1, 9, 11000, 0}, {10, 0, 11000, 0}, {1, 0, 11500, 0}}},
    {3600500,
     {{1, 3599, 3601000, 0}, {1, 3599, 3601000, 0}, {3600, 0, 3601000, 0}, {1, 0, 3601500, 0}}},
};

/* The first run begins at 1000, and returns at the end of the stall. */
static const struct row in_a_run[] = {
    {1000, {{0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}}},
    {1500, {{0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2500, 0}}},
    {2000, {{0, 0, 3000, 1}, {1, 0, 3000, 0}, {1, 0, 3000, 0}, {0, 0, 3000, 0}}},
    {2999, {{0, 0, 3000, 1}, {1, 0, 3000, 0}, {1, 0, 3000, 0}, {0, 0, 3999, 0}}},
    {3000, {{0, 0, 4000, 2}, {1, 1, 4000, 0}, {2, 0, 4000, 0}, {0, 0, 4000, 0}}},
    {10000, {{0, 0, 11000, 9}, {1, 8, 11000, 0}, {9, 0, 11000, 0}, {0, 0, 11000, 0}}},
    {10500, {{0, 0, 11000, 9}, {1, 8, 11000, 0}, {9, 0, 11000, 0}, {0, 0, 11500, 0}}},
    {3600500,
     {{0, 0, 3601000, 3599}, {1, 3598, 3601000, 0}, {3599, 0, 3601000, 0}, {0, 0, 3601500, 0}}},
};

#define ROWS(table) (sizeof(table) / sizeof *(table))

static struct tw_period period_of(int kind)
{
	if (kind == DELAY)
		return delay_of(SECOND, SECOND, 0);
	static const enum tw_missed_policy policies[] = {TW_MISSED_SKIP, TW_MISSED_COALESCE,
							 TW_MISSED_BURST};
	struct tw_period period = rate_of(SECOND, SECOND, 0);
	period.missed = policies[kind];
	return period;
}

static void advance_all(struct rig *rig, struct queue_executor *queue)
{
	size_t idle = 0;
	while (idle < 3) {
		int done = tw_service_advance(rig->service, TW_NO_LIMIT);
		if (queue)
			done += (int)queue_executor_run_all(queue);
		idle = done > 0 ? 0 : idle + 1;
	}
}

static void set_clock(const struct rig *rig, uint64_t at_ms)
{
	expect_eq(tw_clock_manual_set(rig->clock, RIG_START_NS + at_ms * MS), 0);
}

/* The stall has ended, and `before` runs had begun by then. */
static void expect_after(struct rig *rig, struct queue_executor *queue, const struct probe *probe,
			 size_t before, uint64_t end_ms, const struct expected *expected)
{
	advance_all(rig, queue);
	expect_eq(rig->ran, before + expected->runs);
	for (size_t i = before; i < rig->ran; i++) {
		expect_eq(rig->events[i].at_ns, RIG_START_NS + end_ms * MS);
		expect_eq(rig->events[i].overruns, i == before ? expected->overruns : 0);
	}
	set_clock(rig, expected->next_ms - 1);
	advance_all(rig, queue);
	expect_eq(rig->ran, before + expected->runs);
	set_clock(rig, expected->next_ms);
	advance_all(rig, queue);
	expect_eq(rig->ran, before + expected->runs + 1);
	expect_eq(rig->events[rig->ran - 1].overruns, expected->next_overruns);
	expect_eq(stats_of(rig->service).overruns, probe->overruns);
}

static void open_with(struct rig *rig, struct queue_executor *queue)
{
	struct tw_service_config cfg = rig_config();
	if (queue) {
		queue_executor_open(queue);
		cfg.executor = &queue->base;
	}
	rig_open(rig, &cfg);
}

static void close_with(struct rig *rig, struct queue_executor *queue)
{
	if (queue)
		queue_executor_close(queue);
	rig_close(rig);
}

static void expect_row_before_a_run(const struct row *row, int kind, struct queue_executor *queue)
{
	struct rig rig;
	open_with(&rig, queue);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, period_of(kind));
	set_clock(&rig, row->end_ms);
	expect_after(&rig, queue, &probe, 0, row->end_ms, &row->of[kind]);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	close_with(&rig, queue);
}

Test(timer_missed_stalls, before_a_run_follow_the_table)
{
	for (size_t i = 0; i < ROWS(before_a_run); i++)
		for (int kind = SKIP; kind < KINDS; kind++)
			expect_row_before_a_run(&before_a_run[i], kind, NULL);
}

Test(timer_missed_stalls, before_a_run_follow_the_table_behind_an_executor)
{
	struct queue_executor queue;
	for (size_t i = 0; i < ROWS(before_a_run); i++)
		for (int kind = SKIP; kind < KINDS; kind++)
			expect_row_before_a_run(&before_a_run[i], kind, &queue);
}

/* The driver hands the run over in time, and the executor is what stalls. */
static void expect_row_in_a_queue(const struct row *row, int kind)
{
	struct rig rig;
	struct queue_executor queue;
	open_with(&rig, &queue);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule_every(&probe, period_of(kind));
	rig_advance(&rig, SECOND);
	expect_eq(queue_executor_waiting(&queue), 1);
	set_clock(&rig, row->end_ms);
	expect_after(&rig, &queue, &probe, 0, row->end_ms, &row->of[kind]);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	close_with(&rig, &queue);
}

Test(timer_missed_stalls, of_the_executor_follow_the_table)
{
	for (size_t i = 0; i < ROWS(before_a_run); i++)
		for (int kind = SKIP; kind < KINDS; kind++)
			expect_row_in_a_queue(&before_a_run[i], kind);
}

static uint64_t return_at_ms;

static void return_late_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		tw_clock_manual_set(probe->rig->clock, RIG_START_NS + return_at_ms * MS);
}

static void expect_row_in_a_run(const struct row *row, int kind)
{
	struct rig rig;
	open_with(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = return_late_once;
	return_at_ms = row->end_ms;
	probe_schedule_every(&probe, period_of(kind));
	set_clock(&rig, 1000);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_after(&rig, NULL, &probe, 1, row->end_ms, &row->of[kind]);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	close_with(&rig, NULL);
}

Test(timer_missed_stalls, in_a_run_follow_the_table)
{
	for (size_t i = 0; i < ROWS(in_a_run); i++)
		for (int kind = SKIP; kind < KINDS; kind++)
			expect_row_in_a_run(&in_a_run[i], kind);
}

/* A run that returns at 3500 is followed by one that begins at 5500. */
Test(timer_missed_stalls, that_follow_each_other_cost_one_run_when_coalesced)
{
	struct rig rig;
	open_with(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	probe.act = return_late_once;
	return_at_ms = 3500;
	probe_schedule_every(&probe, period_of(COALESCE));
	set_clock(&rig, 1000);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	set_clock(&rig, 5500);
	expect_after(&rig, NULL, &probe, 1, 5500, &(struct expected){1, 3, 6000, 0});
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	close_with(&rig, NULL);
}

/* Callbacks before it in the same tick stall: what counts is the clock as its own run begins. */
static void stall_behind(uint64_t other_ms)
{
	struct rig rig;
	open_with(&rig, NULL);
	struct probe other = PROBE(&rig, 1), probe = PROBE(&rig, 2);
	other.act = return_late_once;
	return_at_ms = other_ms;
	probe_schedule(&other, SECOND);
	probe_schedule_every(&probe, period_of(COALESCE));
	set_clock(&rig, 1000);
	advance_all(&rig, NULL);
	expect_eq(rig.ran, 2);
	expect_eq(rig.events[1].id, 2);
	expect_eq(rig.events[1].overruns, other_ms / 1000 - 1);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	close_with(&rig, NULL);
}

Test(timer_missed_stalls, of_a_callback_before_it_in_the_same_tick_count)
{
	stall_behind(1500);
	stall_behind(2000);
	stall_behind(10500);
}
