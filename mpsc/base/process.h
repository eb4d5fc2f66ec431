/*
 * What happens to a process and its threads: a fork, the end of a thread, the end of the library's
 * code. Who keeps something for threads is a keeper, and is called for each of these.
 *
 * Fork: a child does not use what its parent has made. A child has one thread. Locks that other
 * threads of the parent held stay locked forever, and what they were writing stays half written. So
 * each object knows the generation in which it was made, and a handler of pthread_atfork raises the
 * generation in a child. Keepers clear what the child's one thread remembers of its lanes. So the
 * short ways of schedule, cancel and reset fail there, and the slow ways compare generations.
 *
 * The handler makes the registry's lock anew, since the parent may have held it. It does not take
 * the lock before the fork: a list below it is in order at each step of those that hold it.
 * Not covered: children made by _Fork or a raw clone, where no handler runs.
 *
 * End of a thread: one key's destructor. If a later exit handler of the thread uses the library
 * again, it watches anew, and the keepers are called once more.
 *
 * End of the code: dlclose of a plugin that contains the static library, or exit().
 *
 *   dlclose   No object is left, so no thread is inside the library or comes back. Threads that
 *             have used it live on. The key must be gone, and what is kept for them must be freed.
 *   exit()    Other threads may be inside the library, and objects may be left. A thread that ends
 *             now leaves its part to the system.
 *
 * So the key goes in both cases, and keepers are called if no object is left. In a forked child
 * nothing is freed. The handler is atexit's, not a destructor of the library: it comes after the
 * end of the static objects of C++ that were made after the first object of the library.
 */
#ifndef TW_MPSC_PROCESS_H
#define TW_MPSC_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "mpsc/base/private.h"

/* The one process-wide lock: threads' ties to queues (queue.h). */
extern pthread_mutex_t tw__registry;

/* One who keeps something for threads. Static. */
struct tw__keeper {
	struct tw__keeper *next;
	/* under the registry's lock */
	void (*thread_ends)(void); /* the calling thread */
	void (*unload)(void);      /* frees all that is kept; the threads live */
	/* of the thread that has forked, in the child */
	void (*after_fork_in_child)(void);
};

/* Adds a keeper, once. False: out of memory. */
bool tw__keeper_add(struct tw__keeper *keeper);

/* The keepers are called when this thread ends. Registry's lock. False: out of memory. */
bool tw__thread_watch(void);

/* Sees to it that the handlers are there. Any thread, any number of times. False: out of memory. */
TW_PRIVATE bool tw__process_watch(void);

/*
 * How many forks lie between this process and the one that loaded the library, if process_watch had
 * been called before each.
 */
TW_PRIVATE uint32_t tw__fork_generation(void);

/* An object is made or freed that calls user code, or that threads have a part of. */
void tw__unload_hold(void);
void tw__unload_drop(void);

#endif
