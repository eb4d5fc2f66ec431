/*
 * The context of the thread that asks for a permit goes with the function that gets it, and is
 * released once.
 */
#include "test/support/queue_executor.h"
#include "test/support/rig.h"

TestSuite(semaphore_context, .timeout = 30);

static struct rig rig;
static struct queue_executor queue;
static tw_semaphore *permits;
static void *seen;
static int first, second;

static void see(void *arg)
{
	(void)arg;
	seen = tw_context_get();
}

static void open_with(int32_t capacity)
{
	rig_open(&rig, NULL);
	queue_executor_open(&queue);
	expect_eq(tw_semaphore_create(&permits, rig.service, &queue.base, capacity), 0);
}

static void close_all(void)
{
	expect_eq(tw_semaphore_destroy(permits), 0);
	queue_executor_close(&queue);
	rig_close(&rig);
}

static tw_waiter wait_under(void *context)
{
	tw_waiter waiter;
	tw_context_set(context);
	expect_eq(tw_semaphore_acquire_async(permits, 1, see, NULL, &waiter), 0);
	tw_context_set(&second);
	return waiter;
}

Test(semaphore_context, goes_with_a_function_that_gets_a_permit_later)
{
	open_with(0);
	wait_under(&first);
	expect_eq(tw_semaphore_set_capacity(permits, 1), 0);
	queue_executor_run_all(&queue);
	cr_assert_eq(seen, &first);
	cr_assert_eq(tw_context_get(), &second);
	close_all();
}
