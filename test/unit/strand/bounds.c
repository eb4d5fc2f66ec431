/*
 * How long a strand may hold up others, and be held up by others: time slices, executors that are
 * busy, refuse, or run tickets inside submit.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/eager_executor.h"
#include "test/support/strand_suite.h"

TestSuite(strand_bounds, .init = opened, .fini = closed, .timeout = 60);

/* ---------------------------------------------------------------------- slices */

static void take_two_ms(struct noted *noted)
{
	rig_advance(&noted->rig->rig, 2 * MS);
}

Test(strand_bounds, a_strand_gives_its_worker_back_after_five_milliseconds)
{
	struct noted tasks[8];
	for (int i = 0; i < 8; i++) {
		tasks[i] = NOTED(&rig, i);
		tasks[i].act = take_two_ms;
		noted_submit(&tasks[i], 0);
	}
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 3); /* 2, 4, 6 ms */
	expect_eq(queue_executor_waiting(&rig.queue), 1);
	queue_executor_run_next(&rig.queue);
	expect_eq(rig.rig.ran, 6);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 8);
	expect_ids_ascend(&rig.rig);
}

static void take_ten_ms(struct noted *noted)
{
	rig_advance(&noted->rig->rig, 10 * MS);
}

Test(strand_bounds, a_task_longer_than_the_slice_is_the_only_one_of_its_turn)
{
	struct noted tasks[3];
	for (int i = 0; i < 3; i++) {
		tasks[i] = NOTED(&rig, i);
		tasks[i].act = take_ten_ms;
		noted_submit(&tasks[i], 0);
	}
	for (size_t turn = 1; turn <= 3; turn++) {
		queue_executor_run_next(&rig.queue);
		expect_eq(rig.rig.ran, turn);
	}
	expect_eq(queue_executor_waiting(&rig.queue), 0);
}

/* ------------------------------------------------- the service's executor is busy */

Test(strand_bounds, delayed_tasks_do_not_wait_for_the_services_executor)
{
	struct strand_rig mine;
	struct queue_executor busy;
	struct noted task = NOTED(&mine, 1), series = NOTED(&mine, 2);
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&busy);
	queue_executor_open(&mine.queue);
	cfg.executor = &busy.base;
	rig_open(&mine.rig, &cfg);
	expect_eq(tw_strand_create(&mine.strand, mine.rig.service, &mine.queue.base), 0);
	noted_submit(&task, 10 * MS);
	noted_submit_every(&series, 10 * MS, 10 * MS);
	/* nobody runs the queue `busy` */
	strand_rig_advance(&mine, 30 * MS + 2 * mine.rig.tick_ns);
	expect_eq(queue_executor_waiting(&busy), 0);
	expect_eq(task.runs, 1);
	expect_eq(series.runs, 3);
	expect_le(task.ran_at_ns, RIG_START_NS + 10 * MS + 2 * mine.rig.tick_ns);
	strand_rig_close(&mine);
	queue_executor_close(&busy);
}

/* ------------------------------------------------------- the executor refuses */

Test(strand_bounds, a_refusing_executor_does_not_keep_the_service_from_closing)
{
	struct noted now = NOTED(&rig, 1), later = NOTED(&rig, 2), series = NOTED(&rig, 3);
	rig.queue.refuse = SIZE_MAX;
	noted_submit_released(&now, 0);
	noted_submit_released(&later, MS);
	noted_submit_every(&series, 0, MS);
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(rig.rig.ran, 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	struct noted *all[] = {&now, &later, &series};
	for (int i = 0; i < 3; i++) {
		expect_eq(all[i]->releases, 1);
		expect_eq(all[i]->fate, TW_FATE_CANCELLED);
	}
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, SECOND), 0);
	expect_eq(rig.rig.ran, 0);
}

Test(strand_bounds, a_refusing_executor_below_two_strands_does_not_keep_the_service_from_closing)
{
	struct noted now = NOTED(&rig, 1), below = NOTED(&rig, 2);
	tw_strand *upper;
	rig.queue.refuse = SIZE_MAX;
	expect_eq(tw_strand_create(&upper, rig.rig.service, tw_strand_executor(rig.strand)), 0);
	expect_eq(tw_strand_submit(upper, note_run, &now), 0);
	noted_submit_released(&below, 0);
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(tw_strand_destroy(upper), 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(below.releases, 1);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, SECOND), 0);
	expect_eq(rig.rig.ran, 0);
}

/* ------------------------------------------- the executor runs tickets inside submit */

enum { LINKS = 100000 };

static struct chain {
	struct strand_rig *rig;
	tw_strand *strands[3];
	bool submitting;
	int inside, links;
	uintptr_t lowest, highest; /* addresses of the runs' stack frames */
} chain;

static void run_link(void *arg);

static void submit_link(int number)
{
	bool outer = chain.submitting;
	chain.submitting = true;
	expect_eq(tw_strand_submit(chain.strands[number % 3], run_link, (void *)(intptr_t)number),
		  0);
	chain.submitting = outer;
}

static void run_link(void *arg)
{
	int number = (int)(intptr_t)arg;
	uintptr_t here = (uintptr_t)&number;
	chain.inside += chain.submitting;
	chain.links++;
	chain.lowest = here < chain.lowest ? here : chain.lowest;
	chain.highest = here > chain.highest ? here : chain.highest;
	if (number + 1 < LINKS)
		submit_link(number + 1);
}

Test(strand_bounds, nothing_runs_inside_submit_and_a_chain_over_strands_keeps_the_stack)
{
	chain = (struct chain){.rig = &rig, .lowest = UINTPTR_MAX};
	for (int i = 0; i < 3; i++)
		expect_eq(tw_strand_create(&chain.strands[i], rig.rig.service, &eager_executor), 0);
	submit_link(0);
	expect_eq(chain.links, 0);
	for (int advances = 0; chain.links < LINKS && advances < 2 * LINKS; advances++)
		tw_service_advance(rig.rig.service, TW_NO_LIMIT);
	expect_eq(chain.links, LINKS);
	expect_eq(chain.inside, 0);
	expect_le(chain.highest - chain.lowest, 64 * 1024);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_strand_destroy(chain.strands[i]), 0);
}

static void submit_delayed_link(struct noted *noted)
{
	chain.inside += chain.submitting;
	noted->answer = tw_strand_submit(noted->rig->strand, note_run, noted->other);
}

Test(strand_bounds, delayed_tasks_run_on_an_executor_that_runs_tickets_inside_submit)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	struct strand_rig mine = rig;
	expect_eq(tw_strand_create(&mine.strand, rig.rig.service, &eager_executor), 0);
	first.rig = &mine;
	first.act = submit_delayed_link;
	first.other = &second;
	expect_eq(tw_strand_schedule(mine.strand, 5 * MS, note_run, &first, NULL), 0);
	rig_advance(&rig.rig, 4 * MS);
	expect_eq(first.runs, 0);
	rig_advance(&rig.rig, 4 * MS);
	expect_eq(first.runs, 1);
	expect_eq(first.answer, 0);
	expect_eq(second.runs, 1);
	expect_eq(tw_strand_destroy(mine.strand), 0);
	free(mine.rig.events);
}
