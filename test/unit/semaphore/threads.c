/*
 * The semaphore with threads that wait. No test waits for time to pass, but the last, which is
 * content with any.
 */
#include <errno.h>

#include "test/support/semaphore_script.h"
#include "test/support/semaphore_suite.h"

TestSuite(semaphore_threads, .fini = close_left, .timeout = 60);

static const struct script scripts[] = {
    /* waiting */
    {"both kinds are served in the order they came, one for each release",
     {{"acquire 1; thread 0; wait 1 2; thread 3; wait 4; thread 5", ""},
      {"stats waiters waiting_threads; release 1; joined 0; stats waiters available",
       "waiters=6, waiting_threads=3, 0 has it, waiters=5, available=0"},
      {"release 1; stats waiters", "waiters=4, run 1"},
      {"release 1; stats waiters", "waiters=3, run 2"},
      {"release 1; joined 3; stats waiters available", "3 has it, waiters=2, available=0"},
      {"release 1; stats waiters", "waiters=1, run 4"},
      {"release 1; joined 5; release 1; stats available", "5 has it, available=1"}}},
    {"nobody overtakes a thread that waits, whether it has woken up or not",
     {{"acquire 1; thread 1; release 1; acquire 1; joined 1; release 1; acquire 1",
       "EAGAIN, 1 has it"}}},
    {"growth starts threads",
     {{"given capacity=0; thread 0; thread 1; thread 2; capacity 1; joined 0; stats waiters",
       "0 has it, waiters=2"},
      {"capacity 2; joined 1; release 1; joined 2", "1 has it, 2 has it"}}},
    {"destroy is refused while a thread waits",
     {{"given capacity=0; thread 1; destroy; capacity 1; joined 1", "EBUSY, 1 has it"}}},
    /* refused functions */
    {"a refused function lets a thread go first, and is first in the next tick",
     {{"acquire 1; wait 1; thread 3; wait 2; refuse 1; release 1; joined 3", "3 has it"},
      {"stats refused waiters; drive 1; release 1", "refused=1, waiters=2, @1 run 1"},
      {"release 1", "run 2"},
      {"release 1; stats available", "available=1"}}},
    {"functions behind a refused one wait with it, and keep their order",
     {{"acquire 1; wait 1 2; thread 3; refuse 1; release 1", ""},
      {"stats refused waiters held; drive 1; release 1",
       "refused=1, waiters=3, held=0, @1 run 1, run 2"},
      {"release 1; joined 3; release 1; stats available", "3 has it, available=1"}}},
    {"one that comes after the refusal goes before the function",
     {{"refuse 1; wait 1; stats held waiters; acquire 1; refuse -1; drive 2; release 1; drive 2",
       "held=0, waiters=1"},
      {"stats held waiters; refuse 0; drive 1", "@4 held=0, waiters=1, @5 run 1"},
      {"release 1", ""}}},
    {"a refused function stays when the last thread has left the line",
     {{"acquire 1; wait 1; thread 2; refuse 1; release 1; joined 2; stats waiters",
       "2 has it, waiters=1"},
      {"drive 1; release 1", "@1 run 1"},
      {"release 1; stats available", "available=1"}}},
    {"functions that are refused together keep their order",
     {{"given capacity=2; acquire 2; wait 1 2; thread 3; thread 4; refuse 2; capacity 4; joined 3; "
       "joined 4",
       "3 has it, 4 has it"},
      {"stats waiters; drive 1; release 1", "waiters=2, @1 run 1"},
      {"release 1", "run 2"},
      {"release 2; stats held", "held=2"}}},
    {"a refused function gives its permits to threads",
     {{"given capacity=4; acquire 4; wait 1 permits=4; thread 2 permits=2; thread 3 permits=2; "
       "refuse -1",
       ""},
      {"release 4; joined 2; joined 3; stats waiters; refuse 0; drive 1; release 4",
       "2 has it, 3 has it, waiters=1, @1 run 1"},
      {"release 4", ""}}},
    {"permits that do for no thread wait for the refused function",
     {{"given capacity=3; acquire 3; wait 1; thread 2 permits=2; refuse 1; release 1; stats "
       "handed; drive 2",
       "handed=0, @2 run 1"},
      {"release 3; joined 2; release 2", "2 has it"}}},
};

Test(semaphore_threads, scripts)
{
	PLAY(&semaphore_stage, NULL, scripts);
}

static tw_waiter cancelled_in_submit;

static int cancel_and_refuse(tw_executor *self, tw_batch *batch, size_t n)
{
	if (tw_semaphore_cancel(permits, cancelled_in_submit) == TW_CANCELLED)
		return -EAGAIN;
	return queue.base.ops->submit(&queue.base, batch, n); /* what is offered again */
}

static void expect_last(unsigned calls, int number)
{
	queue_executor_run_all(&queue);
	expect_eq(called, calls);
	expect_eq(order[calls - 1], number);
	expect_eq(gauges().waiters, 2 - calls);
	expect_eq(gauges().handed, 0);
}

/* Its permit goes on, and nobody takes its place in line again. */
Test(semaphore_threads, a_function_that_is_cancelled_while_it_is_refused_does_not_come_back)
{
	static const struct tw_executor_ops ops = {.size = sizeof ops, .submit = cancel_and_refuse};
	tw_executor executor = {&ops};
	open_with(1);
	expect_eq(tw_semaphore_destroy(permits), 0);
	expect_eq(tw_semaphore_create(&permits, rig.service, &executor, 1), 0);
	acquire(1);
	cancelled_in_submit = wait_as(1);
	wait_as(2);
	wait_as(3);
	release(1); /* to the first; cancelled on its way, it passes it on to the second */
	expect_last(1, 2);
	release(1);
	expect_last(2, 3);
	release(1);
	rig_advance(&rig, 2 * MS);
	expect_last(2, 3);
}

/* Real time, bounded from below. */
Test(semaphore_threads, too_late_is_told_not_before_the_timeout_and_leaves_the_line)
{
	open_with(1);
	acquire(1);
	tw_clock *clock = tw_clock_monotonic();
	uint64_t start_ns = tw_clock_now(clock);
	expect_eq(tw_semaphore_acquire(permits, 1, 2 * MS), -ETIMEDOUT);
	expect_ge(tw_clock_now(clock) - start_ns, 2 * MS);
	expect_eq(gauges().waiters, 0);
	release(1);
	expect_eq(gauges().available, 1);
}
