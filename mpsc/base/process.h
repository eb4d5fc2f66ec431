/*
 * The process: forks, cancelled threads, threads of the library's own, processors.
 *
 * Forks: a child uses nothing that its parent has made. Each object knows the generation in which
 * it was made; a handler of pthread_atfork raises the generation in a child. Another one clears
 * what its thread remembers of lanes (mpsc/queue.h). So the short ways of schedule, cancel and
 * reset fail there, and the slow ways compare generations. The registry's lock is made anew: lists
 * below it are in order at each step. Not covered: _Fork or a raw clone, where no handler runs.
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

/* The one process-wide lock: of threads' records and their ties to queues. */
extern pthread_mutex_t tw__registry;

/* Forks since the first call with `watch`. UINT32_MAX: no memory to watch them. */
TW_PRIVATE uint32_t tw__fork_generation(bool watch);

/* The program's allocator; NULL: malloc's. It is the same from the first call on. */
TW_PRIVATE const struct tw_allocator *tw__allocator(void);

/* ------------------------------------------------------------ cancellation */

/*
 * No call of the library is a cancellation point: a thread that ended inside would leave a lock
 * taken. On fast ways system calls are made by syscall(), which is none. A function that calls
 * another one of the C library (close, nanosleep, pthread_join, stdio), or the user's while it
 * holds a role, begins with TW__UNCANCELLED, or its callers do.
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

/* The thread is not cancelled from here to the end of the block. */
#define TW__UNCANCELLED                                                                    \
	__attribute__((cleanup(tw__cancel_restore), unused)) const int tw__cancel_state_ = \
	    tw__cancel_disable()

static inline bool tw__eventfd_add(int fd)
{
	const uint64_t one = 1;
	return syscall(SYS_write, fd, &one, sizeof one) == (long)sizeof one;
}

/* Takes the counter, which is 0 then. False, with errno set: it was 0. */
static inline bool tw__eventfd_take(int fd, uint64_t *out)
{
	return syscall(SYS_read, fd, out, sizeof *out) == (long)sizeof *out;
}

/* --------------------------------------------------- threads and processors */

struct tw_service_config;

/*
 * Starts a thread of the library's own: deaf to signals except for its own faults (G13), with the
 * config's stack and processors, its prefix and `suffix` as name. The policy is the tick thread's.
 */
int tw__spawn(pthread_t *thread, const struct tw_service_config *config, const char *suffix,
	      bool is_tick_thread, void *(*main)(void *), void *arg);

/* Tells the misuse hook why the system has refused. Returns `error`. */
int tw__system_refused(const char *call, int error);

enum { TW__WORKERS_MAX = 1024, TW__MAX_WORKERS_DEFAULT = 64 };

/* Reads the start of a file, root and path joined, as fscanf. EOF: there is none. */
__attribute__((format(scanf, 3, 4))) int tw__file_scan(const char *root, const char *path,
						       const char *format, ...);

/* The processors that the affinity and the CPU quota allow: 1 .. 1024. */
unsigned tw__usable_cpus(void);

/*
 * The CPU quota of the process's control group (v2, cpu.max), rounded up. 0: none, or unknown.
 * root: "", or a test's directory.
 */
unsigned tw__quota_cpus(const char *root);

/* The processors within a quota; a quota of 0 is none. */
unsigned tw__cpus_within(unsigned cpus, unsigned quota);

#endif
