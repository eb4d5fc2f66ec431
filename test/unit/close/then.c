/*
 * A close of the service and the completions of groups: each is called once, before close answers
 * 0.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(close_then, .init = open_rig, .fini = close_rig, .timeout = 60);

struct ending {
	tw_group group;
	sem_t called;
	atomic_int calls;
	atomic_int answer;
	pthread_t called_on;
	sem_t begun, go_on;
};

static void complete(void *arg)
{
	struct ending *ending = arg;
	ending->called_on = pthread_self();
	ending->calls++;
	sem_post(&ending->called);
}

static void ending_open(struct ending *ending)
{
	*ending = (struct ending){.group = group_of(&rig), .answer = -1};
	sem_init(&ending->called, 0, 0);
	sem_init(&ending->begun, 0, 0);
	sem_init(&ending->go_on, 0, 0);
}

static int end(struct ending *ending)
{
	int answer = tw_group_close_then(rig.service, ending->group, complete, ending);
	ending->answer = answer;
	return answer;
}

/* Nobody has driven the service since: close calls what it finds. */
static void close_with_completions(enum tw_close_mode mode, bool refuses)
{
	if (refuses)
		reopen_on_queue();
	else
		reopen_rig(NULL);
	queue.refuse = SIZE_MAX;
	struct ending empty, pending, destroyed, open;
	ending_open(&empty);
	ending_open(&pending);
	ending_open(&destroyed);
	ending_open(&open);
	struct probe members[2] = {PROBE(&rig, 1), PROBE(&rig, 2)};
	expect_eq(schedule_in(&members[0], pending.group, HOUR, true), 0);
	expect_eq(schedule_in(&members[1], destroyed.group, HOUR, true), 0);
	expect_eq(end(&empty), 0);
	expect_eq(end(&pending), 0);
	expect_eq(end(&destroyed), 0);
	expect_eq(tw_group_destroy(rig.service, destroyed.group), 0);
	expect_eq(tw_service_close(rig.service, mode, TW_FOREVER), 0);
	expect_eq(empty.calls, 1);
	expect_eq(pending.calls, 1);
	expect_eq(destroyed.calls, 1);
	expect_released(&members[0], TW_FATE_CANCELLED);
	expect_released(&members[1], TW_FATE_CANCELLED);
	expect_eq(end(&open), -ESHUTDOWN);
	expect_eq(open.calls, 0);
	expect_eq(tw_group_destroy(rig.service, open.group), 0);
	reopen_rig(NULL);
	expect_eq(empty.calls + pending.calls + destroyed.calls, 3);
}

Test(close_then, each_mode_calls_the_completions)
{
	close_with_completions(TW_CLOSE_DROP, false);
	close_with_completions(TW_CLOSE_RUN, false);
	close_with_completions(TW_CLOSE_DRAIN, false);
}

Test(close_then, close_calls_what_the_executor_refuses)
{
	close_with_completions(TW_CLOSE_DROP, true);
}

static void end_in_callback(struct probe *probe)
{
	end((struct ending *)(void *)probe->other);
}

/* TW_CLOSE_RUN runs the member, which ends its group. */
Test(close_then, a_member_may_end_its_group_while_close_runs_it)
{
	struct ending ending;
	ending_open(&ending);
	struct probe member = PROBE(&rig, 1), other = PROBE(&rig, 2);
	member.act = end_in_callback;
	member.other = (struct probe *)(void *)&ending;
	expect_eq(schedule_in(&member, ending.group, MS, true), 0);
	expect_eq(schedule_in(&other, ending.group, HOUR, true), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(ending.answer, 0);
	expect_eq(ending.calls, 1);
	expect_eq(member.releases + other.releases, 2);
}

/* ------------------------------------------------------------ with a worker */

static void hold_then_end(struct probe *probe)
{
	struct ending *ending = (struct ending *)(void *)probe->other;
	sem_post(&ending->begun);
	while (sem_wait(&ending->go_on)) {
	}
	end(ending);
}

static void open_with_worker(struct ending *ending, struct probe *member,
			     void (*act)(struct probe *))
{
	struct tw_service_config cfg = rig_config();
	cfg.executor = NULL;
	cfg.workers = 1;
	reopen_rig(&cfg);
	ending_open(ending);
	*member = PROBE(&rig, 1);
	member->act = act;
	member->other = (struct probe *)(void *)ending;
	expect_eq(schedule_in(member, ending->group, MS, true), 0);
	rig_advance(&rig, MS);
	while (sem_wait(&ending->begun)) {
	}
}

/* A close whose time is up has called nothing, and the next one does. */
Test(close_then, a_close_that_times_out_leaves_it_pending)
{
	struct ending ending;
	struct probe member;
	open_with_worker(&ending, &member, hold_then_end);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(ending.calls, 0);
	sem_post(&ending.go_on);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(ending.answer, 0);
	expect_eq(ending.calls, 1);
	expect_eq(member.releases, 1);
}

/*
 * The only worker waits for the completion of a group: close calls it while it waits for that
 * worker.
 */
static void end_another_and_await(struct probe *probe)
{
	struct ending *ending = (struct ending *)(void *)probe->other;
	struct ending another;
	ending_open(&another);
	ending->answer = end(&another);
	sem_post(&ending->begun);
	while (sem_wait(&another.called)) {
	}
	ending->calls = another.calls;
	ending->called_on = another.called_on;
}

Test(close_then, close_does_not_wait_for_a_callback_that_waits_for_a_completion)
{
	struct ending ending;
	struct probe member;
	open_with_worker(&ending, &member, end_another_and_await);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(ending.answer, 0);
	expect_eq(ending.calls, 1);
	cr_assert(pthread_equal(ending.called_on, pthread_self()));
}
