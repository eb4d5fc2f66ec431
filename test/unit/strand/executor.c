/*
 * Strands as executors: of timers that name them, of services, of other strands; before and after
 * their end.
 */
#include <errno.h>
#include <stdlib.h>

#include "executor/strand/internal.h"
#include "test/support/strand_suite.h"
#include "executor/strand/run.h"

TestSuite(strand_executor, .init = opened, .fini = closed, .timeout = 30);

/* A timer of the rig's service, its callback note_run, that names an executor. */
static tw_timer named(struct noted *noted, uint64_t delay_ns, tw_executor *executor)
{
	tw_timer timer;
	struct tw_task task = {.size = sizeof task,
			       .fn = note_run,
			       .arg = noted,
			       .when_ns = delay_ns,
			       .release = note_release,
			       .executor = executor};
	expect_eq(tw_schedule_task(noted->rig->rig.service, &task, &timer), 0);
	return timer;
}

static void note_strand(struct noted *noted)
{
	noted->answer = tw_strand_current() == noted->rig->strand;
}

Test(strand_executor, timers_that_name_it_run_on_it_in_order)
{
	struct noted timers[300];
	for (int i = 0; i < 300; i++) {
		timers[i] = NOTED(&rig, i);
		timers[i].act = note_strand;
		named(&timers[i], (uint64_t)(1 + i / 100) * MS, tw_strand_executor(rig.strand));
	}
	strand_rig_advance(&rig, 6 * MS);
	expect_eq(rig.rig.ran, 300);
	expect_ids_ascend(&rig.rig);
	for (int i = 0; i < 300; i++) {
		expect_eq(timers[i].answer, 1);
		expect_eq(timers[i].fate, TW_FATE_FIRED);
	}
	expect_eq(strand_stats(rig.strand).runs, 300);
}

Test(strand_executor, timers_and_tasks_share_the_queue)
{
	struct noted timer = NOTED(&rig, 2), before = NOTED(&rig, 1), after = NOTED(&rig, 3);
	named(&timer, MS, tw_strand_executor(rig.strand));
	noted_submit(&before, 0);
	rig_advance(&rig.rig, 3 * MS); /* the timer has come to the strand */
	queue_executor_run_next(&rig.queue);
	noted_submit(&after, 0);
	strand_rig_pump(&rig);
	expect_order(&rig, 1, 2, 3);
}

Test(strand_executor, more_tickets_than_the_budget_go_to_the_back_and_are_kept)
{
	struct noted timers[100];
	for (int i = 0; i < 100; i++) {
		timers[i] = NOTED(&rig, i);
		named(&timers[i], MS, tw_strand_executor(rig.strand));
	}
	rig_advance(&rig.rig, 3 * MS);
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 64);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 100);
	expect_ids_ascend(&rig.rig);
}

Test(strand_executor, cancelled_timers_do_not_run)
{
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2);
	tw_timer timer = named(&a, MS, tw_strand_executor(rig.strand));
	named(&b, MS, tw_strand_executor(rig.strand));
	rig_advance(&rig.rig, 3 * MS); /* both wait in the strand */
	expect_eq(tw_cancel(rig.rig.service, timer), TW_CANCELLED);
	strand_rig_pump(&rig);
	expect_order(&rig, 2);
}

/* ------------------------------------------------------------------ after the end */

Test(strand_executor, close_ends_the_timers_that_wait_in_it)
{
	struct noted timers[100];
	for (int i = 0; i < 100; i++) {
		timers[i] = NOTED(&rig, i);
		named(&timers[i], MS, tw_strand_executor(rig.strand));
	}
	rig_advance(&rig.rig, 3 * MS);
	queue_executor_run_next(&rig.queue); /* leaves off in the middle of a batch */
	expect_eq(rig.rig.ran, 64);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	for (int i = 0; i < 100; i++) {
		expect_eq(timers[i].releases, 1);
		expect_eq(timers[i].fate, i < 64 ? TW_FATE_FIRED : TW_FATE_CANCELLED);
	}
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 64);
}

static void close_strand(struct noted *noted)
{
	noted->answer = tw_strand_close(noted->rig->strand, 0);
}

