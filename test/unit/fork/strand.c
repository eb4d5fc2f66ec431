/* A strand in a forked child refuses calls (test/contract has all). The parent's works on. */
#include <errno.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/inherited.h"
#include "test/support/strand_suite.h"

TestSuite(fork_strand, .timeout = 30);

static void check_in_child(void *arg)
{
	struct noted *noted = arg;
	tw_strand *strand = noted->rig->strand;
	tw_strand_task_id task = {7};
	child_eq(tw_strand_schedule(strand, 0, note_run, noted, &task), -EPERM);
	child_eq(task.id, 0);
	child_eq(tw_strand_close(strand, TW_FOREVER), -EPERM);
	child_eq(tw_strand_executor(strand) == NULL, 1);
	child_eq(queue_executor_run_next(&noted->rig->queue), -EPERM);
	if (CHILD_ALLOCATES) {
		child_eq(tw_strand_destroy(strand), 0);
		child_eq(tw_service_destroy(noted->rig->rig.service), 0);
	}
}

Test(fork_strand, a_child_is_refused_and_the_parent_untouched, .init = opened, .fini = closed)
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

Test(fork_strand, a_task_that_forks_is_refused_in_its_child, .init = opened, .fini = closed)
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
