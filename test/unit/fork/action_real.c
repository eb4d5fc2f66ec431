/*
 * A run of an action forks, on real threads and for each kind. Its child is refused by the
 * scheduler and calls _exit. The parent notices nothing.
 */
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test/support/actions.h"
#include "test/support/child.h"
#include "test/support/shot.h"

TestSuite(fork_action_real, .timeout = 60);

enum { BEHIND = 30 };

/* What a forking run leaves behind for the test's thread. */
struct forking {
	tw_action_scheduler *scheduler;
	tw_action *action, *behind[BEHIND];
	atomic_int child, runs, behind_runs;
};

static void check_in_child(const struct forking *f)
{
	struct tw_action_scheduler_stats stats = {.size = sizeof stats};
	child_eq(tw_action_schedule(f->action, NULL, 0), -EPERM);
	child_eq(tw_action_close(f->action, 0), -EPERM);
	child_eq(tw_action_scheduler_flush(f->scheduler), -EPERM);
	child_eq(tw_action_scheduler_stats(f->scheduler, &stats), -EPERM);
	child_eq(tw_action_scheduler_destroy(f->scheduler), -EBUSY);
	child_eq(tw_action_destroy(f->action), TW_GONE);
}

static int run_and_fork(tw_action *action, void *state)
{
	struct forking *f = state;
	(void)action;
	f->runs++;
	pid_t child = child_fork();
	if (child == 0) {
		check_in_child(f);
		_exit(0);
	}
	f->child = child;
	return 0;
}

static int count_behind(tw_action *action, void *state)
{
	struct forking *f = state;
	(void)action;
	f->behind_runs++;
	return 0;
}

/*
 * Arms all actions together, so that later ones share a batch, or a flush, with the one that forks.
 */
static void arm_all(struct forking *f)
{
	int error;
	expect_eq(tw_action_create(&f->action, f->scheduler, run_and_fork, NULL), 0);
	error = tw_action_schedule(f->action, f, 0);
	for (int i = 0; i < BEHIND; i++) {
		expect_eq(tw_action_create(&f->behind[i], f->scheduler, count_behind, NULL), 0);
		error = tw_action_schedule(f->behind[i], f, 0);
		expect_eq(error, 0);
	}
}

static void fork_in_a_run(enum tw_action_kind kind)
{
	tw_service *service = open_service(2);
	struct forking f = {.scheduler = scheduler_on(service, kind)};
	arm_all(&f);
	while (!f.child || f.behind_runs < BEHIND)
		sched_yield();
	expect_child_well(f.child);
	expect_eq(f.runs, 1);
	expect_eq(f.behind_runs, (int)BEHIND);
	tw_action_destroy(f.action);
	for (int i = 0; i < BEHIND; i++)
		tw_action_destroy(f.behind[i]);
	expect_eq(tw_action_scheduler_destroy(f.scheduler), 0);
	close_service(service);
}

static void fork_again_and_again(enum tw_action_kind kind)
{
	for (int i = 0; i < 6; i++)
		fork_in_a_run(kind);
}

Test(fork_action_real, async_run_that_forks)
{
	fork_again_and_again(TW_ACTION_KIND_ASYNC);
}

Test(fork_action_real, asap_run_that_forks)
{
	fork_again_and_again(TW_ACTION_KIND_ASAP);
}

Test(fork_action_real, frame_run_that_forks)
{
	fork_again_and_again(TW_ACTION_KIND_FRAME);
}

/* A trampoline runs on the thread that arms. */
Test(fork_action_real, queue_run_that_forks)
{
	for (int i = 0; i < 4; i++) {
		struct tw_action_scheduler_config config = {.size = sizeof config,
							    .kind = TW_ACTION_KIND_QUEUE};
		struct forking f = {.scheduler = scheduler_of(&config)};
		int error = 1;
		expect_eq(tw_action_create(&f.action, f.scheduler, run_and_fork, NULL), 0);
		expect_eq(tw_action_create(&f.behind[0], f.scheduler, count_behind, NULL), 0);
		error = tw_action_schedule(f.action, &f, 0);
		expect_eq(error, 0);
		error = tw_action_schedule(f.behind[0], &f, 0);
		expect_eq(f.behind_runs, 1);
		expect_child_well(f.child);
		tw_action_destroy(f.action);
		tw_action_destroy(f.behind[0]);
		expect_eq(tw_action_scheduler_destroy(f.scheduler), 0);
	}
}
