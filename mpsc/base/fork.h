/*
 * Fork: what a child may not use is zero there, and the one process-wide lock works again.
 *
 * A child has one thread; locks that other threads of the parent held stay locked forever, and what
 * they were writing stays half written. So nothing inherited is used: a word that is never 0 in the
 * process that made it is in memory that a child finds wiped (MADV_WIPEONFORK, Linux 4.14). A
 * thread that reads that word anyway learns of the fork. If the kernel cannot, a handler of
 * pthread_atfork wipes it. The handler also makes the registry's lock anew, since the parent may
 * have held it. It does not take the lock before the fork: a list below it is in order at each step
 * of those that hold it.
 *
 * Not covered: the handler does not run in children made by _Fork or clone, which may call little
 * but exec anyway.
 */
#ifndef TW_MPSC_FORK_H
#define TW_MPSC_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The one process-wide lock: threads' ties to queues (queue.h), the default clock, and what is to
 * be wiped.
 */
extern pthread_mutex_t tw__registry;

/* Sees to it that the handler is there. Any thread, any number of times. False: out of memory. */
bool tw__fork_watch(void);

/*
 * How many forks lie between this process and the one that loaded the library, if fork_watch had
 * been called before each.
 */
uint32_t tw__fork_generation(void);

/*
 * Zeroed memory whose first `head` bytes (a multiple of the cache line, at most half a page) are
 * zero again in a forked child; the rest follows right behind and is inherited. NULL: out of
 * memory.
 */
void *tw__wiped_alloc(size_t head, size_t rest);

/* Also in a child. */
void tw__wiped_free(void *at, size_t head);

#endif
