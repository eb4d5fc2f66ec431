/*
 * Strands as executors: of timers that name them, of services, of other strands; before and after
 * their end.
 */
#include <errno.h>
#include <stdlib.h>

#include "executor/strand/internal.h"
#include "test/support/strand_suite.h"

TestSuite(strand_executor, .init = opened, .fini = closed, .timeout = 30);

static void close_strand(struct noted *noted)
{
	noted->answer = tw_strand_close(noted->rig->strand, 0);
}

/* Timers that name the strand and come due. The one with number `closer` closes the strand. */
static void bring_timers(struct noted *timers, int n, int closer)
{
	for (int i = 0; i < n; i++) {
		timers[i] = NOTED(&rig, i);
		timers[i].act = i == closer ? close_strand : NULL;
		struct tw_task task = {.size = sizeof task,
				       .fn = note_run,
				       .arg = &timers[i],
				       .when_ns = MS,
				       .release = note_release,
				       .executor = tw_strand_executor(rig.strand)};
		expect_eq(tw_schedule_task(rig.rig.service, &task, NULL), 0);
	}
	rig_advance(&rig.rig, 3 * MS);
}

Test(strand_executor, more_tickets_than_the_budget_go_to_the_back_and_are_kept)
{
	struct noted timers[100];
	bring_timers(timers, 100, -1);
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 64);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 100);
	expect_ids_ascend(&rig.rig);
}

/* ------------------------------------------------------------------ after the end */

/* The batches that wait in the strand. */
static int batches_in(tw_strand *strand, tw_batch **batches)
{
	int n = 0;
	for (tw__link link = strand->line.first; link && n < 3; link = *tw__link_at(link))
		batches[n++] = (tw_batch *)tw__link_at(link);
	return n;
}

/*
 * Three batches; the second is half run, and has more tickets left than the third. Each batch may
 * be ended once for each ticket. With the last end it is gone, and one more end would touch another
 * batch.
 */
static void closed_in_the_middle(int by_itself)
{
	struct noted timers[150];
	tw_batch *batches[3];
	int ran = by_itself >= 0 ? by_itself + 1 : 64;
	bring_timers(timers, 150, by_itself);
	tw__object_lock(&rig.strand->object);
	expect_eq(tw__strand_gather(rig.strand), false);
	tw__object_unlock(&rig.strand->object);
	expect_eq(batches_in(rig.strand, batches), 3);
	queue_executor_run_next(&rig.queue);
	if (by_itself < 0)
		expect_eq(tw_strand_close(rig.strand, 0), 0);
	for (int i = 0; i < 150; i++) {
		expect_eq(timers[i].releases, 1);
		expect_eq(timers[i].fate, i < ran ? TW_FATE_FIRED : TW_FATE_CANCELLED);
	}
	strand_rig_pump(&rig);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_load_relaxed(tw__batch_word(batches[i], HOLDER_FINISHED)),
			  tw__batch_chunk(batches[i])->count);
	expect_eq(rig.rig.ran, ran);
	expect_sound(rig.rig.service);
}

Test(strand_executor, close_in_the_middle_of_a_batch_ends_its_rest_and_what_is_behind)
{
	closed_in_the_middle(-1);
}

Test(strand_executor, a_timer_that_closes_is_the_last_of_its_batch_to_run)
{
	closed_in_the_middle(60);
}

Test(strand_executor, close_in_the_middle_of_a_batch_leaves_work_behind_it_alone)
{
	tw_strand *upper;
	struct noted timers[100], task = NOTED(&rig, 100);
	expect_eq(tw_strand_create(&upper, rig.rig.service, tw_strand_executor(rig.strand)), 0);
	bring_timers(timers, 100, -1);
	queue_executor_run_next(&rig.queue);
	expect_eq(tw_strand_submit(upper, note_run, &task), 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	for (int i = 0; i < 4; i++) /* no pump: it would go on for as long as there is something */
		queue_executor_run_next(&rig.queue);
	expect_eq(queue_executor_waiting(&rig.queue), 0);
	expect_eq(task.runs, 1);
	expect_eq(tw_strand_destroy(upper), 0);
}

Test(strand_executor, a_strand_may_serve_a_whole_service)
{
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2);
	tw_service *other;
	struct tw_service_config cfg = rig_config();
	cfg.clock = rig.rig.clock;
	cfg.executor = tw_strand_executor(rig.strand);
	expect_eq(tw_service_create(&other, &cfg), 0);
	expect_eq(tw_schedule(other, MS, note_run, &a, NULL), 0);
	strand_rig_advance(&rig, 3 * MS);
	expect_order(&rig, 1);
	expect_eq(tw_schedule(other, MS, note_run, &b, NULL), 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	strand_rig_advance(&rig, 3 * MS);
	expect_order(&rig, 1);
	expect_eq(tw_service_destroy(other), 0);
}
