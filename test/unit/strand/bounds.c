/*
 * How long a strand may hold up others, and be held up by others: time slices, executors that are
 * busy, refuse, or run tickets inside submit.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/eager_executor.h"
#include "test/support/strand_suite.h"

TestSuite(strand_bounds, .init = opened, .fini = closed, .timeout = 60);

static void submit_delayed_link(struct noted *noted)
{
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
