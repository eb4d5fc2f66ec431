/*
 * The process: its forks, cancelled threads, threads of the library's own, processors.
 *
 * Forks: a child does not use what its parent has made. It has one thread; locks that others held
 * stay locked, and what they were writing stays half written. So each object knows the generation
 * in which it was made, and a handler of pthread_atfork raises the generation in a child. Another
 * clears what the child's thread remembers of its lanes (mpsc/queue.h). So the short ways of
 * schedule, cancel and reset fail there, and the slow ways compare generations.
 *
 * The handler makes the registry's lock anew. It does not take it before the fork: a list below it
 * is in order at each step. Not covered: children of _Fork or a raw clone, where no handler runs.
 */
#ifndef TW_MPSC_PROCESS_H
#define TW_MPSC_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/service.h"

/* The one process-wide lock: threads' records and their ties to queues (mpsc/queue.h). */
extern pthread_mutex_t tw__registry;

/*
 * The forks between this process and the one that loaded the library, since the first call with
 * `watch`. UINT32_MAX: they cannot be watched, out of memory.
 */
TW_PRIVATE uint32_t tw__fork_generation(bool watch);

/*
 * The program's allocator, or NULL. From the first call on it is the same (tw_set_allocator).
 */
TW_PRIVATE const struct tw_allocator *tw__allocator(void);

/* ------------------------------------------------------------ cancellation */

/*
 * No call of the library is a cancellation point: a thread that ended inside would leave a lock
 * taken, or a role held. Where speed counts, system calls are made by syscall(), which is none. A
 * function that calls another one of the C library (close, nanosleep, pthread_join, stdio), or the
 * user's functions while it holds a role (close, an advance, a pump, a flush), begins with
 * TW__UNCANCELLED, or its callers do.
 */
static inline int tw__cancel_disable(void)
{
	int former;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
	return former;
}

static inline void tw__cancel_restore(const int *former)
{
	int unused;
	pthread_setcancelstate(*former, &unused);
}

/* From here to the end of the block this thread is not cancelled. */
#define TW__UNCANCELLED                                                                    \
	__attribute__((cleanup(tw__cancel_restore), unused)) const int tw__cancel_state_ = \
	    tw__cancel_disable()

/* Adds 1 to an eventfd's counter. Whether it did. */
static inline bool tw__eventfd_add(int fd)
{
	const uint64_t one = 1;
	return syscall(SYS_write, fd, &one, sizeof one) == (long)sizeof one;
}

/* Reads an eventfd's counter into *out, which makes it 0. False, with errno: it was 0 already. */
static inline bool tw__eventfd_take(int fd, uint64_t *out)
{
	return syscall(SYS_read, fd, out, sizeof *out) == (long)sizeof *out;
}

/* --------------------------------------------------- threads and processors */

struct tw_service_config;

/*
 * Starts a thread of the library's own: deaf to signals except for those that report its own faults
 * (G13), with the stack, processors and policy of the config. Its name is the config's prefix
 * followed by `suffix`. The policy goes to the tick thread only. 0, -EAGAIN, -ENOMEM, -EPERM or
 * -EINVAL.
 */
int tw__spawn(pthread_t *thread, const struct tw_service_config *config, const char *suffix,
	      bool is_tick_thread, void *(*main)(void *), void *arg);

/*
 * Tells the misuse hook why the system has refused a thread or memory. Returns `error`. No locks.
 */
int tw__system_refused(const char *call, int error);

enum { TW__WORKERS_MAX = 1024, TW__MAX_WORKERS_DEFAULT = 64 };

/* The processors that the process may use, by its affinity and its CPU quota. 1 .. 1024. */
unsigned tw__usable_cpus(void);

/*
 * The CPU quota of the process's own control group (v2, cpu.max), in whole processors, rounded up.
 * 0: none, or unknown. root: "" except in tests, which have files under it.
 */
unsigned tw__quota_cpus(const char *root);

/* cpus within a quota (0: none). */
unsigned tw__cpus_within(unsigned cpus, unsigned quota);

#endif
