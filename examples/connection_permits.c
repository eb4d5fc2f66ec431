/*
 * A backend that bears four connections at a time. A semaphore hands them out, first come, first
 * served: to threads that wait for a limited time, and to functions that are called when they have
 * a permit. No thread sleeps for a function.
 *
 * In a server the permit returns when the answer has come. Here a timer plays the backend.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <tickwheel/layers.h>

enum { CONNECTIONS = 4, QUERIES = 20 };

static tw_service *service;
static tw_semaphore *connections;
static atomic_int open_now, most_open, answered;

static void on_answer(void *arg)
{
	(void)arg;
	open_now--;
	answered++;
	tw_semaphore_release(connections, 1); /* the next function is called on a worker */
}

/* Called with a permit. */
static void query(void *arg)
{
	int now = ++open_now, most = most_open;
	while (now > most && !atomic_compare_exchange_weak(&most_open, &most, now)) {
	}
	if (tw_schedule(service, 5 * TW_MILLISECOND, on_answer, arg, NULL) < 0)
		on_answer(arg);
}

int main(void)
{
	if (tw_service_create(&service, NULL) < 0 ||
	    tw_semaphore_create(&connections, service, NULL, CONNECTIONS) < 0)
		return 1;
	for (int i = 0; i < QUERIES; i++)
		if (tw_semaphore_acquire_async(connections, 1, query, NULL, NULL) < 0)
			return 1;

	/* A thread in the same line, which waits for a limited time. */
	if (tw_semaphore_acquire(connections, 1, 1 * TW_MILLISECOND) < 0)
		printf("no connection within a millisecond: many are before us\n");
	else
		tw_semaphore_release(connections, 1); /* this thread is late */
	if (tw_semaphore_acquire(connections, 1, 10 * TW_SECOND) < 0)
		return 1;
	printf("a connection after %d answers\n", atomic_load(&answered));
	tw_semaphore_release(connections, 1);

	/* All four permits: nobody else has one any more. */
	for (int i = 0; i < CONNECTIONS; i++)
		if (tw_semaphore_acquire(connections, 1, 10 * TW_SECOND) < 0)
			return 1;
	printf("%d answers, at most %d connections at a time\n", atomic_load(&answered),
	       atomic_load(&most_open));

	while (tw_semaphore_destroy(connections) < 0) /* -EBUSY: a function is just returning */
		sched_yield();
	tw_service_destroy(service);
	return answered == QUERIES && most_open <= CONNECTIONS ? 0 : 1;
}
