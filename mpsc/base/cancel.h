/*
 * pthread_cancel: no call of the library is a cancellation point. A thread that ended inside a call
 * would leave a lock taken, or a role held.
 *
 *   - Where speed counts, a system call is made by syscall(), which is no cancellation point.
 *   - A function that calls another cancellation point of the C library (close, nanosleep,
 *     pthread_join, stdio) begins with TW__UNCANCELLED, or its callers do.
 *   - So does a call that runs the user's functions while it holds a role: close, an advance, a
 *     pump, a flush.
 */
#ifndef TW_MPSC_CANCEL_H
#define TW_MPSC_CANCEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

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

#endif
