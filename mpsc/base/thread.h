/*
 * Threads that the library makes: named, deaf to signals except for those that report their own
 * faults (G13), with the stack, processors and policy that the config asks for.
 */
#ifndef TW_MPSC_THREAD_H
#define TW_MPSC_THREAD_H

#include <pthread.h>

#include "tickwheel/service.h"

/*
 * Its name is the config's prefix followed by `suffix`. The scheduling policy goes to the tick
 * thread only. 0, -EAGAIN, -ENOMEM, -EPERM or -EINVAL.
 */
int tw__spawn(pthread_t *thread, const struct tw_service_config *config, const char *suffix,
	      bool is_tick_thread, void *(*main)(void *), void *arg);

/*
 * Tells the misuse hook which knobs the system can have refused (-EINVAL), or which limits were met
 * (-EAGAIN, -ENOMEM). Returns `error`. Call it without locks held: the hook is user code.
 */
int tw__system_refused(const char *call, int error);

enum { TW__WORKERS_MAX = 1024, TW__MAX_WORKERS_DEFAULT = 64 };

/* The processors that the process may use, by its affinity and its CPU quota. 1 .. 1024. */
unsigned tw__usable_cpus(void);

/*
 * The CPU quota of the process's own control group (v2, cpu.max), in whole processors, rounded up.
 * 0: none, or the system does not say. A quota of a group above it does not count. root: "" except
 * in tests, which have files under it.
 */
unsigned tw__quota_cpus(const char *root);

/* cpus within a quota (0: none). */
unsigned tw__cpus_within(unsigned cpus, unsigned quota);

#endif
