/* Close and destroy of strands. */
#include <errno.h>

#include "test/support/strand_suite.h"

TestSuite(strand_close, .init = opened, .fini = closed, .timeout = 30);

/* -------------------------------------------------------------------- close -- */

Test(strand_close, cancels_all_that_has_not_run_and_refuses_what_comes)
{
	struct noted now = NOTED(&rig, 1), later = NOTED(&rig, 2), series = NOTED(&rig, 3),
		     cut = NOTED(&rig, 4);
	noted_submit_released(&now, 0);
	noted_submit_released(&cut, 0);
	noted_submit_released(&later, MS);
	noted_submit_every(&series, MS, MS);
	expect_eq(tw_strand_cancel(rig.strand, cut.task), TW_CANCELLED);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(now.releases, 1);
	expect_eq(now.fate, TW_FATE_CANCELLED);
	expect_eq(later.releases, 1);
	expect_eq(series.releases, 1);
	expect_eq(cut.releases, 1);
	expect_eq(tw_strand_cancel(rig.strand, now.task), TW_GONE);
	expect_eq(strand_stats(rig.strand).cancelled, 4);
	expect_eq(strand_stats(rig.strand).closed, 1);
	tw_strand_task_id out = {7};
	expect_eq(tw_strand_schedule(rig.strand, 0, note_run, &now, &out), -ESHUTDOWN);
	expect_eq(out.id, 0);
	expect_eq(tw_strand_cancel(rig.strand, out), TW_GONE);
	out.id = 7;
	expect_eq(tw_strand_schedule(rig.strand, MS, note_run, &now, &out), -ESHUTDOWN);
	expect_eq(out.id, 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(tw_strand_close(rig.strand, TW_FOREVER), 0);
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(rig.rig.ran, 0);
}

static void close_own(struct noted *noted)
{
	noted->answer = tw_strand_close(noted->rig->strand, 0);
}

Test(strand_close, from_a_task_nothing_follows)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	first.act = close_own;
	noted_submit_released(&first, 0);
	noted_submit_released(&second, 0);
	strand_rig_pump(&rig);
	expect_order(&rig, 1);
	expect_eq(first.answer, -ETIMEDOUT); /* it runs */
	expect_eq(first.fate, TW_FATE_FIRED);
	expect_eq(second.fate, TW_FATE_CANCELLED);
	expect_eq(second.releases, 1);
}

Test(strand_close, a_series_that_closes_ends_as_cancelled)
{
	struct noted series = NOTED(&rig, 1);
	series.act = close_own;
	noted_submit_every(&series, 0, MS);
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(series.runs, 1);
	expect_eq(series.releases, 1);
	expect_eq(series.fate, TW_FATE_CANCELLED);
}

static void close_and_wait(struct noted *noted)
{
	noted->answer = tw_strand_close(noted->rig->strand, TW_FOREVER);
}

Test(strand_close, waiting_for_oneself_is_refused_and_changes_nothing)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	first.act = close_and_wait;
	noted_submit(&first, 0);
	noted_submit(&second, 0);
	strand_rig_pump(&rig);
	expect_eq(first.answer, -EDEADLK);
	expect_order(&rig, 1, 2);
}

