/*
 * The semaphore with threads that wait. No test waits for time to pass, but the last, which is
 * content with any.
 */
#include <errno.h>
#include <sched.h>

#include "test/support/semaphore_suite.h"

TestSuite(semaphore_threads, .fini = close_left, .timeout = 60);

static _Atomic unsigned served;
static int served_order[16]; /* the threads in the order of service: there is one permit */

struct thread {
	int number;
	pthread_t thread;
	uint64_t timeout_ns;
	int answer;
};

static void serve(int number)
{
	static atomic_uint taken; /* two threads may be served at the same time */
	served_order[atomic_fetch_add(&taken, 1)] = number;
	atomic_fetch_add(&served, 1);
}

static void *wait_for_permit(void *arg)
{
	struct thread *self = arg;
	self->answer = tw_semaphore_acquire(permits, 1, self->timeout_ns);
	if (self->answer == 0)
		serve(self->number);
	return NULL;
}

/* Returns when the thread is in line. */
static void start(struct thread *thread, int number)
{
	uint64_t before = gauges().waiters;
	*thread = (struct thread){.number = number, .timeout_ns = 50 * SECOND};
	expect_eq(pthread_create(&thread->thread, NULL, wait_for_permit, thread), 0);
	while (gauges().waiters == before)
		sched_yield();
}

static void note_function(void *arg)
{
	serve(*(int *)arg);
}

static void await_served(unsigned n)
{
	while (atomic_load(&served) < n)
		sched_yield();
	expect_eq(atomic_load(&served), n);
}

Test(semaphore_threads, both_kinds_are_served_in_the_order_they_came)
{
	struct thread threads[3];
	open_with(1);
	acquire(1);
	start(&threads[0], 0);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[1], NULL), 0);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[2], NULL), 0);
	start(&threads[1], 3);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[4], NULL), 0);
	start(&threads[2], 5);
	expect_eq(gauges().waiters, 6);
	expect_eq(gauges().waiting_threads, 3);
	for (unsigned n = 1; n <= 6; n++) {
		release(1);
		expect_eq(gauges().waiters, 6 - n); /* one for each release */
		queue_executor_run_all(&queue);
		await_served(n);
		expect_eq(served_order[n - 1], (int)n - 1);
		expect_eq(gauges().available, 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i].thread, NULL);
	release(1);
}

Test(semaphore_threads, nobody_overtakes_a_thread_that_waits)
{
	struct thread thread;
	open_with(1);
	acquire(1);
	start(&thread, 1);
	release(1);
	expect_eq(tw_semaphore_acquire(permits, 1, 0),
		  -EAGAIN); /* whether it has woken up or not */
	pthread_join(thread.thread, NULL);
	expect_eq(thread.answer, 0);
	release(1);
	acquire(1);
}

Test(semaphore_threads, refused_function_lets_a_thread_go_first_and_stays_first_itself)
{
	struct thread threads[2];
	open_with(1);
	acquire(1);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[1], NULL), 0);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[2], NULL), 0);
	start(&threads[0], 3);
	start(&threads[1], 4);
	queue.refuse = 1;
	release(1);
	await_served(1);
	expect_eq(served_order[0], 3);
	expect_eq(gauges().refused, 1);
	expect_eq(gauges().waiters, 3);
	for (unsigned n = 2; n <= 4; n++) {
		release(1);
		queue_executor_run_all(&queue);
		await_served(n);
	}
	expect_eq(served_order[1], 1);
	expect_eq(served_order[2], 2);
	expect_eq(served_order[3], 4);
	pthread_join(threads[0].thread, NULL);
	pthread_join(threads[1].thread, NULL);
	release(1);
	expect_eq(gauges().available, 1);
}

/* The function has the only permit when the thread comes. The next refusal finds the thread. */
static void expect_thread_goes_before(bool given_back)
{
	struct thread thread;
	int number = 1;
	open_with(1);
	queue.refuse = given_back ? 0 : 1;
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &number, NULL), 0);
	if (given_back)
		expect_eq(queue_executor_drop_next(&queue), 0);
	expect_eq(gauges().held, 1);
	start(&thread, 2);
	queue.refuse = SIZE_MAX;
	rig_advance(&rig, 2 * MS);
	expect_eq(gauges().waiting_threads, 0);
	expect_eq(gauges().waiters, 1);
	expect_eq(gauges().refused, given_back ? 1 : 2);
	queue.refuse = 0;
	await_served(1);
	expect_eq(served_order[0], 2);
	release(1);
	queue_executor_run_all(&queue);
	await_served(2);
	expect_eq(served_order[1], 1);
	pthread_join(thread.thread, NULL);
	release(1);
	close_all();
}

