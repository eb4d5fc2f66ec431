/* The end of the library's code. */
#include "mpsc/base/unload.h"

#include <stdint.h>
#include <stdlib.h>

#include "mpsc/base/atomics.h"
#include "mpsc/base/fork.h"

static struct tw__unloader *first; /* registry's lock */
static _Atomic uint32_t holds;     /* objects */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watching;

static void unload(void)
{
	pthread_mutex_lock(&tw__registry);
	bool free = !tw_load_acquire(&holds) && !tw__fork_generation();
	for (const struct tw__unloader *u = first; u; u = u->next)
		u->unload(free);
	pthread_mutex_unlock(&tw__registry);
}

static void unload_watch(void)
{
	watching = tw__fork_watch() && atexit(unload) == 0;
}

bool tw__unload_watch(struct tw__unloader *unloader)
{
	pthread_once(&once, unload_watch);
	pthread_mutex_lock(&tw__registry);
	unloader->next = first;
	first = unloader;
	pthread_mutex_unlock(&tw__registry);
	return watching;
}

void tw__unload_hold(void)
{
	pthread_once(&once, unload_watch);
	tw_add_acq_rel(&holds, 1);
}

void tw__unload_drop(void)
{
	tw_add_acq_rel(&holds, (uint32_t)-1);
}
