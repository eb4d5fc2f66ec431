/* Close and destroy of strands, and their errors. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/inherited.h"
#include "test/support/strands.h"

TestSuite(strand_close, .timeout = 30);
TestSuite(strand_close_create, .timeout = 30);
TestSuite(strand_close_fork, .timeout = 30);

static struct strand_rig rig;

static void opened(void)
{
	strand_rig_open(&rig);
}

static void closed(void)
{
	strand_rig_close(&rig);
}

/* -------------------------------------------------------------------- close -- */

Test(strand_close, cancels_all_that_has_not_run_and_refuses_what_comes, .init = opened,
     .fini = closed)
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

Test(strand_close, from_a_task_nothing_follows, .init = opened, .fini = closed)
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

Test(strand_close, a_series_that_closes_ends_as_cancelled, .init = opened, .fini = closed)
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

Test(strand_close, waiting_for_oneself_is_refused_and_changes_nothing, .init = opened,
     .fini = closed)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	first.act = close_and_wait;
	noted_submit(&first, 0);
	noted_submit(&second, 0);
	strand_rig_pump(&rig);
	expect_eq(first.answer, -EDEADLK);
	expect_order(&rig, 1, 2);
}

Test(strand_close, touches_no_other_strand, .init = opened, .fini = closed)
{
	tw_strand *other;
	struct noted task = NOTED(&rig, 1);
	expect_eq(tw_strand_create(&other, rig.rig.service, &rig.queue.base, NULL), 0);
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

Test(strand_close, a_release_cannot_submit_any_more, .init = opened, .fini = closed)
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
	strand_rig_open(&rig);
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
	strand_rig_close(&rig); /* the service is free to close */
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
		strand_rig_open(&rig);
		expect_eq(tw_strand_destroy(rig.strand), 0);
		rig.strand = NULL;
		task.act = destroy_own_and_close;
		tw_executor *executor = inlined ? tw_executor_inline() : &rig.queue.base;
		expect_eq(tw_strand_create(&strand, rig.rig.service, executor, NULL), 0);
		expect_eq(tw_strand_submit(strand, note_run, &task), 0);
		strand_rig_advance(&rig, MS);
		expect_eq(task.answer, -EDEADLK);
		expect_eq(task.runs, 1);
		strand_rig_close(&rig);
	}
}

Test(strand_close, what_is_handed_over_keeps_the_strand_and_its_service_until_it_has_been)
{
	struct noted task = NOTED(&rig, 1);
	strand_rig_open(&rig);
	noted_submit(&task, 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, MS), -ETIMEDOUT);
	struct tw_close_options at_once = {
	    .size = sizeof at_once, .timeout_ns = TW_FOREVER, .flags = TW_CLOSE_FLAG_NO_WAIT};
	expect_eq(tw_service_close_with(rig.rig.service, &at_once), -ETIMEDOUT);
	/* it is not closed */
	expect_eq(tw_schedule(rig.rig.service, MS, note_run, &task, NULL), 0);
	strand_rig_pump(&rig);
	expect_eq(rig.rig.ran, 0);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, 0), 0);
	strand_rig_close(&rig);
}

/* Its work waits for the driver, which is whoever closes. */
Test(strand_close, close_with_a_manual_drive_gets_through_with_what_a_destroyed_strand_left)
{
	struct noted task = NOTED(&rig, 1);
	tw_strand *strand;
	strand_rig_open(&rig);
	expect_eq(tw_strand_create(&strand, rig.rig.service, tw_executor_inline(), NULL), 0);
	expect_eq(tw_strand_submit(strand, note_run, &task), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.rig.ran, 0);
	strand_rig_close(&rig);
}

Test(strand_close, the_timer_of_a_destroyed_strand_is_gone)
{
	struct noted task = NOTED(&rig, 1);
	strand_rig_open(&rig);
	noted_submit(&task, MS);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	strand_rig_advance(&rig, 5 * MS);
	expect_eq(rig.rig.ran, 0);
	strand_rig_close(&rig);
}

/*
 * Its timer has run, and its work waits: nobody is to set the timer to what close is about to
 * cancel.
 */
Test(strand_close, leaves_no_timer_behind_when_some_tasks_have_come_due)
{
	struct noted due = NOTED(&rig, 1), later = NOTED(&rig, 2);
	strand_rig_open(&rig);
	noted_submit_released(&due, MS);
	noted_submit_released(&later, HOUR);
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(tw_strand_destroy(rig.strand), 0);
	rig.strand = NULL;
	expect_eq(due.fate, TW_FATE_CANCELLED);
	expect_eq(later.fate, TW_FATE_CANCELLED);
	expect_eq(due.releases + later.releases, 2);
	strand_rig_pump(&rig);
	strand_rig_close(&rig); /* the service is free to close */
}

Test(strand_close, service_is_busy_while_strands_live)
{
	strand_rig_open(&rig);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), -EBUSY);
	expect_eq(tw_service_destroy(rig.rig.service), -EBUSY);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, TW_FOREVER), -EBUSY);
	strand_rig_close(&rig);
}

