#include "test/support/faults.h"

#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

static _Atomic long countdown = LONG_MAX;
static _Atomic bool all_after, refused_any;
static _Atomic long outstanding;
static _Atomic bool no_membarrier, no_wipe;
static void (*call_what)(void *arg);
static void *call_arg;

void faults_arm(long nth, bool all)
{
	all_after = all;
	refused_any = false;
	countdown = nth;
}

void faults_call_at(long nth, void (*what)(void *arg), void *arg)
{
	call_what = what;
	call_arg = arg;
	faults_arm(nth, false);
}

bool faults_disarm(void)
{
	call_what = NULL;
	countdown = LONG_MAX;
	return refused_any;
}

void faults_refuse_membarrier(bool refuse)
{
	no_membarrier = refuse;
}

void faults_refuse_wipe(bool refuse)
{
	no_wipe = refuse;
}

long faults_outstanding(void)
{
	return outstanding;
}

static bool refuse(void)
{
	if (countdown == LONG_MAX)
		return false;
	long n = atomic_fetch_sub(&countdown, 1);
	bool refused = n == 0 || (n < 0 && all_after);
	if (refused)
		refused_any = true;
	if (refused && call_what)
		call_what(call_arg);
	return refused && !call_what;
}

static void *taken(void *block)
{
	outstanding += block != NULL;
	return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __real_madvise(void *at, size_t size, int advice);
long __real_syscall(long number, ...);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);
int __wrap_madvise(void *at, size_t size, int advice);
long __wrap_syscall(long number, ...);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : taken(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : taken(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return refuse() ? NULL : taken(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block)
{
	outstanding -= block != NULL;
	__real_free(block);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (refuse()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	outstanding++;
	return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	outstanding--;
	return __real_munmap(at, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
	return refuse() ? EAGAIN : __real_pthread_create(thread, attr, main, arg);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
	if (no_wipe && advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	return __real_madvise(at, size, advice);
}

/* As many arguments as any call has; those that were not given are whatever lies there, as the C library has it too. */
long __wrap_syscall(long number, ...)
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
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