Test(strand_close, touches_no_other_strand)
{
	tw_strand *other;
	struct noted task = NOTED(&rig, 1);
	expect_eq(tw_strand_create(&other, rig.rig.service, &rig.queue.base), 0);
	expect_eq(tw_strand_submit(other, note_run, &task), 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	strand_rig_pump(&rig);
	expect_order(&rig, 1);
	expect_eq(tw_strand_destroy(other), 0);
}

static void submit_to_own(struct noted *noted)
{
	tw_strand_task_id out = {7};
	noted->answer = tw_strand_schedule(noted->rig->strand, 0, note_run, noted, &out);
}

Test(strand_close, a_release_cannot_submit_any_more)
{
	struct noted task = NOTED(&rig, 1);
	task.act_in_release = submit_to_own;
	noted_submit_released(&task, 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(task.answer, -ESHUTDOWN);
}

/* -------------------------------------------------------------------- destroy */

static void destroy_own(struct noted *noted)
{
	noted->answer = tw_strand_destroy(noted->rig->strand);
}

Test(strand_close, a_task_may_destroy_its_strand)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2), third = NOTED(&rig, 3);
	first.act = destroy_own;
	noted_submit_released(&first, 0);
	noted_submit_released(&second, 0);
	noted_submit_released(&third, 10 * MS);
	strand_rig_pump(&rig);
	rig.strand = NULL;
	expect_eq(first.answer, 0);
	expect_eq(first.releases, 1);
	expect_eq(second.fate, TW_FATE_CANCELLED);
	expect_eq(third.fate, TW_FATE_CANCELLED);
	expect_order(&rig, 1);
}

static void destroy_own_and_close(struct noted *noted)
{
	/* it is in use */
	noted->answer = tw_service_close(noted->rig->rig.service, TW_CLOSE_DROP, TW_FOREVER);
	expect_eq(noted->answer, -EBUSY);
	expect_eq(tw_strand_destroy(tw_strand_current()), 0);
	noted->answer = tw_service_close(noted->rig->rig.service, TW_CLOSE_DROP, TW_FOREVER);
}

/* It would wait for the task that it is called from. */
Test(strand_close, a_task_that_has_destroyed_its_strand_cannot_close_the_service)
{
	for (int inlined = 0; inlined < 2; inlined++) {
		struct noted task = NOTED(&rig, 1);
		tw_strand *strand;
		expect_eq(tw_strand_destroy(rig.strand), 0);
		rig.strand = NULL;
		task.act = destroy_own_and_close;
		tw_executor *executor = inlined ? tw_executor_inline() : &rig.queue.base;
		expect_eq(tw_strand_create(&strand, rig.rig.service, executor), 0);
		expect_eq(tw_strand_submit(strand, note_run, &task), 0);
		strand_rig_advance(&rig, MS);
		expect_eq(task.answer, -EDEADLK);
		expect_eq(task.runs, 1);
	}
}

Test(strand_close, what_is_handed_over_keeps_the_strand_and_its_service_until_it_has_been)
{
	struct noted task = NOTED(&rig, 1);
	noted_submit(&task, 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, MS), -ETIMEDOUT);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	/* it is not closed */
	expect_eq(tw_schedule(rig.rig.service, MS, note_run, &task, NULL), 0);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 0);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, 0), 0);
}

/* Its work waits for the driver, which is whoever closes. */
Test(strand_close, close_with_a_manual_drive_gets_through_with_what_a_destroyed_strand_left)
{
	struct noted task = NOTED(&rig, 1);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, rig.rig.service, tw_executor_inline()), 0);
	expect_eq(tw_strand_submit(strand, note_run, &task), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.rig.ran, 0);
}

Test(strand_close, the_timer_of_a_destroyed_strand_is_gone)
{
	struct noted task = NOTED(&rig, 1);
	noted_submit(&task, MS);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(rig.rig.ran, 0);
}

/*
 * Its timer has run, and its work waits: nobody is to set the timer to what close is about to
 * cancel.
 */
Test(strand_close, leaves_no_timer_behind_when_some_tasks_have_come_due)
{
	struct noted due = NOTED(&rig, 1), later = NOTED(&rig, 2);
	noted_submit_released(&due, MS);
	noted_submit_released(&later, HOUR);
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(due.fate, TW_FATE_CANCELLED);
	expect_eq(later.fate, TW_FATE_CANCELLED);
	expect_eq(due.releases + later.releases, 2);
	strand_rig_pump(&rig);
}

Test(strand_close, service_is_busy_while_strands_live)
{
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), -EBUSY);
	expect_eq(tw_service_destroy(rig.rig.service), -EBUSY);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), -EBUSY);
}