/* --------------------------------------------------------------------- errors */

Test(strand_close_create, bad_input_is_refused, .init = opened, .fini = closed)
{
	tw_strand *out = (tw_strand *)7;
	struct tw_strand_config cfg = {.size = sizeof cfg};
	tw_executor none = {NULL};
	tw_service *service = rig.rig.service;
	expect_eq(tw_strand_create(NULL, service, NULL, NULL), -EINVAL);
	expect_eq(tw_strand_create(&out, NULL, NULL, NULL), -EINVAL);
	expect_eq(tw_strand_create(&out, service, &none, NULL), -EINVAL);
	cfg.flags = 2;
	expect_eq(tw_strand_create(&out, service, NULL, &cfg), -EINVAL);
	cfg.flags = 0;
	cfg.reserved = 1;
	expect_eq(tw_strand_create(&out, service, NULL, &cfg), -EINVAL);
	cfg.reserved = 0;
	cfg.flags = TW_STRAND_PINNED;
	expect_eq(tw_strand_create(&out, service, NULL, &cfg), -EINVAL); /* no pool */
	struct {
		struct tw_strand_config known;
		uint64_t tail;
	} newer = {{.size = sizeof newer}, 1};
	expect_eq(tw_strand_create(&out, service, NULL, &newer.known), -E2BIG);
	expect_eq((uintptr_t)out, 7);
}

