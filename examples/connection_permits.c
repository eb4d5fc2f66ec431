/*
 * A backend that stands four connections at a time: a semaphore hands them out, to threads that wait at most so long, and to
 * functions that are called when their turn comes, first come first served. No thread sleeps for the latter.
 *
 * In a server the permit goes back when the answer has come; here a timer plays the backend.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <tickwheel.h>

enum { CONNECTIONS = 4, QUERIES = 20 };

static tw_service *service;
static tw_semaphore *connections;
static atomic_int open_now, most_open, answered;

static void on_answer(void *arg)
{
	(void)arg;
	open_now--;
	answered++;
	tw_semaphore_release(connections); /* to the next in line, whose function is called on a worker */
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
	if (tw_service_create(&service, NULL) < 0 || tw_semaphore_create(&connections, service, NULL, CONNECTIONS) < 0)
		return 1;
	for (int i = 0; i < QUERIES; i++)
		if (tw_semaphore_acquire_async(connections, query, NULL, NULL) < 0)
			return 1;

	/* A thread in the same line, with a limit to its patience. */
	if (tw_semaphore_acquire(connections, 1 * TW_MILLISECOND) < 0)
		printf("no connection within a millisecond: many are before us\n");
	else
		tw_semaphore_release(connections); /* this thread was held up for long */
	if (tw_semaphore_acquire(connections, 10 * TW_SECOND) < 0)
		return 1;
	printf("a connection after %d answers\n", atomic_load(&answered));
	tw_semaphore_release(connections);

	/* All permits at once: nobody else holds one any more. */
	for (int i = 0; i < CONNECTIONS; i++)
		if (tw_semaphore_acquire(connections, 10 * TW_SECOND) < 0)
			return 1;
	printf("%d answers, at most %d connections at a time\n", atomic_load(&answered), atomic_load(&most_open));

	while (tw_semaphore_destroy(connections) < 0) /* -EBUSY: a function is just returning */
		sched_yield();
	tw_service_destroy(service);
	return answered == QUERIES && most_open <= CONNECTIONS ? 0 : 1;
}
