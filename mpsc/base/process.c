#include "mpsc/base/process.h"

#include "mpsc/base/atomics.h"

pthread_mutex_t tw__registry = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint32_t generation;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static bool watching;

static void process_after_fork_in_child(void)
{
	tw__registry = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	tw_add_relaxed(&generation, 1);
}

static void process_watch(void)
{
	watching = pthread_atfork(NULL, NULL, process_after_fork_in_child) == 0;
}

uint32_t tw__fork_generation(bool watch)
{
	if (watch)
		pthread_once(&process_once, process_watch);
	if (tw_unlikely(watch && !watching))
		return UINT32_MAX;
	return tw_load_relaxed(&generation); /* changes only while the process has one thread */
}