Test(strand_close_create, closed_service_or_pool_is_refused)
{
	tw_strand *out;
	tw_service *service;
	tw_pool *pool;
	struct tw_service_config config = {
	    .size = sizeof config, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	struct tw_pool_config one = {.size = sizeof one, .workers = 1};
	expect_eq(tw_service_create(&service, &config), 0);
	expect_eq(tw_pool_create(&pool, &one), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_strand_create(&out, service, tw_pool_executor(pool), NULL), -ESHUTDOWN);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_strand_create(&out, service, NULL, NULL), -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(strand_close_create, null_is_refused_everywhere_but_in_destroy, .init = opened, .fini = closed)
{
	struct tw_strand_stats stats = {.size = sizeof stats};
	struct tw_strand_task spec = {.size = sizeof spec, .fn = note_run};
	tw_strand_task_id out = {7};
	expect_eq(tw_strand_schedule(NULL, 0, note_run, NULL, &out), -EINVAL);
	expect_eq(tw_strand_schedule(rig.strand, 0, NULL, NULL, &out), -EINVAL);
	expect_eq(tw_strand_submit_task(NULL, &spec, &out), -EINVAL);
	expect_eq(tw_strand_submit_task(rig.strand, NULL, &out), -EINVAL);
	expect_eq(out.id, 7);
	expect_eq(tw_strand_cancel(NULL, out), -EINVAL);
	expect_eq(tw_strand_cancel_wait(NULL, out, 0), -EINVAL);
	expect_eq(tw_strand_close(NULL, 0), -EINVAL);
	expect_eq(tw_strand_stats(NULL, &stats), -EINVAL);
	expect_eq(tw_strand_stats(rig.strand, NULL), -EINVAL);
	stats.size = sizeof(size_t);
	expect_eq(tw_strand_stats(rig.strand, &stats), -EINVAL);
	cr_assert_null(tw_strand_executor(NULL));
	expect_eq(tw_strand_destroy(NULL), 0);
}

Test(strand_close_create, bad_specs_are_refused, .init = opened, .fini = closed)
{
	struct tw_strand_task spec = {.size = sizeof spec, .fn = note_run};
	tw_strand_task_id out = {7};
	spec.size = sizeof(size_t);
	expect_eq(tw_strand_submit_task(rig.strand, &spec, &out), -EINVAL);
	spec.size = sizeof spec;
	spec.tolerance_ns = 1;
	expect_eq(tw_strand_submit_task(rig.strand, &spec, &out), -EINVAL);
	spec.period_ns = 1;
	spec.tolerance_ns = TW_MAX_DELAY_NS + 1;
	expect_eq(tw_strand_submit_task(rig.strand, &spec, &out), -ERANGE);
	struct {
		struct tw_strand_task known;
		uint64_t tail;
	} newer = {{.size = sizeof newer, .fn = note_run}, 1};
	expect_eq(tw_strand_submit_task(rig.strand, &newer.known, &out), -E2BIG);
	expect_eq(tw_strand_schedule(rig.strand, TW_MAX_DELAY_NS + 1, note_run, NULL, &out),
		  -ERANGE);
	expect_eq(out.id, 0);
	expect_eq(strand_stats(rig.strand).queued + strand_stats(rig.strand).delayed, 0);
}

static void submit_until_refused(uint64_t delay_ns, uint64_t period_ns)
{
	struct noted task = NOTED(&rig, 1);
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = note_run,
				      .arg = &task,
				      .delay_ns = delay_ns,
				      .period_ns = period_ns,
				      .release = note_release};
	int accepted = 0, r;
	for (long nth = 0; nth < 20; nth++) {
		tw_strand_task_id out = {7};
		faults_arm(nth, false);
		r = tw_strand_submit_task(rig.strand, &spec, &out);
		bool refused = faults_disarm();
		if (!refused)
			expect_eq(r, 0);
		expect_eq(r == 0, out.id != 0);
		cr_assert(r == 0 || r == -ENOMEM || r == -EAGAIN);
		accepted += r == 0;
	}
	expect_eq(strand_stats(rig.strand).queued + strand_stats(rig.strand).delayed, accepted);
	expect_eq(tw_strand_close(rig.strand, 0), 0);
	expect_eq(task.releases, accepted);
}

Test(strand_close_create, want_of_memory_refuses_a_task_and_changes_nothing, .init = opened,
     .fini = closed)
{
	submit_until_refused(0, 0);
}

Test(strand_close_create, want_of_memory_refuses_a_delayed_task, .init = opened, .fini = closed)
{
	submit_until_refused(MS, 0);
}

Test(strand_close_create, want_of_memory_refuses_a_series, .init = opened, .fini = closed)
{
	submit_until_refused(0, MS);
}

Test(strand_close_create, want_of_memory_leaves_nothing_behind)
{
	struct strand_rig mine;
	strand_rig_open(&mine);
	for (long nth = 0; nth < 4; nth++) {
		tw_strand *out;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_strand_create(&out, mine.rig.service, NULL, NULL);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			expect_eq(tw_strand_destroy(out), 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(faults_outstanding(), before);
	}
	strand_rig_close(&mine);
}

Test(strand_close_create, a_million_idle_strands_take_128_bytes_each)
{
	expect_le(sizeof(void *) * 16, 128);
	struct strand_rig mine;
	strand_rig_open(&mine);
	tw_strand *strands[100];
	long before = faults_outstanding();
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_create(&strands[i], mine.rig.service, NULL, NULL), 0);
	/* one block each, whose size the compiler checks */
	expect_eq(faults_outstanding() - before, 100);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	expect_eq(faults_outstanding(), before);
	strand_rig_close(&mine);
}

/* ----------------------------------------------------------------------- fork */

static void check_in_child(void *arg)
{
	struct noted *noted = arg;
	tw_strand *strand = noted->rig->strand, *out;
	tw_strand_task_id task = {7};
	struct tw_strand_task spec = {.size = sizeof spec, .fn = note_run};
	struct tw_strand_stats stats = {.size = sizeof stats};
	child_eq(tw_strand_create(&out, noted->rig->rig.service, NULL, NULL), -EPERM);
	child_eq(tw_strand_schedule(strand, 0, note_run, noted, &task), -EPERM);
	child_eq(task.id, 0);
	child_eq(tw_strand_schedule(strand, MS, note_run, noted, NULL), -EPERM);
	child_eq(tw_strand_submit_task(strand, &spec, NULL), -EPERM);
	child_eq(tw_strand_cancel(strand, noted->task), -EPERM);
	child_eq(tw_strand_cancel_wait(strand, noted->task, TW_FOREVER), -EPERM);
	child_eq(tw_strand_close(strand, 0), -EPERM);
	child_eq(tw_strand_close(strand, TW_FOREVER), -EPERM);
	child_eq(tw_strand_stats(strand, &stats), -EPERM);
	child_eq(tw_strand_executor(strand) == NULL, 1);
	child_eq(queue_executor_run_next(&noted->rig->queue), -EPERM);
	if (CHILD_ALLOCATES) {
		child_eq(tw_strand_destroy(strand), 0);
		child_eq(tw_service_destroy(noted->rig->rig.service), 0);
	}
}

Test(strand_close_fork, a_child_is_refused_and_the_parent_untouched, .init = opened, .fini = closed)
{
	struct noted now = NOTED(&rig, 1), later = NOTED(&rig, 2);
	noted_submit(&now, 0);
	noted_submit(&later, MS);
	expect_in_child(check_in_child, &now);
	strand_rig_advance(&rig, 3 * MS);
	expect_order(&rig, 1, 2);
}

static pid_t forked;

static void fork_here(struct noted *noted)
{
	forked = child_fork();
	if (forked)
		return;
	child_eq(tw_strand_submit(noted->rig->strand, note_run, noted), -EPERM);
	child_eq(tw_strand_close(noted->rig->strand, 0), -EPERM);
	_exit(0);
}

Test(strand_close_fork, a_task_that_forks_is_refused_in_its_child, .init = opened, .fini = closed)
{
	struct noted first = NOTED(&rig, 1), second = NOTED(&rig, 2);
	first.act = fork_here;
	noted_submit(&first, 0);
	noted_submit(&second, 0);
	queue_executor_run_next(&rig.queue);
	expect_child_well(forked);
	strand_rig_pump(&rig);
	expect_order(&rig, 1, 2);
}
