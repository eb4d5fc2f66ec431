/* The semaphore, on one thread: permits, functions that wait, capacity, what is refused. */
#include <errno.h>

#include "test/support/semaphore_script.h"
#include "test/support/semaphore_suite.h"

TestSuite(semaphore, .fini = close_left);

static const struct script scripts[] = {
    /* permits */
    {"of capacity none: it gives out nothing and takes nothing, with a waiter too",
     {{"given capacity=0; acquire 1; release 1; wait 1; release 1", "EAGAIN, EOVERFLOW, EOVERFLOW"},
      {"cancel 1", "CANCELLED"}}},
    {"of the largest capacity",
     {{"given capacity=2147483647; acquire 1; acquire 1; stats capacity available; capacity 0; "
       "stats debt",
       "capacity=2147483647, available=2147483645, debt=2"},
      {"capacity 2147483647; release 2; stats available; release 1",
       "available=2147483647, EOVERFLOW"}}},
    {"a function gets an available permit on the executor, and holds it until it is given back",
     {{"wait 1; stats available handed; -", "available=0, handed=1, -, run 1"},
      {"stats handed held; release 1", "handed=0, held=1"}}},
    {"a release hands to the oldest or adds one, never both; not inside of it",
     {{"acquire 1; wait 1; wait 2; stats waiters; release 1; stats available waiters; -",
       "waiters=2, available=0, waiters=1, -, run 1"},
      {"acquire 1; release 1", "EAGAIN, run 2"},
      {"stats available; release 1; stats available; waiting",
       "available=0, available=1, 0 wait"}}},
    {"inline functions run in the next turn",
     {{"given inline; wait 1; -; drive 0; release 1", "-, run 1"}}},
    {"a function that the executor gives back is offered again",
     {{"wait 1; give_back; drive 1", "@1 run 1"}, {"release 1", ""}}},
    {"a function may release, and wait again",
     {{"wait 0..4 {release 1}", "run 0, run 1, run 2, run 3, run 4"},
      {"stats available", "available=1"}}},
    /* cancels */
    {"a cancelled hand-over goes to the next waiter",
     {{"acquire 1; wait 1 2; release 1; cancel 1; cancel 1", "CANCELLED, GONE, run 2"},
      {"stats held; release 1; stats available", "held=1, available=1"}}},
    {"a cancelled hand-over with nobody in line comes back; its executor has it still",
     {{"wait 1; cancel 1; stats available handed; destroy",
       "CANCELLED, available=1, handed=1, EBUSY"}}},
    {"a running function is told so, and keeps its permit",
     {{"wait 1 {cancel 1}", "run 1, RUNNING"},
      {"stats held; cancel 1; stats held; release 1", "held=1, GONE, held=1"}}},
    {"a refused function can be cancelled",
     {{"refuse 1; wait 1; cancel 1; stats available; drive 1", "CANCELLED, available=1"}}},
    {"a cancelled hand-over pays a debt",
     {{"given capacity=2; acquire 1; wait 1; capacity 1; stats debt; cancel 1; stats debt "
       "available",
       "debt=1, CANCELLED, debt=0, available=0"},
      {"release 1; stats available", "available=1"}}},
    {"a cancelled hand-over returns all its permits",
     {{"given capacity=4; wait 1 permits=4; wait 2 3 permits=2; cancel 1",
       "CANCELLED, run 2, run 3"},
      {"release 4", ""}}},
    {"destroy is refused while somebody waits",
     {{"acquire 1; wait 1; destroy; cancel 1; release 1", "EBUSY, CANCELLED"}}},
    {"an executor that refuses for good does not keep it from its end: the driver does the rest",
     {{"refuse -1; wait 1; cancel 1; wait 2; drive 2; cancel 2; drive 2; stats handed",
       "CANCELLED, @2 CANCELLED, @4 handed=0"}}},
};

Test(semaphore, scripts)
{
	PLAY(&semaphore_stage, NULL, scripts);
}

static void expect_order(unsigned n, const int *wanted)
{
	expect_eq(called, n);
	for (unsigned i = 0; i < n; i++)
		expect_eq(order[i], wanted[i]);
}

Test(semaphore, refused_function_is_offered_again_each_tick)
{
	open_with(1);
	queue.refuse = SIZE_MAX;
	wait_as(1);
	expect_eq(gauges().refused, 1);
	rig_advance(&rig, 3 * MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	expect_eq(gauges().held, 0);
	expect_eq(gauges().waiters, 1);
	expect_ge(gauges().refused, 3);
	expect_eq(gauges().refused, stats_of(rig.service).refused);
	queue.refuse = 0;
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_order(1, (int[]){1});
	release(1);
}