/* The batches that wait in the strand. */
static int batches_in(tw_strand *strand, tw_batch **batches)
{
	int n = 0;
	for (tw__link link = strand->first; link && n < 3; link = *tw__strand_link(link))
		batches[n++] = (tw_batch *)(link - TW__LINK_BATCH);
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
	for (int i = 0; i < 150; i++) {
		timers[i] = NOTED(&rig, i);
		timers[i].act = i == by_itself ? close_strand : NULL;
		named(&timers[i], MS, tw_strand_executor(rig.strand));
	}
	rig_advance(&rig.rig, 3 * MS);
	tw__tiny_lock(&rig.strand->lock);
	tw__strand_gather(rig.strand);
	tw__tiny_unlock(&rig.strand->lock);
	expect_eq(batches_in(rig.strand, batches), 3);
	queue_executor_run_next(&rig.queue);
	if (by_itself < 0)
		expect_eq(tw_strand_close(rig.strand, 0), 0);
	strand_rig_pump(&rig);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_load_relaxed(tw__batch_word(batches[i], HOLDER_FINISHED)),
			  tw__batch_chunk(batches[i])->count);
	expect_eq(rig.rig.ran, ran);
	for (int i = 0; i < 150; i++) {
		expect_eq(timers[i].releases, 1);
		expect_eq(timers[i].fate, i < ran ? TW_FATE_FIRED : TW_FATE_CANCELLED);
	}
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
	for (int i = 0; i < 100; i++) {
		timers[i] = NOTED(&rig, i);
		named(&timers[i], MS, tw_strand_executor(rig.strand));
	}
	rig_advance(&rig.rig, 3 * MS);
	queue_executor_run_next(&rig.queue);
	expect_eq(tw_strand_submit(upper, note_run, &task), 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	for (int i = 0; i < 4; i++) /* no pump: it would go on for as long as there is something */
		queue_executor_run_next(&rig.queue);
	expect_eq(queue_executor_waiting(&rig.queue), 0);
	expect_eq(task.runs, 1);
	expect_eq(tw_strand_destroy(upper), 0);
}

Test(strand_executor, timers_that_come_due_later_end_as_cancelled)
{
	struct noted a = NOTED(&rig, 1);
	named(&a, 5 * MS, tw_strand_executor(rig.strand));
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(a.releases, 0);
	strand_rig_advance(&rig, 8 * MS);
	expect_eq(a.releases, 1);
	expect_eq(a.fate, TW_FATE_CANCELLED);
	expect_eq(a.runs, 0);
}

Test(strand_executor, timers_may_outlive_a_destroyed_strand)
{
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2);
	tw_executor *executor = tw_strand_executor(rig.strand);
	named(&a, 5 * MS, executor);
	rig_advance(&rig.rig, MS);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	named(&b, 5 * MS, executor);
	strand_rig_advance(&rig, 10 * MS);
	expect_eq(a.fate, TW_FATE_CANCELLED);
	expect_eq(b.fate, TW_FATE_CANCELLED);
	expect_eq(a.releases + b.releases, 2);
	expect_eq(rig.rig.ran, 0);
}

/* The service's executor is another: it calls the releases, in its own time. */
Test(strand_executor, releases_after_the_end_are_told_by_the_services_executor)
{
	struct strand_rig mine;
	struct noted a = NOTED(&mine, 1);
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&mine.queue);
	cfg.executor = &mine.queue.base;
	rig_open(&mine.rig, &cfg);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, NULL), 0);
	named(&a, MS, tw_strand_executor(mine.strand));
	expect_eq(tw_strand_close(mine.strand, 0), 0);
	mine.queue.refuse = 1;
	rig_advance(&mine.rig, 5 * MS);
	expect_eq(a.releases, 0);
	expect_eq(queue_executor_waiting(&mine.queue), 1);
	expect_eq(queue_executor_run_next(&mine.queue), 0);
	expect_eq(a.fate, TW_FATE_CANCELLED);
	expect_eq(a.releases, 1);
	strand_rig_close(&mine);
}

/* ------------------------------------------------------------------------ bases */

