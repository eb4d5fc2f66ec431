#include "test/support/faults.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static _Atomic long countdown = LONG_MAX;
static _Atomic bool all_after, refused_any;
static _Atomic long outstanding;
static _Atomic(const char *) refused_what;
static _Atomic unsigned interrupt_each, sleeps;
static _Atomic bool no_membarrier;
static _Atomic(const char *) only_what; /* requests of this kind alone are counted; NULL: all */
static void (*_Atomic call_what)(void *arg);
static void *call_arg; /* written before call_what and countdown */

void faults_arm(long nth, bool all)
{
	all_after = all;
	refused_any = false;
	countdown = nth;
}

void faults_only(const char *what)
{
	only_what = what;
}

void faults_call_at(long nth, void (*what)(void *arg), void *arg)
{
	call_arg = arg;
	call_what = what;
	faults_arm(nth, false);
}

bool faults_disarm(void)
{
	call_what = NULL;
	only_what = NULL;
	countdown = LONG_MAX;
	return refused_any;
}

const char *faults_refused(void)
{
	return refused_what;
}

void faults_interrupt_sleeps(unsigned n)
{
	interrupt_each = n;
}

/* By turns what a signal and what a changed word answer. */
static bool interrupted(void)
{
	unsigned each = interrupt_each, n = each ? atomic_fetch_add(&sleeps, 1) : 0;
	if (!each || n % each)
		return false;
	errno = n / each % 2 ? EINTR : EAGAIN;
	return true;
}

struct hook {
	void (*what)(void *arg);
	void *arg;
};

static _Thread_local struct hook at_pauses, at_sleeps, at_reads;
static _Thread_local struct hook before_wakes, after_wakes;
static _Thread_local bool in_hook;

static void call(const struct hook *hook)
{
	if (!hook->what || in_hook)
		return;
	in_hook = true;
	hook->what(hook->arg);
	in_hook = false;
}

void faults_at_pauses(void (*what)(void *arg), void *arg)
{
	at_pauses = (struct hook){what, arg};
}

void faults_at_wakes(void (*before)(void *arg), void (*after)(void *arg), void *arg)
{
	before_wakes = (struct hook){before, arg};
	after_wakes = (struct hook){after, arg};
}

void faults_at_sleeps(void (*what)(void *arg), void *arg)
{
	at_sleeps = (struct hook){what, arg};
}

void faults_at_reads(void (*what)(void *arg), void *arg)
{
	at_reads = (struct hook){what, arg};
}

static struct hook at_starts;

void faults_at_starts(void (*what)(void *arg), void *arg)
{
	at_starts = (struct hook){what, arg};
}

/* What the linker's --wrap makes of a function: the one of the system, and the one here. */
#define WRAPPED(name) extern __typeof__(name) __real_##name, __wrap_##name

WRAPPED(read);
WRAPPED(sched_yield);
WRAPPED(nanosleep);
WRAPPED(malloc);
WRAPPED(calloc);
WRAPPED(aligned_alloc);
WRAPPED(free);
WRAPPED(mmap);
WRAPPED(munmap);
WRAPPED(syscall);
WRAPPED(pthread_create);
WRAPPED(epoll_create1);
WRAPPED(timerfd_create);
WRAPPED(eventfd);
WRAPPED(epoll_ctl);
WRAPPED(epoll_wait);

ssize_t __wrap_read(int fd, void *to, size_t size)
{
	call(&at_reads);
	return __real_read(fd, to, size);
}

int __wrap_sched_yield(void)
{
	call(&at_pauses);
	return __real_sched_yield();
}

int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
	call(&at_pauses);
	return __real_nanosleep(span, left);
}

void faults_refuse_membarrier(bool refuse)
{
	no_membarrier = refuse;
}

long faults_outstanding(void)
{
	return outstanding;
}

static bool refuse(const char *what)
{
	const char *only = only_what;
	if (countdown == LONG_MAX || (only && strcmp(only, what) != 0))
		return false;
	long n = atomic_fetch_sub(&countdown, 1);
	bool refused = n == 0 || (n < 0 && all_after);
	if (refused) {
		refused_any = true;
		refused_what = what;
	}
	void (*call_instead)(void *arg) = call_what;
	if (refused && call_instead)
		call_instead(call_arg);
	return refused && !call_instead;
}

static void *taken(void *block)
{
	outstanding += block != NULL;
	return block;
}

void *__wrap_malloc(size_t size)
{
	return refuse("malloc") ? NULL : taken(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse("calloc") ? NULL : taken(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return refuse("aligned_alloc") ? NULL : taken(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block)
{
	outstanding -= block != NULL;
	__real_free(block);
}

/* What is mapped in steps may be unmapped in one call: pages are counted. */
static long pages(size_t size)
{
	return (long)((size + 4095) / 4096);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	/* without access it is a question, whether the addresses are free, and takes no memory */
	if (protection != PROT_NONE && refuse("mmap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	void *got = __real_mmap(at, size, protection, flags, fd, offset);
	/* what replaces a part of a mapping goes with it */
	outstanding += got == MAP_FAILED || flags & MAP_FIXED ? 0 : pages(size);
	return got;
}

int __wrap_munmap(void *at, size_t size)
{
	outstanding -= pages(size);
	return __real_munmap(at, size);
}

struct start {
	void *(*main)(void *arg);
	void *arg;
	struct hook first;
};

static void *start_with_hook(void *arg)
{
	struct start start = *(struct start *)arg;
	__real_free(arg);
	start.first.what(start.first.arg);
	return start.main(start.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg)
{
	if (refuse("pthread_create"))
		return EAGAIN;
	if (!at_starts.what)
		return __real_pthread_create(thread, attr, main, arg);
	struct start *start = __real_malloc(sizeof *start);
	*start = (struct start){main, arg, at_starts};
	return __real_pthread_create(thread, attr, start_with_hook, start);
}

/*
 * It passes on six arguments, as the C library does: most calls have fewer. Those that were not
 * given are whatever lies there.
 */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (no_membarrier && number == SYS_membarrier && a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
		errno = EPERM;
		return -1;
	}
	if (number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
	    interrupted())
		return -1;
	if (number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
		call(&at_sleeps);
	if (number == SYS_read)
		call(&at_reads);
	bool wakes = number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE;
	if (wakes)
		call(&before_wakes);
	long r = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (wakes)
		call(&after_wakes);
	return r;
}

static int no_descriptor(void)
{
	errno = EMFILE;
	return -1;
}

int __wrap_epoll_create1(int flags)
{
	return refuse("epoll_create1") ? no_descriptor() : __real_epoll_create1(flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
	return refuse("timerfd_create") ? no_descriptor() : __real_timerfd_create(clock, flags);
}

int __wrap_eventfd(unsigned start, int flags)
{
	return refuse("eventfd") ? no_descriptor() : __real_eventfd(start, flags);
}

int __wrap_epoll_ctl(int fd, int what, int other, struct epoll_event *event)
{
	if (!refuse("epoll_ctl"))
		return __real_epoll_ctl(fd, what, other, event);
	errno = ENOSPC;
	return -1;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	if (!interrupted())
		return __real_epoll_wait(fd, events, most, timeout_ms);
	errno = EINTR;
	return -1;
}
