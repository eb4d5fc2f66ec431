/*
 * Tells ThreadSanitizer of an order that it cannot see in a library that was built without it. Only
 * where two threads of the user meet with nothing of the library on their stacks: otherwise
 * packaging/tsan.supp applies.
 */
#ifndef TW_MPSC_TSAN_H
#define TW_MPSC_TSAN_H

#include "mpsc/base/atomics.h"

void __tsan_acquire(void *object) __attribute__((weak));
void __tsan_release(void *object) __attribute__((weak));

static inline void tw_tsan_acquire(void *object)
{
	if (tw_unlikely(__tsan_acquire != NULL))
		__tsan_acquire(object);
}

static inline void tw_tsan_release(void *object)
{
	if (tw_unlikely(__tsan_release != NULL))
		__tsan_release(object);
}

#endif