Test(strand_executor, a_strand_may_stand_on_a_strand)
{
	tw_strand *upper;
	struct noted a = NOTED(&rig, 1), b = NOTED(&rig, 2), c = NOTED(&rig, 3);
	expect_eq(tw_strand_create(&upper, rig.rig.service, tw_strand_executor(rig.strand)), 0);
	noted_submit(&a, 0);
	expect_eq(tw_strand_submit(upper, note_run, &b), 0);
	noted_submit(&c, 0);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 3);
	expect_eq(tw_strand_submit(upper, note_run, &b), 0);
	expect_eq(tw_strand_submit(upper, note_run, &b), 0);
	expect_eq(tw_strand_close(rig.strand, 0), 0); /* it is still an executor */
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 5);
	expect_eq(tw_strand_destroy(upper), 0);
	strand_rig_pump(&rig);
}

/*
 * The upper one could not set its timer, and comes again in a tick; both are destroyed before, and
 * the lower one's memory is among that of strands that were executors once.
 */
Test(strand_executor, one_that_stood_on_another_may_come_home_when_that_has_gone)
{
	enum { MANY = 1 << 16 };
	static tw_timer timers[MANY];
	struct strand_rig mine;
	struct noted due = NOTED(&mine, 1), later = NOTED(&mine, 2);
	tw_strand *upper, *lower;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 16;
	queue_executor_open(&mine.queue);
	rig_open(&mine.rig, &cfg);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, &mine.queue.base), 0);
	expect_eq(tw_strand_create(&lower, mine.rig.service, &mine.queue.base), 0);
	expect_eq(tw_strand_create(&upper, mine.rig.service, tw_strand_executor(lower)), 0);
	expect_eq(tw_strand_schedule(upper, MS, note_run, &due, NULL), 0);
	expect_eq(tw_strand_schedule(upper, 10 * MS, note_run, &later, NULL), 0);
	tw_strand_executor(mine.strand);
	expect_eq(tw_strand_destroy(mine.strand), 0);
	mine.strand = NULL;
	rig_advance(&mine.rig, 3 * MS);
	int filled = 0;
	while (filled < MANY &&
	       tw_schedule(mine.rig.service, HOUR, note_run, &later, &timers[filled]) == 0)
		filled++;
	strand_rig_pump(&mine);
	expect_eq(due.runs, 1);
	expect_eq(tw_strand_destroy(upper), 0);
	expect_eq(tw_strand_destroy(lower), 0);
	strand_rig_advance(&mine, 3 * MS);
	expect_eq(queue_executor_waiting(&mine.queue), 0);
	expect_eq(later.runs, 0);
	for (int i = 0; i < filled; i++)
		expect_eq(tw_cancel(mine.rig.service, timers[i]), TW_CANCELLED);
	strand_rig_close(&mine); /* the service is free to close */
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

Test(strand_executor, the_driver_runs_a_strand_on_the_inline_executor)
{
	struct strand_rig mine;
	struct noted a = NOTED(&mine, 1), b = NOTED(&mine, 2);
	queue_executor_open(&mine.queue);
	rig_open(&mine.rig, NULL);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, NULL), 0);
	noted_submit(&b, 2 * MS);
	noted_submit(&a, 0);
	expect_eq(mine.rig.ran, 0);
	rig_advance(&mine.rig, 5 * MS);
	expect_order(&mine, 1, 2);
	strand_rig_close(&mine);
}

/* What is refused comes a tick later. */
Test(strand_executor, refusals_lose_nothing)
{
	struct strand_rig mine;
	struct noted a = NOTED(&mine, 1), b = NOTED(&mine, 2);
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&mine.queue);
	cfg.executor = &mine.queue.base;
	rig_open(&mine.rig, &cfg);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, NULL), 0);
	noted_submit(&b, 4 * MS);
	mine.queue.refuse = 2;
	noted_submit(&a, 0);
	strand_rig_advance(&mine, 2 * MS + 1);
	mine.queue.refuse = 3;
	strand_rig_advance(&mine, 10 * MS);
	expect_order(&mine, 1, 2);
	strand_rig_close(&mine);
}
