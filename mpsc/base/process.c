/* The generation of the process, the registry's lock after a fork, and the calls of keepers. */
#include "mpsc/base/process.h"

#include <stdlib.h>

#include "mpsc/base/atomics.h"
#include "mpsc/base/locked.h"

pthread_mutex_t tw__registry = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint32_t generation;
static _Atomic uint32_t holds; /* objects */

static _Atomic(struct tw__keeper *) keepers; /* written under the registry's lock */

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static bool watching;
static pthread_key_t exit_key;
static bool unloaded; /* the key is deleted; registry's lock */

static struct tw__keeper *first_keeper(void)
{
	return tw_load_acquire(&keepers);
}

static void process_after_fork_in_child(void)
{
	tw__registry = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	tw_add_relaxed(&generation, 1);
	for (const struct tw__keeper *k = first_keeper(); k; k = k->next)
		k->after_fork_in_child();
}

static void process_thread_exits(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&tw__registry);
	for (const struct tw__keeper *k = first_keeper(); k; k = k->next)
		k->thread_ends();
	pthread_mutex_unlock(&tw__registry);
}

/* The threads that something is kept for live: one that ends takes this lock before. */
static void process_unload(void)
{
	pthread_mutex_lock(&tw__registry);
	bool free_all = !tw_load_acquire(&holds) && !tw__fork_generation();
	unloaded = pthread_key_delete(exit_key) == 0;
	for (const struct tw__keeper *k = first_keeper(); free_all && k; k = k->next)
		k->unload();
	pthread_mutex_unlock(&tw__registry);
}

static void process_watch(void)
{
	watching = pthread_atfork(NULL, NULL, process_after_fork_in_child) == 0 &&
		   pthread_key_create(&exit_key, process_thread_exits) == 0 &&
		   atexit(process_unload) == 0;
}

bool tw__process_watch(void)
{
	pthread_once(&process_once, process_watch);
	return watching;
}

bool tw__keeper_add(struct tw__keeper *keeper)
{
	pthread_mutex_lock(&tw__registry);
	keeper->next = first_keeper();
	tw_store_release(&keepers, keeper);
	pthread_mutex_unlock(&tw__registry);
	return tw__process_watch();
}

bool tw__thread_watch(void)
{
	TW_ASSERT_LOCKED(&tw__registry);
	/* planted: descriptor_lost */
	return unloaded || pthread_setspecific(exit_key, &tw__registry) == 0;
}

uint32_t tw__fork_generation(void)
{
	return tw_load_relaxed(&generation); /* changes only while the process has one thread */
}

void tw__unload_hold(void)
{
	tw__process_watch();
	tw_add_acq_rel(&holds, 1);
}

void tw__unload_drop(void)
{
	tw_add_acq_rel(&holds, (uint32_t)-1);
}
