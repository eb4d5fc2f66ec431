/*
 * Strands: order, one at a time, delays, series, handles. One thread, exact: the test pumps the
 * executor and moves the clock.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/strand_suite.h"

TestSuite(strand, .init = opened, .fini = closed, .timeout = 30);

/* ---------------------------------------------------------------------- order */

Test(strand, immediate_tasks_run_in_the_order_of_submission)
{
	struct noted tasks[1000];
	for (int i = 0; i < 1000; i++) {
		tasks[i] = NOTED(&rig, i);
		noted_submit(&tasks[i], 0);
	}
	expect_eq(rig.rig.ran, 0);
	expect_eq(strand_stats(rig.strand).queued, 1000);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 1000);
	expect_ids_ascend(&rig.rig);
	expect_eq(strand_stats(rig.strand).queued, 0);
	expect_eq(strand_stats(rig.strand).runs, 1000);
}

Test(strand, one_hand_over_serves_all_that_waits)
{
	struct noted tasks[10];
	for (int i = 0; i < 10; i++) {
		tasks[i] = NOTED(&rig, i);
		noted_submit(&tasks[i], 0);
	}
	expect_eq(queue_executor_waiting(&rig.queue), 1);
	expect_eq(queue_executor_run_next(&rig.queue), 1);
	expect_eq(rig.rig.ran, 10);
	expect_eq(queue_executor_waiting(&rig.queue), 0);
}

Test(strand, goes_to_the_back_of_the_queue_after_64_runs)
{
	struct noted tasks[130];
	for (int i = 0; i < 130; i++) {
		tasks[i] = NOTED(&rig, i);
		noted_submit(&tasks[i], 0);
	}
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 64);
	expect_eq(queue_executor_waiting(&rig.queue), 1);
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 128);
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 130);
	expect_eq(queue_executor_waiting(&rig.queue), 0);
}

Test(strand, a_delayed_task_runs_when_it_is_due_and_not_before)
{
	struct noted task = NOTED(&rig, 1);
	uint64_t from_ns = rig_now(&rig.rig);
	noted_submit(&task, 5 * MS);
	expect_eq(strand_stats(rig.strand).delayed, 1);
	strand_rig_advance(&rig, 5 * MS - 1);
	expect_eq(task.runs, 0);
	strand_rig_advance(&rig, 3 * MS);
	expect_eq(task.runs, 1);
	expect_ge(task.ran_at_ns, from_ns + 5 * MS);
	expect_le(task.ran_at_ns, from_ns + 7 * MS);
	expect_eq(strand_stats(rig.strand).delayed, 0);
}

Test(strand, equal_delays_run_in_the_order_of_submission)
{
	struct noted tasks[500];
	for (int i = 0; i < 500; i++) {
		tasks[i] = NOTED(&rig, i);
		noted_submit(&tasks[i], 20 * MS);
	}
	strand_rig_advance(&rig, 25 * MS);
	expect_eq(rig.rig.ran, 500);
	expect_ids_ascend(&rig.rig);
}

Test(strand, delays_run_in_the_order_of_their_instants)
{
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2), c = NOTED(&rig, 3), d = NOTED(&rig, 4);
	noted_submit(&d, 40 * MS);
	noted_submit(&b, 20 * MS); /* earlier than what the timer is set to */
	noted_submit(&c, 30 * MS);
	noted_submit(&a, 0);
	strand_rig_advance(&rig, 45 * MS);
	expect_order(&rig, 1, 2, 3, 4);
	expect_le(b.ran_at_ns, RIG_START_NS + 22 * MS);
}

static void submit_other(struct noted *noted)
{
	noted_submit(noted->other, 0);
}

Test(strand, what_a_task_submits_runs_after_it_and_after_what_waits)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2), nested = NOTED(&rig, 3);
	first.act = submit_other;
	first.other = &nested;
	noted_submit(&first, 0);
	noted_submit(&second, 0);
	strand_rig_pump(&rig);
	expect_order(&rig, 1, 2, 3);
}

static char *lowest, *highest;
static unsigned long rounds;

static void again(void *arg)
{
	char here;
	lowest = !lowest || &here < lowest ? &here : lowest;
	highest = &here > highest ? &here : highest;
	if (--rounds)
		tw_strand_submit(arg, again, arg);
}

Test(strand, a_task_may_submit_itself_for_ever_in_constant_stack)
{
	rounds = 1000000;
	expect_eq(tw_strand_submit(rig.strand, again, rig.strand), 0);
	strand_rig_pump(&rig);
	expect_eq(rounds, 0);
	expect_eq(highest - lowest, 0);
}

static void note_current(struct noted *noted)
{
	noted->answer = tw_strand_current() == noted->rig->strand;
}

