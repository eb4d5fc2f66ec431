/* The semaphore, on one thread: permits, functions that wait, capacity, what is refused. */
#include <errno.h>

#include "test/support/semaphore_suite.h"

TestSuite(semaphore, .fini = close_left);

static void expect_order(unsigned n, const int *wanted)
{
	expect_eq(called, n);
	for (unsigned i = 0; i < n; i++)
		expect_eq(order[i], wanted[i]);
}

/* ------------------------------------------------------------------ permits */

Test(semaphore, of_capacity_none_gives_out_nothing_and_takes_nothing)
{
	open_with(0);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), -EAGAIN);
	expect_eq(tw_semaphore_release(permits, 1), -EOVERFLOW);
	tw_waiter waiter = wait_as(1);
	expect_eq(tw_semaphore_release(permits, 1), -EOVERFLOW); /* with a waiter too */
	expect_eq(called, 0);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
}

Test(semaphore, largest_capacity)
{
	open_with(INT32_MAX);
	acquire(2);
	expect_eq(gauges().capacity, INT32_MAX);
	expect_eq(gauges().available, INT32_MAX - 2);
	expect_eq(tw_semaphore_set_capacity(permits, 0), 0);
	expect_eq(gauges().debt, 2);
	expect_eq(tw_semaphore_set_capacity(permits, INT32_MAX), 0);
	release(2);
	expect_eq(gauges().available, INT32_MAX);
	expect_eq(tw_semaphore_release(permits, 1), -EOVERFLOW);
}

/* ---------------------------------------------------------------- functions */

Test(semaphore, function_gets_an_available_permit_on_the_executor)
{
	open_with(1);
	wait_as(1);
	expect_eq(called, 0);
	expect_eq(gauges().available, 0);
	expect_eq(gauges().handed, 1);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_order(1, (int[]){1});
	expect_eq(gauges().handed, 0);
	expect_eq(gauges().held, 1); /* until it is given back */
	release(1);
}

Test(semaphore, release_hands_to_the_oldest_or_adds_one_never_both)
{
	open_with(1);
	acquire(1);
	wait_as(1);
	wait_as(2);
	expect_eq(gauges().waiters, 2);
	release(1);
	expect_eq(called, 0); /* not inside release */
	expect_eq(gauges().available, 0);
	expect_eq(gauges().waiters, 1);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), -EAGAIN);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_order(1, (int[]){1});
	release(1);
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_order(2, (int[]){1, 2});
	expect_eq(gauges().available, 0);
	release(1);
	expect_eq(gauges().available, 1);
	expect_eq(queue_executor_run_all(&queue), 0);
}

Test(semaphore, inline_functions_run_in_the_next_turn)
{
	open_with(0);
	expect_eq(tw_semaphore_destroy(permits), 0);
	/* the service's executor */
	expect_eq(tw_semaphore_create(&permits, rig.service, NULL, 1), 0);
	wait_as(1);
	expect_eq(called, 0);
	rig_advance(&rig, 0);
	expect_order(1, (int[]){1});
	release(1);
}

static void release_inside(void *arg)
{
	note(arg);
	tw_semaphore_release(permits, 1);
}

Test(semaphore, function_may_release_and_wait_again)
{
	open_with(1);
	for (int i = 0; i < 5; i++)
		expect_eq(tw_semaphore_acquire_async(permits, 1, release_inside, &numbers[i], NULL),
			  0);
	expect_eq(queue_executor_run_all(&queue), 5);
	expect_order(5, (int[]){0, 1, 2, 3, 4});
	expect_eq(gauges().available, 1);
}

/* ------------------------------------------------------------------- cancel */

Test(semaphore, cancelled_hand_over_goes_to_the_next_waiter)
{
	open_with(1);
	acquire(1);
	tw_waiter first = wait_as(1);
	wait_as(2);
	release(1);
	expect_eq(tw_semaphore_cancel(permits, first), TW_CANCELLED);
	expect_eq(tw_semaphore_cancel(permits, first), TW_GONE);
	queue_executor_run_all(&queue);
	expect_order(1, (int[]){2});
	expect_eq(gauges().held, 1);
	release(1);
	expect_eq(gauges().available, 1);
}

