/*
 * unloaded PLUGIN: opens and closes a plugin that contains the static library, a hundred times,
 * beside threads that have used it. Some of them end before the plugin is unloaded, some after it,
 * some after it was loaded again. The process forks in between, and exits with objects left.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100, THREADS = 4, WARM = 10, ALLOWED_BYTES = 16 << 10 };

static void (*use)(void);
static int (*end)(void);
static sem_t used, unloaded[2];

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "unloaded: %s\n", what);
	exit(1);
}

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

static void *load(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	check(plugin != NULL, dlerror());
	*(void **)&use = dlsym(plugin, "plugin_use"); /* POSIX's way */
	*(void **)&end = dlsym(plugin, "plugin_end");
	check(use && end, "a function of the plugin is missing");
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

static void start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	check(pthread_create(thread, NULL, main, arg) == 0, "a thread");
}

static void join(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		check(pthread_join(threads[i], NULL) == 0, "a join");
}

/* The threads that stay here end after the next round has loaded the plugin again. */
static void round_of(const char *path, int n, pthread_t *staying, pthread_t *before)
{
	pthread_t ending[THREADS];
	void *plugin = load(path);
	use();
	for (int i = 0; i < THREADS; i++) {
		start(&ending[i], use_and_end, NULL);
		start(&staying[i], use_and_stay, &unloaded[n % 2]);
	}
	join(ending);
	for (int i = 0; i < THREADS; i++)
		await(&used);
	for (int i = 0; n > 0 && i < THREADS / 2; i++) /* loaded again */
		sem_post(&unloaded[(n + 1) % 2]);
	check(end() == 0, "the plugin's objects");
	check(dlclose(plugin) == 0, "dlclose");
	check(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL, "it is still loaded");
	for (int i = 0; n > 0 && i < THREADS / 2; i++) /* unloaded a second time */
		sem_post(&unloaded[(n + 1) % 2]);
	if (n > 0)
		join(before);
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

int main(int argc, char **argv)
{
	pthread_t staying[2][THREADS];
	size_t before = 0;
	if (argc != 2) {
		fprintf(stderr, "usage: unloaded PLUGIN\n");
		return 2;
	}
	sem_init(&used, 0, 0);
	sem_init(&unloaded[0], 0, 0);
	sem_init(&unloaded[1], 0, 0);
	for (int n = 0; n < ROUNDS; n++) {
		round_of(argv[1], n, staying[n % 2], staying[(n + 1) % 2]);
		fork_child();
		if (n == WARM)
			before = mallinfo2().uordblks;
	}
	for (int i = 0; i < THREADS; i++)
		sem_post(&unloaded[(ROUNDS - 1) % 2]);
	join(staying[(ROUNDS - 1) % 2]);
	size_t after = mallinfo2().uordblks;
	check(after < before + ALLOWED_BYTES, "memory is left behind");
	load(argv[1]);
	use();
	printf(
	    "unloaded: ok (a plugin with the static library, %d times, threads that outlive it)\n",
	    ROUNDS);
	return 0;
}