Test(semaphore_threads, thread_that_comes_after_the_refusal_goes_before_the_function)
{
	expect_thread_goes_before(false);
}

Test(semaphore_threads, thread_goes_before_a_function_given_back_and_then_refused)
{
	expect_thread_goes_before(true);
}

/*
 * The only thread in line goes before it: the line is not empty for all that, and a release finds
 * the function.
 */
Test(semaphore_threads, refused_function_stays_in_line_when_the_last_thread_has_left_it)
{
	struct thread thread;
	int number = 1;
	open_with(1);
	acquire(1);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &number, NULL), 0);
	start(&thread, 2);
	queue.refuse = 1;
	release(1);
	await_served(1);
	expect_eq(served_order[0], 2);
	pthread_join(thread.thread, NULL);
	expect_eq(gauges().waiters, 1);
	release(1);
	expect_eq(queue_executor_run_all(&queue), 1);
	await_served(2);
	release(1);
	expect_eq(gauges().available, 1);
}

static tw_waiter cancelled_in_submit;

static int cancel_and_refuse(tw_executor *self, tw_batch *batch, size_t n)
{
	if (tw_semaphore_cancel(permits, cancelled_in_submit) == TW_CANCELLED)
		return -EAGAIN;
	return queue.base.ops->submit(&queue.base, batch, n); /* what is offered again */
}

/* Its permit goes on, and nobody takes its place in line again. */
Test(semaphore_threads, a_function_that_is_cancelled_while_it_is_refused_does_not_come_back)
{
	static const struct tw_executor_ops ops = {.size = sizeof ops, .submit = cancel_and_refuse};
	tw_executor executor = {&ops};
	struct thread threads[2];
	int number = 1;
	open_with(1);
	expect_eq(tw_semaphore_destroy(permits), 0);
	expect_eq(tw_semaphore_create(&permits, rig.service, &executor, 1), 0);
	acquire(1);
	expect_eq(
	    tw_semaphore_acquire_async(permits, 1, note_function, &number, &cancelled_in_submit),
	    0);
	start(&threads[0], 2);
	start(&threads[1], 3);
	release(1); /* to the function; cancelled on its way, it passes it on to the first thread */
	await_served(1);
	expect_eq(served_order[0], 2);
	expect_eq(gauges().waiting_threads, 1);
	expect_eq(gauges().waiters, 1);
	expect_eq(gauges().handed, 1); /* its work is still to be heard of */
	release(1);
	await_served(2);
	expect_eq(served_order[1], 3);
	pthread_join(threads[0].thread, NULL);
	pthread_join(threads[1].thread, NULL);
	release(1);
	rig_advance(&rig, 2 * MS);
	queue_executor_run_all(&queue);
	expect_eq(atomic_load(&served), 2);
}

Test(semaphore_threads, functions_refused_together_keep_their_order)
{
	struct thread threads[2];
	open_with(2);
	acquire(1);
	acquire(1);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[1], NULL), 0);
	expect_eq(tw_semaphore_acquire_async(permits, 1, note_function, &numbers[2], NULL), 0);
	start(&threads[0], 3);
	start(&threads[1], 4);
	queue.refuse = 2;
	/* both are chosen, then both refused */
	expect_eq(tw_semaphore_set_capacity(permits, 4), 0);
	pthread_join(threads[0].thread, NULL);
	pthread_join(threads[1].thread, NULL);
	expect_eq(gauges().waiters, 2);
	unsigned before = atomic_load(&served);
	release(1);
	queue_executor_run_all(&queue);
	release(1);
	queue_executor_run_all(&queue);
	expect_eq(served_order[before], 1);
	expect_eq(served_order[before + 1], 2);
	release(1);
	release(1);
	expect_eq(gauges().held, 2);
}

Test(semaphore_threads, growth_starts_threads)
{
	struct thread threads[3];
	open_with(0);
	for (int i = 0; i < 3; i++)
		start(&threads[i], i);
	expect_eq(tw_semaphore_set_capacity(permits, 1), 0);
	await_served(1);
	expect_eq(served_order[0], 0);
	expect_eq(gauges().waiters, 2);
	expect_eq(tw_semaphore_set_capacity(permits, 2), 0);
	await_served(2);
	expect_eq(served_order[1], 1);
	release(1);
	await_served(3);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i].thread, NULL);
}

Test(semaphore_threads, destroy_is_refused_while_a_thread_waits)
{
	struct thread thread;
	open_with(0);
	start(&thread, 1);
	expect_eq(tw_semaphore_destroy(permits), -EBUSY);
	expect_eq(tw_semaphore_set_capacity(permits, 1), 0);
	pthread_join(thread.thread, NULL);
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
