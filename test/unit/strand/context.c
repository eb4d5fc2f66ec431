/*
 * The context of who submits goes with a strand's task, and is released once, whatever becomes of
 * the task.
 */
#include <errno.h>

#include "test/support/strands.h"

TestSuite(strand_context, .timeout = 30);

static struct strand_rig rig;
static int first, second, third, mine;

static void opened(void)
{
	strand_rig_open(&rig);
}

static void closed(void)
{
	expect_in_fini();
	tw_context_set(NULL);
	strand_rig_close(&rig);
}

struct seer {
	struct noted noted;
	void *in_run, *in_release;
};

static void see(struct noted *noted)
{
	((struct seer *)(void *)noted)->in_run = tw_context_get();
	tw_context_set(&mine); /* over with the run */
}

static void see_in_release(struct noted *noted)
{
	((struct seer *)(void *)noted)->in_release = tw_context_get();
}

#define SEER(id_)       \
	((struct seer){ \
	    .noted = {.rig = &rig, .id = (id_), .act = see, .act_in_release = see_in_release}})

static void submit_under(void *context, struct seer *seer, uint64_t delay_ns)
{
	tw_context_set(context);
	noted_submit_released(&seer->noted, delay_ns);
	tw_context_set(&mine);
}

/* Two immediate ones and one after 500 ms: in order, on one thread, each under its own. */
Test(strand_context, the_worked_check, .init = opened, .fini = closed)
{
	struct seer one = SEER(1), two = SEER(2), three = SEER(3);
	submit_under(&first, &one, 0);
	submit_under(&second, &two, 0);
	submit_under(&third, &three, 500 * MS);
	strand_rig_pump(&rig);
	expect_order(&rig, 1, 2);
	strand_rig_advance(&rig, 503 * MS);
	expect_order(&rig, 1, 2, 3);
	cr_assert_eq(one.in_run, &first);
	cr_assert_eq(two.in_run, &second);
	cr_assert_eq(three.in_run, &third);
	cr_assert_eq(three.in_release, &third);
	cr_assert_eq(tw_context_get(), &mine);
}

Test(strand_context, a_task_without_one_has_none, .init = opened, .fini = closed)
{
	struct seer one = SEER(1), two = SEER(2);
	one.in_run = two.in_run = &third;
	submit_under(NULL, &one, 0);
	submit_under(NULL, &two, 10 * MS);
	strand_rig_advance(&rig, 12 * MS);
	expect_order(&rig, 1, 2);
	cr_assert_null(one.in_run);
	cr_assert_null(two.in_run);
}

Test(strand_context, a_series_keeps_it_to_its_end, .init = opened, .fini = closed)
{
	struct seer series = SEER(1);
	tw_context_set(&first);
	noted_submit_every(&series.noted, 0, 10 * MS);
	tw_context_set(&mine);
	for (int run = 1; run <= 3; run++) {
		strand_rig_advance(&rig, 10 * MS);
		expect_ge(series.noted.runs, run);
		cr_assert_eq(series.in_run, &first);
		series.in_run = NULL;
	}
	expect_eq(tw_strand_cancel(rig.strand, series.noted.task), TW_CANCELLED);
}

Test(strand_context, surrounds_a_release_by_cancel_and_close, .init = opened, .fini = closed)
{
	struct seer queued = SEER(1), delayed = SEER(2), rest[2] = {SEER(3), SEER(4)};
	submit_under(&first, &queued, 0);
	submit_under(&first, &delayed, 10 * MS);
	submit_under(&second, &rest[0], 0);
	submit_under(&second, &rest[1], 10 * MS);
	expect_eq(tw_strand_cancel(rig.strand, queued.noted.task), TW_CANCELLED);
	cr_assert_eq(queued.in_release, &first);
	expect_eq(tw_strand_cancel(rig.strand, delayed.noted.task), TW_CANCELLED);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	tw_context_set(&third);
	expect_eq(tw_strand_submit(rig.strand, note_run, &rest[0].noted), -ESHUTDOWN);
}