Test(strand, a_task_is_told_its_strand)
{
	struct noted task = NOTED(&rig, 1);
	task.act = note_current;
	cr_assert_null(tw_strand_current());
	noted_submit(&task, 0);
	strand_rig_pump(&rig);
	expect_eq(task.answer, 1);
	cr_assert_null(tw_strand_current());
}

/* --------------------------------------------------------------------- series */

Test(strand, a_series_may_begin_at_once)
{
	struct noted series = NOTED(&rig, 1);
	noted_submit_every(&series, 0, 10 * MS);
	strand_rig_pump(&rig);
	expect_eq(series.runs, 1);
	strand_rig_advance(&rig, 12 * MS);
	expect_eq(series.runs, 2);
	expect_eq(tw_strand_cancel(rig.strand, series.task), TW_CANCELLED);
}

Test(strand, runs_of_a_series_that_were_missed_follow_in_the_queue)
{
	struct noted series = NOTED(&rig, 1), other = NOTED(&rig, 2);
	noted_submit_every(&series, 10 * MS, 10 * MS);
	rig_advance(&rig.rig, 45 * MS); /* nobody pumps */
	noted_submit(&other, 0);
	strand_rig_pump(&rig);
	expect_order(&rig, 2, 1, 1, 1, 1);
	strand_rig_advance(&rig, 7 * MS);
	expect_eq(series.runs, 5);
	expect_eq(tw_strand_cancel(rig.strand, series.task), TW_CANCELLED);
}

static void cancel_self(struct noted *noted)
{
	noted->answer = tw_strand_cancel(noted->rig->strand, noted->task);
}

Test(strand, a_series_ends_after_the_run_that_cancels_it)
{
	struct noted series = NOTED(&rig, 1);
	series.act = cancel_self;
	noted_submit_every(&series, MS, MS);
	strand_rig_advance(&rig, 10 * MS);
	expect_eq(series.runs, 1);
	expect_eq(series.answer, TW_RUNNING);
	expect_eq(series.releases, 1);
	expect_eq(series.fate, TW_FATE_CANCELLED);
	expect_eq(tw_strand_cancel(rig.strand, series.task), TW_GONE);
}

/* -------------------------------------------------------------------- handles */

Test(strand, cancel_takes_a_task_alone)
{
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2), c = NOTED(&rig, 3), d = NOTED(&rig, 4);
	noted_submit(&a, 0);
	noted_submit(&b, 0);
	noted_submit(&c, 10 * MS);
	noted_submit(&d, 10 * MS);
	expect_eq(tw_strand_cancel(rig.strand, a.task), TW_CANCELLED);
	expect_eq(tw_strand_cancel(rig.strand, c.task), TW_CANCELLED);
	expect_eq(tw_strand_cancel(rig.strand, a.task), TW_GONE);
	strand_rig_advance(&rig, 15 * MS);
	expect_order(&rig, 2, 4);
	expect_eq(tw_strand_cancel(rig.strand, b.task), TW_GONE);
	expect_eq(tw_strand_cancel(rig.strand, d.task), TW_GONE);
	expect_eq(strand_stats(rig.strand).cancelled, 2);
}

Test(strand, release_is_told_once_with_the_fate)
{
	struct noted ran = NOTED(&rig, 1), cut = NOTED(&rig, 2), later = NOTED(&rig, 3);
	noted_submit_released(&ran, 0);
	noted_submit_released(&cut, 0);
	noted_submit_released(&later, MS);
	expect_eq(tw_strand_cancel(rig.strand, cut.task), TW_CANCELLED);
	expect_eq(cut.releases, 1);
	expect_eq(cut.fate, TW_FATE_CANCELLED);
	expect_eq(tw_strand_cancel(rig.strand, later.task), TW_CANCELLED);
	expect_eq(later.releases, 1);
	strand_rig_advance(&rig, 3 * MS);
	expect_order(&rig, 1);
	expect_eq(ran.releases, 1);
	expect_eq(ran.fate, TW_FATE_FIRED);
}

static void cancel_self_in_release(struct noted *noted)
{
	noted->answer = tw_strand_cancel_wait(noted->rig->strand, noted->task, TW_FOREVER);
}

Test(strand, waiting_for_oneself_is_refused)
{
	struct noted task = NOTED(&rig, 1), cut = NOTED(&rig, 2);
	task.act = cancel_self_in_release;
	noted_submit(&task, 0);
	strand_rig_pump(&rig);
	expect_eq(task.answer, TW_SELF);
	cut.act_in_release = cancel_self_in_release;
	noted_submit_released(&cut, 0);
	expect_eq(tw_strand_cancel(rig.strand, cut.task), TW_CANCELLED);
	expect_eq(cut.answer, TW_SELF);
}

static void cancel_other(struct noted *noted)
{
	noted->answer = tw_strand_cancel(noted->rig->strand, noted->other->task);
}