Test(semaphore, cancelled_hand_over_with_nobody_in_line_comes_back)
{
	open_with(1);
	tw_waiter waiter = wait_as(1);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
	expect_eq(gauges().available, 1);
	expect_eq(gauges().handed, 1); /* the executor has its ticket still */
	expect_eq(tw_semaphore_destroy(permits), -EBUSY);
	queue_executor_run_all(&queue);
	expect_eq(called, 0);
}

static tw_waiter own;
static int own_answer;

static void cancel_self(void *arg)
{
	own_answer = tw_semaphore_cancel(permits, own);
}

Test(semaphore, running_function_is_told_so_and_keeps_its_permit)
{
	open_with(1);
	expect_eq(tw_semaphore_acquire_async(permits, 1, cancel_self, NULL, &own), 0);
	queue_executor_run_all(&queue);
	expect_eq(own_answer, TW_RUNNING);
	expect_eq(gauges().held, 1);
	expect_eq(tw_semaphore_cancel(permits, own), TW_GONE);
	expect_eq(gauges().held, 1);
	release(1);
}

Test(semaphore, stale_and_random_handles_are_harmless)
{
	open_with(1);
	tw_waiter old = wait_as(1);
	queue_executor_run_all(&queue);
	wait_as(2); /* in the same node */
	expect_eq(tw_semaphore_cancel(permits, old), TW_GONE);
	expect_eq(tw_semaphore_cancel(permits, (tw_waiter){0}), TW_GONE);
	uint64_t seed = 42;
	for (int i = 0; i < 1000; i++)
		expect_eq(tw_semaphore_cancel(permits, (tw_waiter){random_next(&seed)}), TW_GONE);
	release(1);
	queue_executor_run_all(&queue);
	expect_order(2, (int[]){1, 2});
	release(1);
}

/* ------------------------------------------------------------------ refusals */

Test(semaphore, refused_function_is_offered_again_each_tick)
{
	open_with(1);
	queue.refuse = SIZE_MAX;
	wait_as(1);
	expect_eq(gauges().refused, 1);
	rig_advance(&rig, 3 * MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	expect_eq(gauges().held, 1);
	expect_ge(gauges().refused, 3);
	expect_eq(gauges().refused, stats_of(rig.service).refused);
	queue.refuse = 0;
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_order(1, (int[]){1});
	release(1);
}

Test(semaphore, function_given_back_by_the_executor_is_offered_again)
{
	open_with(1);
	wait_as(1);
	expect_eq(queue_executor_drop_next(&queue), 0);
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_order(1, (int[]){1});
	release(1);
}

Test(semaphore, refused_function_can_be_cancelled)
{
	open_with(1);
	queue.refuse = 1;
	tw_waiter waiter = wait_as(1);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
	expect_eq(gauges().available, 1);
	rig_advance(&rig, MS);
	queue_executor_run_all(&queue);
	expect_eq(called, 0);
}

/* ----------------------------------------------------------------- capacity */

Test(semaphore, cancelled_hand_over_pays_a_debt)
{
	open_with(2);
	acquire(1);
	tw_waiter waiter = wait_as(1);
	expect_eq(tw_semaphore_set_capacity(permits, 1), 0);
	expect_eq(gauges().debt, 1);
	expect_eq(tw_semaphore_cancel(permits, waiter), TW_CANCELLED);
	expect_eq(gauges().debt, 0);
	expect_eq(gauges().available, 0);
	queue_executor_run_all(&queue);
	release(1);
	expect_eq(gauges().available, 1);
}

/* ------------------------------------------------------------------- context */

static void *seen_context;

static void see_context(void *arg)
{
	seen_context = tw_context_get();
}

Test(semaphore, context_of_the_call_goes_with_the_function)
{
	int mine = 1;
	open_with(1);
	acquire(1);
	tw_context_set(&mine);
	expect_eq(tw_semaphore_acquire_async(permits, 1, see_context, NULL, NULL), 0);
	tw_context_set(NULL);
	release(1);
	queue_executor_run_all(&queue);
	cr_assert_eq(seen_context, &mine);
	cr_assert_null(tw_context_get());
	release(1);
}
