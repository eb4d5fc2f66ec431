/*
 * How long a strand may hold up others, and be held up by others: time slices, executors that are
 * busy, refuse, or run tickets inside submit.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/eager_executor.h"
#include "test/support/strand_script.h"
#include "test/support/strand_suite.h"

TestSuite(strand_bounds, .init = opened, .fini = closed, .timeout = 60);

static const struct script bounds[] = {
    {"a strand gives its worker back after five milliseconds",
     {{"submit 0..7 stays=2; next; waiting; hold", "run 0, @2 run 1, @4 run 2, @6 1 wait"},
      {"next; hold", "run 3, @8 run 4, @10 run 5"},
      {"pump", "@12 run 6, @14 run 7"}}},
    {"a task longer than the slice is the only one of its turn",
     {{"submit 0..2 stays=10; next; hold", "run 0"},
      {"next; hold", "@10 run 1"},
      {"next; waiting", "@20 run 2, @30 0 wait"}}},
    {"delayed tasks do not wait for the service's executor",
     {{"given stuck; submit 1 delay=10; submit 2 every=10 first=10; advance 32; cancel 2",
       "@10 run 1, run 2, @20 run 2, @30 run 2, @32 2 cancelled, CANCELLED"}}},
    {"a refusing executor does not keep the service from closing",
     {{"refuse -1; submit 1; submit 2 delay=1; submit 3 every=1; advance 5", ""},
      {"destroy; close_service 1000", "@5 1 cancelled, 3 cancelled, 2 cancelled"}}},
    {"a refusing executor below two strands does not either",
     {{"refuse -1; upper 1; submit 2; advance 5", ""},
      {"destroy_others; destroy; close_service 1000", "@5 1 cancelled, 2 cancelled"}}},
};

Test(strand_bounds, bounds)
{
	PLAY(&strand_stage, NULL, bounds);
}

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
