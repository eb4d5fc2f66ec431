/*
 * opened LIBRARY: a program that is not linked with the library opens it at run time, uses it from
 * several threads, closes it while these and the service's own live, and goes on: it is never
 * unloaded under its threads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tickwheel.h"

static struct {
	int (*create)(tw_service **, const struct tw_service_config *);
	int (*schedule)(tw_service *, uint64_t, tw_fn *, void *, tw_timer *);
	int (*close)(tw_service *, enum tw_close_mode, uint64_t);
	int (*destroy)(tw_service *);
} tw;

enum { THREADS = 4, EACH = 500 };

static void *library;
static tw_service *service;
static atomic_int ran;
static sem_t half_done, closed;

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "opened: %s\n", what);
	exit(1);
}

static void find(void *function, const char *name)
{
	void *found = dlsym(library, name);
	check(found != NULL, name);
	*(void **)function = found; /* POSIX's way */
}

static void open_library(const char *path)
{
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	check(library != NULL, dlerror());
	find(&tw.create, "tw_service_create");
	find(&tw.schedule, "tw_schedule");
	find(&tw.close, "tw_service_close");
	find(&tw.destroy, "tw_service_destroy");
}

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static void schedule_some(int n)
{
	for (int i = 0; i < n; i++)
		check(tw.schedule(service, (uint64_t)(i % 20) * TW_MILLISECOND, count, NULL,
				  NULL) == 0,
		      "a schedule");
}

/*
 * Schedules before and after the library was closed, and ends: the exit handler is the library's.
 */
static void *use(void *arg)
{
	schedule_some(EACH);
	sem_post(&half_done);
	while (sem_wait(&closed) != 0)
		;
	schedule_some(EACH);
	return arg;
}

static void use_once(const char *path)
{
	pthread_t threads[THREADS];
	ran = 0;
	open_library(path);
	check(tw.create(&service, NULL) == 0, "create");
	for (int i = 0; i < THREADS; i++)
		check(pthread_create(&threads[i], NULL, use, NULL) == 0, "a thread");
	for (int i = 0; i < THREADS; i++)
		while (sem_wait(&half_done) != 0)
			;
	check(dlclose(library) == 0, "dlclose");
	for (int i = 0; i < THREADS; i++)
		sem_post(&closed);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check(tw.close(service, TW_CLOSE_DRAIN, TW_FOREVER) == 0, "close");
	check(ran == 2 * THREADS * EACH, "a callback is missing");
	check(tw.destroy(service) == 0, "destroy");
	void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	check(still != NULL, "it was unloaded");
	dlclose(still);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: opened LIBRARY\n");
		return 2;
	}
	sem_init(&half_done, 0, 0);
	sem_init(&closed, 0, 0);
	for (int i = 0; i < 5; i++)
		use_once(argv[1]);
	printf("opened: ok (dlopen, dlclose with threads alive, used afterwards)\n");
	return 0;
}
