#include "test/support/faults.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static _Atomic long countdown = LONG_MAX;
static _Atomic bool all_after, refused_any;
static _Atomic long outstanding;

void faults_arm(long nth, bool all)
{
	all_after = all;
	refused_any = false;
	countdown = nth;
}

bool faults_disarm(void)
{
	countdown = LONG_MAX;
	return refused_any;
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
	return refused;
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
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);
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
