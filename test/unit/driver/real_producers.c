/* Producers at their worst, on the real clock: what is due does not wait for any of them. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/random.h"
#include "test/support/shot.h"
#include "wheel/core/service.h"

TestSuite(driver_real_producers, .timeout = 60);

enum { STOPS = 40, SHOTS = 20, LIVE = 2000, MANY = 10000 };

static _Atomic bool stop, go_on;
static _Atomic int stopped;

static void stand_still(int signal)
{
	(void)signal;
	atomic_fetch_add(&stopped, 1);
	while (!atomic_load(&go_on))
		usleep(100);
	atomic_fetch_add(&stopped, -1);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Schedules and cancels as fast as it can, so that it packs all the time. */
static void *churn(void *arg)
{
	static _Thread_local tw_timer timers[LIVE];
	uint64_t seed = (uint64_t)(uintptr_t)timers;
	while (!atomic_load(&stop)) {
		tw_timer *timer = &timers[random_below(&seed, LIVE)];
		tw_cancel(arg, *timer);
		tw_schedule(arg, SECOND + random_below(&seed, HOUR), nothing, NULL, timer);
	}
	return NULL;
}

/* Each in its turn, within a second, which is generous. */
static void expect_shots(tw_service *service)
{
	static struct shot shots[SHOTS];
	sem_t done;
	sem_init(&done, 0, 0);
	for (int i = 0; i < SHOTS; i++) {
		shots[i] = (struct shot){.service = service, .done = &done};
		schedule_shot(&shots[i], (uint64_t)(i % 5) * MS);
	}
	await(&done, SHOTS);
	for (int i = 0; i < SHOTS; i++)
		expect_eq(shots[i].early, 0);
}

/* As by a debugger, anywhere in a call; also while it packs its lane. */
Test(driver_real_producers, one_that_stops_in_the_middle_of_a_call_stops_nobody)
{
	tw_service *service = open_service(1);
	pthread_t thread;
	signal(SIGUSR1, stand_still);
	pthread_create(&thread, NULL, churn, service);
	expect_shots(service); /* this thread has its lane, and slots */
	for (int i = 0; i < STOPS; i++) {
		usleep(500 + 37 * i);
		atomic_store(&go_on, false);
		pthread_kill(thread, SIGUSR1);
		while (!atomic_load(&stopped))
			usleep(10);
		expect_shots(service);
		atomic_store(&go_on, true);
		while (atomic_load(&stopped))
			usleep(10);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	close_service(service);
}

Test(driver_real_producers, ten_times_as_many_as_processors)
{
	tw_service *service = open_service(1);
	long count = 10 * sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t *threads = calloc((size_t)count, sizeof *threads);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, churn, service);
	for (int i = 0; i < 10; i++)
		expect_shots(service);
	atomic_store(&stop, true);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	expect_eq(tw_service_validate(service, NULL, 0), 0);
	close_service(service);
}

/* Nothing of them is young, and nothing waits. */
Test(driver_real_producers, one_whose_timers_are_all_due_at_once)
{
	static struct shot shots[MANY];
	tw_service *service = open_service(1);
	sem_t done;
	sem_init(&done, 0, 0);
	for (int i = 0; i < MANY; i++) {
		shots[i] = (struct shot){.service = service, .done = &done};
		schedule_shot(&shots[i], 0);
	}
	/* it has bases alone, one for each tick in which this thread has scheduled */
	expect_eq(tw_load_relaxed(&tw__local_of(service)->young.soonest), UINT64_MAX);
	await(&done, MANY);
	close_service(service);
}

static void use_and_free(void *arg)
{
	tw_timer timer;
	child_eq(tw_schedule(arg, SECOND, nothing, NULL, &timer), -EPERM);
	child_eq(tw_service_destroy(arg), 0);
}

/* The lane of the parent's thread stays as it is; the child's thread has none. */
Test(driver_real_producers, one_that_forks_with_a_full_lane)
{
	static struct shot shots[MANY];
	tw_service *service = open_service(1);
	sem_t done;
	sem_init(&done, 0, 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			shots[i] = (struct shot){.service = service, .done = &done};
			schedule_shot(&shots[i], 30 * MS + (uint64_t)(i % 50) * MS);
		}
		expect_in_child(use_and_free, service);
		await(&done, MANY);
	}
	close_service(service);
}
