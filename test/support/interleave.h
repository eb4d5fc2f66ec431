/*
 * Races that are met on purpose: one call is stopped in the middle, and another thread's call is
 * made there.
 *
 * The points are before and after each locked instruction (x86-64), since a call changes what
 * others decide by there. The processor's single steps find them, so that the library needs no
 * hook. On other processors, under sanitizers that bear no traps, and where coverage is counted by
 * a locked instruction in each block, the other call is made beside the first one, at a random
 * moment.
 */
#ifndef TEST_SUPPORT_INTERLEAVE_H
#define TEST_SUPPORT_INTERLEAVE_H

#include <stdbool.h>

/* Whether the points are found. If not, a race is met by chance. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(COVERAGE)
enum { INTERLEAVES = 1 };
#else
enum { INTERLEAVES = 0 };
#endif

/*
 * Calls call(arg), and other(other_arg) on another thread at the nth point (from 1) of the first
 * call. That goes on when the other call has returned, or waits for a lock. Returns when both have
 * returned. False: the first call has no nth point, and the other call came after it.
 */
bool interleave(unsigned nth, void (*call)(void *arg), void *arg, void (*other)(void *arg),
		void *other_arg);

#endif
