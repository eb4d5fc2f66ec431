/*
 * A callback that forks and returns, in the middle of a call of the layers on the test's own thread: in the child the call answers -EPERM, and runs nothing
 * of what was behind; in the parent it goes on.
 */
#include <errno.h>
#include <unistd.h>

#include "test/support/actions.h"
#include "test/support/child.h"
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(fork_inside_layers, .timeout = 60);

static pid_t child, tests_process;
static int ran_behind;

static void fork_here(void)
{
	child = child_fork();
}

static int run_and_fork(tw_action *action, void *state)
{
	(void)action, (void)state;
	fork_here();
	return 0;
}

static int run_behind(tw_action *action, void *state)
{
	(void)action, (void)state;
	if (getpid() != tests_process)
		_exit(77); /* the child goes on with the parent's work */
	ran_behind++;
	return 0;
}

static int run_and_fail(tw_action *action, void *state)
{
	(void)action, (void)state;
	return 7;
}

static void fork_when_told(void *arg, tw_action *action, int failure, size_t closed)
{
	(void)arg, (void)action, (void)failure, (void)closed;
	fork_here();
}

static void callback_that_forks(void *arg)
{
	(void)arg;
	fork_here();
}

static void release_that_forks(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	fork_here();
}

/* The child ends here. */
static void expect_eperm_in_the_child(int64_t answer)
{
	if (child == 0) {
		child_eq(answer, -EPERM);
		_exit(0);
	}
	cr_assert(answer >= 0, "%lld", (long long)answer);
	expect_child_well(child);
	child = -1;
}

/* --------------------------------------------------------------------- actions */

struct pair {
	tw_action *first, *behind;
};

static struct pair arm_two(tw_action_scheduler *scheduler, tw_action_fn *first, uint64_t delay_ns)
{
	struct pair pair;
	int error;
	tests_process = getpid();
	ran_behind = 0;
	expect_eq(tw_action_create(&pair.first, scheduler, first), 0);
	expect_eq(tw_action_create(&pair.behind, scheduler, run_behind), 0);
	tw_action_arm(pair.first, NULL, delay_ns, &error);
	expect_eq(error, 0);
	tw_action_arm(pair.behind, NULL, delay_ns, &error);
	expect_eq(error, 0);
	return pair;
}

static void put_away(tw_action_scheduler *scheduler, struct pair pair)
{
	expect_ge(tw_action_destroy(pair.first), 0);
	expect_ge(tw_action_destroy(pair.behind), 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
}

static tw_action_scheduler *asap_by_caller(void)
{
	return scheduler_of(&(struct tw_action_config){
	    .size = sizeof(struct tw_action_config), .kind = TW_ACTION_ASAP, .flags = TW_ACTION_BY_CALLER});
}

Test(fork_inside_layers, flush_of_a_batch)
{
	tw_action_scheduler *asap = asap_by_caller();
	struct pair pair = arm_two(asap, run_and_fork, 0);
	expect_eperm_in_the_child(tw_action_flush(asap));
	expect_eq(ran_behind, 1);
	put_away(asap, pair);
}

Test(fork_inside_layers, run_of_one_action)
{
	tw_action_scheduler *asap = asap_by_caller();
	struct pair pair = arm_two(asap, run_and_fork, 0);
	expect_eperm_in_the_child(tw_action_run(pair.first, NULL));
	expect_eq(tw_action_flush(asap), 0);
	expect_eq(ran_behind, 1);
	put_away(asap, pair);
}

Test(fork_inside_layers, advance_of_virtual_time)
{
	struct tw_action_config config = {.size = sizeof config, .kind = TW_ACTION_VIRTUAL};
	tw_action_scheduler *virtual = scheduler_of(&config);
	struct pair pair = arm_two(virtual, run_and_fork, 5 * MS);
	expect_eperm_in_the_child(tw_action_advance(virtual, 10 * MS));
	expect_eq(ran_behind, 1);
	put_away(virtual, pair);
}

/* What a failing run closes is told to a function of the user's, which forks. */
static void fork_in_failed(enum tw_action_kind kind, uint64_t delay_ns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct tw_action_config config = {
	    .size = sizeof config, .kind = kind, .service = rig.service, .failed = fork_when_told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	struct pair pair = arm_two(scheduler, run_and_fail, delay_ns);
	expect_eperm_in_the_child(tw_clock_manual_advance_by(rig.clock, SECOND));
	put_away(scheduler, pair);
	rig_close(&rig);
}

Test(fork_inside_layers, told_of_a_failure)
{
	fork_in_failed(TW_ACTION_ASAP, 0);
	fork_in_failed(TW_ACTION_FRAME, 0);
	fork_in_failed(TW_ACTION_ASYNC, MS);
}

/* The same of a timer that its executor refused: whoever claims it ends it. */
Test(fork_inside_layers, told_of_a_loss)
{
	struct rig rig;
	struct queue_executor queue;
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&queue);
	cfg.executor = &queue.base;
	cfg.on_refused = TW_REFUSED_DROP;
	rig_open(&rig, &cfg);
	struct tw_action_config config = {
	    .size = sizeof config, .kind = TW_ACTION_ASYNC, .service = rig.service, .failed = fork_when_told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	tw_action *action;
	int error;
	expect_eq(tw_action_create(&action, scheduler, run_and_fail), 0);
	tw_action_arm(action, NULL, MS, &error);
	expect_eq(error, 0);
	queue.refuse = 1;
	rig_advance(&rig, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 1);
	expect_eperm_in_the_child(queue_executor_run_next(&queue));
	expect_eq(action_stats(scheduler).refused, 1);
	expect_ge(tw_action_destroy(action), 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* ---------------------------------------------------------------------- others */

static void mark_behind(void *arg)
{
	run_behind(NULL, arg);
}

Test(fork_inside_layers, pump_of_a_manual_executor)
{
	struct rig rig;
	tw_manual *manual;
	expect_eq(tw_manual_create(&manual, NULL), 0);
	struct tw_service_config cfg = rig_config();
	cfg.executor = tw_manual_executor(manual);
	rig_open(&rig, &cfg);
	tests_process = getpid();
	ran_behind = 0;
	expect_eq(tw_schedule(rig.service, MS, mark_behind, NULL, NULL), 0); /* in front of it, in fact */
	expect_eq(tw_schedule(rig.service, MS, callback_that_forks, NULL, NULL), 0);
	expect_eq(tw_schedule(rig.service, MS, mark_behind, NULL, NULL), 0);
	rig_advance(&rig, MS);
	expect_eperm_in_the_child(tw_manual_pump(manual, TW_NO_LIMIT));
	expect_eq(ran_behind, 2);
	rig_close(&rig);
	expect_eq(tw_manual_destroy(manual), 0);
}

Test(fork_inside_layers, wait_for_a_group_that_settles_it)
{
	struct rig rig;
	tw_group group;
	rig_open(&rig, NULL);
	expect_eq(tw_group_create(rig.service, &group), 0);
	struct tw_task task = {.size = sizeof task,
			       .fn = callback_that_forks,
			       .when_ns = SECOND,
			       .release = release_that_forks,
			       .group = group};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	expect_eperm_in_the_child(tw_group_cancel_wait(rig.service, group, TW_FOREVER));
	expect_eq(tw_group_destroy(rig.service, group), 0);
	rig_close(&rig);
}