Test(strand, cancel_from_the_strand_is_final)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	first.act = cancel_other;
	first.other = &second;
	noted_submit(&first, 0);
	noted_submit(&second, 0);
	strand_rig_pump(&rig);
	expect_eq(first.answer, TW_CANCELLED);
	expect_order(&rig, 1);
}

Test(strand, foreign_and_random_handles_are_gone)
{
	tw_strand *other;
	struct noted task = NOTED(&rig, 1);
	uint64_t seed = 7;
	expect_eq(tw_strand_create(&other, rig.rig.service, &rig.queue.base), 0);
	noted_submit(&task, 0);
	expect_eq(tw_strand_cancel(other, task.task), TW_GONE);
	expect_eq(tw_strand_cancel(rig.strand, (tw_strand_task_id){0}), TW_GONE);
	for (int i = 0; i < 1000; i++)
		expect_eq(tw_strand_cancel(rig.strand, (tw_strand_task_id){random_next(&seed)}),
			  TW_GONE);
	expect_eq(tw_strand_cancel_wait(other, task.task, TW_FOREVER), TW_GONE);
	strand_rig_pump(&rig);
	expect_order(&rig, 1);
	expect_eq(tw_strand_destroy(other), 0);
}

/* Submitted and cancelled while the strand stands still: no growth. */
Test(strand, cancelled_tasks_leave_the_queue)
{
	struct noted first = NOTED(&rig, 1), task = NOTED(&rig, 2);
	noted_submit(&first, 0);
	noted_submit(&task, 0);
	uint32_t highest_index = 0;
	for (int i = 0; i < 100000; i++) {
		expect_eq(tw_strand_cancel(rig.strand, task.task), TW_CANCELLED);
		noted_submit(&task, 0);
		uint32_t index = (uint32_t)task.task.id;
		highest_index = index > highest_index ? index : highest_index;
	}
	expect_le(highest_index, 200);
	strand_rig_pump(&rig);
	expect_order(&rig, 1, 2);
}

/* ------------------------------------------------------------- want of timers */

/* Takes all timers that the service has left. */
static int fill(tw_service *service, tw_timer *timers, int n, struct noted *noted)
{
	int filled = 0;
	while (filled < n && tw_schedule(service, HOUR, note_run, noted, &timers[filled]) == 0)
		filled++;
	return filled;
}

static void pump_in_release(struct noted *noted)
{
	noted->answer = queue_executor_run_next(&noted->rig->queue);
}

/*
 * The runner meets the place of a task whose release is being called. The node of its handle goes
 * back once, when the release has returned.
 */
Test(strand, a_cancelled_tasks_place_may_be_met_while_its_release_runs)
{
	struct noted cancelled = NOTED(&rig, 1), a = NOTED(&rig, 2), b = NOTED(&rig, 3);
	cancelled.act_in_release = pump_in_release;
	noted_submit_released(&cancelled, 0);
	expect_eq(tw_strand_cancel(rig.strand, cancelled.task), TW_CANCELLED);
	expect_eq(cancelled.answer, 1);
	expect_eq(cancelled.releases, 1);
	noted_submit(&a, 0);
	noted_submit(&b, 0);
	expect_ne((uint32_t)a.task.id, (uint32_t)b.task.id);
	strand_rig_pump(&rig);
	expect_order(&rig, 2, 3);
}

/*
 * More tasks wait than one slice of the strand takes, so the strand is not at its end when the
 * timer cannot be set.
 */
Test(strand, a_timer_that_could_not_be_set_is_set_later_however_much_waits)
{
	enum { MANY = 200, MORE_THAN_THERE_ARE = 1 << 16 };
	static tw_timer timers[MORE_THAN_THERE_ARE];
	struct strand_rig mine;
	struct noted due = NOTED(&mine, 1), later = NOTED(&mine, 2), others = NOTED(&mine, 3);
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 16;
	queue_executor_open(&mine.queue);
	rig_open(&mine.rig, &cfg);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, &mine.queue.base), 0);
	noted_submit(&due, MS);
	noted_submit(&later, 10 * MS);
	for (int i = 0; i < MANY; i++)
		noted_submit(&others, 0);
	rig_advance(&mine.rig, 3 * MS);
	int filled = fill(mine.rig.service, timers, MORE_THAN_THERE_ARE, &others);
	expect_ge(filled, 1);
	expect_lt(filled, MORE_THAN_THERE_ARE);
	expect_eq(queue_executor_run_next(&mine.queue), 1);
	expect_eq(due.runs, 0);
	for (int i = 0; i < filled; i++)
		expect_eq(tw_cancel(mine.rig.service, timers[i]), TW_CANCELLED);
	strand_rig_advance(&mine, 20 * MS);
	expect_eq(others.runs, MANY);
	expect_eq(due.runs, 1);
	expect_eq(later.runs, 1);
	strand_rig_close(&mine);
}
