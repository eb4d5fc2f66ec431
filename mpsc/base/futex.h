/*
 * Sleeping on a 32-bit word, by Linux's futex. Deadlines are CLOCK_MONOTONIC nanoseconds;
 * UINT64_MAX: none.
 */
#ifndef TW_MPSC_FUTEX_H
#define TW_MPSC_FUTEX_H

#include <stdint.h>

#include "mpsc/base/atomics.h"

/*
 * Sleeps while *word == expected, at most until the deadline; may return early for any reason.
 * False: timed out.
 */
bool tw__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);

/* Wakes up to n sleepers (INT_MAX: all). */
void tw__futex_wake(_Atomic uint32_t *word, int n);

#endif
