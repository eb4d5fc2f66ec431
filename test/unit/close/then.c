/*
 * A close of the service and the completions of groups: each is called once, before close answers
 * 0.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

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
static const struct script scripts[] = {
    {"a close that drops",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drop; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a close that runs",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close run; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a close that drains",
     {{"group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drain; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"where the executor refuses",
     {{"given refused; group 0 1 2 3; timer 0 in=9 group=1; timer 1 in=9 group=2; then 0; then 1; "
       "then 2",
       "0 cancelled, 1 cancelled"},
      {"group_destroy 2; close drop; then 3; group_destroy 3",
       "done 0, done 1, done 2, ESHUTDOWN"}}},
    {"a member may end its group while a close runs it",
     {{"group 0; timer 0 in=1 group=0 {then 0}; timer 1 in=9 group=0; close run",
       "run 0 closing, 1 cancelled, 0 fired, done 0"}}},
};

Test(close_then, each_mode_calls_the_completions)
{
	PLAY(&timer_stage, NULL, scripts);
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
