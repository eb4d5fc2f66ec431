/*
 * tsan [race]: what the library orders between threads, each order once, for ThreadSanitizer to
 * look at. With `race`, a callback and the main thread race.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tickwheel.h>

enum { TIMERS = 20, THREADS = 4, ROUNDS = 20 };

struct request {
	int in, out;
};

static tw_service *service;
static tw_semaphore *semaphore;
static int shared, released;
static atomic_int ended;

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "tsan: %s\n", tw_strerror(r));
		exit(1);
	}
}

static void answer(void *arg)
{
	struct request *request = arg;
	request->out = request->in + 1;
	atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static void give_back(void *arg, enum tw_fate fate)
{
	struct request *request = arg;
	(void)fate;
	request->in = 0;
	free(request);
}

static void count(void *arg)
{
	++*(int *)arg;
	atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

/* Waits for callbacks, without an order that ThreadSanitizer could see. */
static void await_ended(int wanted)
{
	while (atomic_load_explicit(&ended, memory_order_relaxed) < wanted)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	atomic_store_explicit(&ended, 0, memory_order_relaxed);
}

static void timers(void)
{
	struct tw_task task = TW_INIT(tw_task);
	struct request *request = calloc(1, sizeof *request);
	tw_timer timer;
	request->in = 1;
	check(tw_schedule(service, TW_MILLISECOND, answer, request, &timer));
	await_ended(1);
	check(tw_cancel_wait(service, timer, TW_FOREVER));
	if (request->out != 2)
		exit(2);
	free(request);
	task.fn = answer;
	task.when_ns = TW_MILLISECOND;
	task.release = give_back;
	for (int i = 0; i < TIMERS; i++) {
		request = calloc(1, sizeof *request);
		request->in = i;
		task.arg = request;
		check(tw_schedule_task(service, &task, NULL));
	}
	await_ended(TIMERS);
}

static void strand(void)
{
	tw_strand *strand;
	check(tw_strand_create(&strand, service, NULL));
	for (int i = 0; i < TIMERS; i++)
		check(tw_strand_submit(strand, count, &shared));
	await_ended(TIMERS);
	check(tw_strand_close(strand, TW_FOREVER));
	if (shared != TIMERS)
		exit(3);
	check(tw_strand_destroy(strand));
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		check(tw_semaphore_acquire(semaphore, 1, TW_FOREVER));
		++*(int *)arg;
		if (i % 4 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		check(tw_semaphore_release(semaphore, 1));
	}
	return NULL;
}

static void permits(void)
{
	static int turns;
	pthread_t threads[THREADS];
	check(tw_semaphore_create(&semaphore, service, NULL, 1));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, take_turns, &turns);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (turns != THREADS * ROUNDS)
		exit(4);
	check(tw_semaphore_destroy(semaphore));
}

static void race(void *arg)
{
	++*(int *)arg;
	atomic_store_explicit(&ended, 1, memory_order_relaxed);
}

int main(int argc, char **argv)
{
	check(tw_service_create(&service, NULL));
	if (argc == 2 && strcmp(argv[1], "race") == 0) {
		check(tw_schedule(service, TW_MILLISECOND, race, &released, NULL));
		while (!atomic_load_explicit(&ended, memory_order_relaxed))
			released++;
	} else {
		timers();
		strand();
		permits();
	}
	check(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER));
	check(tw_service_destroy(service));
	printf("ended\n");
	return 0;
}
