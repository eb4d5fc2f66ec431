/*
 * loaded LIBRARY PLUGIN: a program that is not linked with the library loads it at run time.
 *
 *   - The shared library is used from several threads, closed while these and the service's own
 *     live, and used on: it is never unloaded under its threads.
 *   - A plugin that contains the static library is opened and closed a hundred times, beside
 *     threads that have used it. Some of them end before the plugin is unloaded, some after it,
 *     some after it was loaded again. The process forks in between, and exits with objects left.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tickwheel.h"

enum { THREADS = 4, TIMERS = 500, USES = 5 };
enum { ROUNDS = 100, WARM = 10, ALLOWED_BYTES = 16 << 10 };

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "loaded: %s\n", what);
	exit(1);
}

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

static void *load(const char *path)
{
	void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	check(loaded != NULL, dlerror());
	return loaded;
}

static void find(void *loaded, void *function, const char *name)
{
	void *found = dlsym(loaded, name);
	check(found != NULL, name);
	*(void **)function = found; /* POSIX's way */
}

static void start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	check(pthread_create(thread, NULL, main, arg) == 0, "a thread");
}

static void join(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		check(pthread_join(threads[i], NULL) == 0, "a join");
}

static void post(sem_t *semaphore, int n)
{
	while (n-- > 0)
		sem_post(semaphore);
}

static sem_t used, closed[2];

/* ------------------------------------------------------------ the shared library */

static struct {
	int (*create)(tw_service **, const struct tw_service_config *);
	int (*schedule)(tw_service *, uint64_t, tw_fn *, void *, tw_timer *);
	int (*close)(tw_service *, enum tw_close_mode, uint64_t);
	int (*destroy)(tw_service *);
} tw;

static tw_service *service;
static atomic_int ran;

static void count(void *arg)
{
	ran++;
}

static void schedule_some(void)
{
	for (int i = 0; i < TIMERS; i++)
		check(tw.schedule(service, (uint64_t)(i % 20) * TW_MILLISECOND, count, NULL,
				  NULL) == 0,
		      "a schedule");
}

/* Schedules before and after the library is closed, and ends: the exit handler is the library's. */
static void *use_library(void *arg)
{
	schedule_some();
	sem_post(&used);
	await(&closed[0]);
	schedule_some();
	return arg;
}

static void use_shared_once(const char *path)
{
	pthread_t threads[THREADS];
	void *library = load(path);
	ran = 0;
	find(library, &tw.create, "tw_service_create");
	find(library, &tw.schedule, "tw_schedule");
	find(library, &tw.close, "tw_service_close");
	find(library, &tw.destroy, "tw_service_destroy");
	check(tw.create(&service, NULL) == 0, "create");
	for (int i = 0; i < THREADS; i++)
		start(&threads[i], use_library, NULL);
	for (int i = 0; i < THREADS; i++)
		await(&used);
	check(dlclose(library) == 0, "dlclose");
	post(&closed[0], THREADS);
	join(threads);
	check(tw.close(service, TW_CLOSE_DRAIN, TW_FOREVER) == 0, "close");
	check(ran == 2 * THREADS * TIMERS, "a callback is missing");
	check(tw.destroy(service) == 0, "destroy");
	void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	check(still != NULL, "it was unloaded");
	dlclose(still);
}

/* ------------------------------------------------------------ the plugin */

static void (*use)(void);
static int (*end)(void);

static void *load_plugin(const char *path)
{
	void *plugin = load(path);
	find(plugin, &use, "plugin_use");
	find(plugin, &end, "plugin_end");
	return plugin;
}

static void *use_and_end(void *arg)
{
	use();
	return arg;
}

/* Outlives the plugin. */
static void *use_and_stay(void *arg)
{
	use();
	sem_post(&used);
	await(arg);
	return NULL;
}

/* The threads that stay here end after the next round has loaded the plugin again. */
static void round_of(const char *path, int n, pthread_t *staying, pthread_t *before)
{
	pthread_t ending[THREADS];
	void *plugin = load_plugin(path);
	use();
	for (int i = 0; i < THREADS; i++) {
		start(&ending[i], use_and_end, NULL);
		start(&staying[i], use_and_stay, &closed[n % 2]);
	}
	join(ending);
	for (int i = 0; i < THREADS; i++)
		await(&used);
	if (n > 0)
		post(&closed[(n + 1) % 2], THREADS / 2); /* loaded again */
	check(end() == 0, "the plugin's objects");
	check(dlclose(plugin) == 0, "dlclose");
	check(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL, "it is still loaded");
	if (n > 0) {
		post(&closed[(n + 1) % 2], THREADS / 2); /* unloaded a second time */
		join(before);
	}
}

static void fork_child(void)
{
	pid_t child = fork();
	int status;
	check(child >= 0, "a fork");
	if (child == 0)
		_exit(0);
	check(waitpid(child, &status, 0) == child && status == 0, "a child");
}

static void use_plugin(const char *path)
{
	pthread_t staying[2][THREADS];
	size_t before = 0;
	for (int n = 0; n < ROUNDS; n++) {
		round_of(path, n, staying[n % 2], staying[(n + 1) % 2]);
		fork_child();
		if (n == WARM)
			before = mallinfo2().uordblks;
	}
	post(&closed[(ROUNDS - 1) % 2], THREADS);
	join(staying[(ROUNDS - 1) % 2]);
	check(mallinfo2().uordblks < before + ALLOWED_BYTES, "memory is left behind");
	load_plugin(path);
	use();
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: loaded LIBRARY PLUGIN\n");
		return 2;
	}
	sem_init(&used, 0, 0);
	sem_init(&closed[0], 0, 0);
	sem_init(&closed[1], 0, 0);
	use_plugin(argv[2]);
	for (int i = 0; i < USES; i++)
		use_shared_once(argv[1]);
	printf("loaded: ok (a plugin with the static library %d times, beside threads that outlive "
	       "it; the shared library used after dlclose)\n",
	       ROUNDS);
	return 0;
}
