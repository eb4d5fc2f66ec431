#include "mpsc/base/process.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "mpsc/base/clock.h"
#include "mpsc/base/entry.h"
#include "mpsc/base/misuse.h"
#include "tickwheel/service.h"

pthread_mutex_t tw__registry = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint32_t generation;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static bool watching;

static void process_after_fork_in_child(void)
{
	tw__registry = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	tw_add_relaxed(&generation, 1);
	tw__clock_default_forget();
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
	return tw_load_relaxed(&generation); /* changes while there is one thread */
}

/* ---------------------------------------------------------------- allocator */

static struct tw_allocator allocator; /* all NULL: malloc's */
static _Atomic bool allocator_used;

/* Its line is read often, and written once. */
const struct tw_allocator *tw__allocator(void)
{
	if (tw_unlikely(!tw_load_relaxed(&allocator_used)))
		tw_store_relaxed(&allocator_used, true);
	return allocator.malloc ? &allocator : NULL;
}

int tw_set_allocator(const struct tw_allocator *own)
{
	struct tw_allocator known = {0};
	int r = own ? TW__STRUCT_READ(tw_allocator, &known, user, own) : 0;
	if (r)
		return r;
	const char *bad = NULL;
	tw__need(&bad, !own || known.malloc, "malloc");
	tw__need(&bad, !own || known.calloc, "calloc");
	tw__need(&bad, !own || known.free, "free");
	r = tw__bad_member(-EINVAL, __func__, "tw_allocator", bad);
	if (r || tw_load_relaxed(&allocator_used))
		return r ? r : -EBUSY;
	allocator = known;
	return 0;
}

/* --------------------------------------------------- threads and processors */

/* A core dump has stacks in full. */
enum { STACK_SIZE_DEFAULT = 1 << 20 };

static void faults_only(sigset_t *mask)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	sigfillset(mask);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(mask, faults[i]);
}

/* Positive errno, as the pthread calls. */
static int set_attributes(pthread_attr_t *attr, const struct tw_service_config *config,
			  bool is_tick_thread)
{
	size_t stack_size = config->stack_size ? config->stack_size : STACK_SIZE_DEFAULT;
	int r = pthread_attr_setstacksize(attr, stack_size);
#ifdef __GLIBC__
	if (!r && config->affinity)
		r = pthread_attr_setaffinity_np(attr, config->affinity_size, config->affinity);
#endif
	if (!r && is_tick_thread && config->sched_policy != SCHED_OTHER) {
		struct sched_param param = {.sched_priority = config->sched_priority};
		r = pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
		r = r ? r : pthread_attr_setschedpolicy(attr, config->sched_policy);
		r = r ? r : pthread_attr_setschedparam(attr, &param);
	}
	return r;
}

/*
 * Without that attribute (musl), the new thread inherits the processors of its maker. Positive
 * errno.
 */
static int thread_create(pthread_t *thread, const pthread_attr_t *attr,
			 const struct tw_service_config *config, void *(*main)(void *), void *arg)
{
#ifndef __GLIBC__
	cpu_set_t own;
	if (config->affinity) {
		if (sched_getaffinity(0, sizeof own, &own) ||
		    sched_setaffinity(0, config->affinity_size, config->affinity))
			return errno;
		int r = pthread_create(thread, attr, main, arg);
		sched_setaffinity(0, sizeof own, &own);
		return r;
	}
#else
	(void)config; /* the attribute says it */
#endif
	return pthread_create(thread, attr, main, arg);
}

tw_cold int tw__spawn(pthread_t *thread, const struct tw_service_config *config, const char *suffix,
		      bool is_tick_thread, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t mask, before;
	if (pthread_attr_init(&attr))
		return -ENOMEM;
	int r = set_attributes(&attr, config, is_tick_thread);
	if (!r) {
		faults_only(&mask);
		pthread_sigmask(SIG_SETMASK, &mask, &before); /* inherited by the new thread */
		r = thread_create(thread, &attr, config, main, arg);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (!r) {
		char name[16];
		snprintf(name, sizeof name, "%.9s%s", config->thread_name, suffix);
		pthread_setname_np(*thread, name);
	}
	return -r;
}

int tw__system_refused(const char *call, int error)
{
	if (error == -EINVAL)
		tw__refuse_tell(call, "the system refuses a thread with this stack_size, "
				      "affinity or sched_priority");
	else if (error == -EAGAIN || error == -ENOMEM)
		tw__refuse_tell(call,
				"the system refuses %s; see ulimit -u, ulimit -v and, after "
				"mlockall, ulimit -l",
				error == -EAGAIN ? "a thread" : "memory");
	return error;
}

int tw__file_scan(const char *root, const char *path, const char *format, ...)
{
	TW__UNCANCELLED;
	char name[PATH_MAX];
	int n = snprintf(name, sizeof name, "%s%s", root, path);
	FILE *file = n < (int)sizeof name ? fopen(name, "re") : NULL;
	if (!file)
		return EOF;
	va_list arguments;
	va_start(arguments, format);
	n = vfscanf(file, format, arguments);
	va_end(arguments);
	fclose(file);
	return n;
}

unsigned tw__quota_cpus(const char *root)
{
	char group[PATH_MAX], path[PATH_MAX + 32], end;
	long long quota, period;
	if (tw__file_scan(root, "/proc/self/cgroup", "0::%4095[^\n]%c", group, &end) != 2)
		return 0;
	snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
	/* "max period": none */
	if (tw__file_scan(root, path, "%lld %lld", &quota, &period) != 2 || quota <= 0 ||
	    period <= 0)
		return 0;
	long long cpus = quota / period + (quota % period != 0);
	return cpus < UINT_MAX ? (unsigned)cpus : 0;
}

unsigned tw__cpus_within(unsigned cpus, unsigned quota)
{
	unsigned n = quota && quota < cpus ? quota : cpus;
	return n < 1 ? 1 : n > TW__WORKERS_MAX ? TW__WORKERS_MAX : n;
}

unsigned tw__usable_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return tw__cpus_within((unsigned)n, tw__quota_cpus(""));
}
