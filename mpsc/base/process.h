/*
 * Forks: a child does not use what its parent has made. A child has one thread. Locks that other
 * threads of the parent held stay locked forever, and what they were writing stays half written. So
 * each object knows the generation in which it was made, and a handler of pthread_atfork raises the
 * generation in a child. Another clears what the child's one thread remembers of its lanes
 * (mpsc/queue.h). So the short ways of schedule, cancel and reset fail there, and the slow ways
 * compare generations.
 *
 * The handler makes the registry's lock anew, since the parent may have held it. It does not take
 * the lock before the fork: a list below it is in order at each step of those that hold it.
 * Not covered: children made by _Fork or a raw clone, where no handler runs.
 */
#ifndef TW_MPSC_PROCESS_H
#define TW_MPSC_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "mpsc/base/private.h"

/* The one process-wide lock: threads' records and their ties to queues (mpsc/queue.h). */
extern pthread_mutex_t tw__registry;

/*
 * How many forks lie between this process and the one that loaded the library, since the first call
 * with `watch`, which sees to it that they are counted. UINT32_MAX: it could not, out of memory.
 */
TW_PRIVATE uint32_t tw__fork_generation(bool watch);

#endif
