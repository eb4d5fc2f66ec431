/*
 * Failures on demand: what the library asks of malloc, calloc, aligned_alloc, mmap, mremap,
 * pthread_create, for
 * descriptors and of the kernel goes through here (the
 * linker's --wrap), and is counted. Other libraries' calls do not.
 */
#ifndef TEST_SUPPORT_FAULTS_H
#define TEST_SUPPORT_FAULTS_H

#include <stdbool.h>

/* From now on the n-th request (0: the next one) fails, and if `all` each one after it too. */
void faults_arm(long nth, bool all);

/*
 * From now on only requests of this kind (as faults_refused names it) count, until faults_disarm.
 */
void faults_only(const char *what);

/* Back to normal. Whether a request was refused since faults_arm. */
bool faults_disarm(void);

/* Of what kind the request was that was refused last: "malloc", "timerfd_create" .. */
const char *faults_refused(void);

/*
 * From now on each n-th sleep (futex, epoll) returns immediately, as after a signal or a changed
 * word. 0: no more.
 */
void faults_interrupt_sleeps(unsigned n);

/*
 * The n-th request from now on (0: the next one) calls what(arg) first, and is then granted: a
 * moment in the middle of a call.
 */
void faults_call_at(long nth, void (*what)(void *arg), void *arg);

/*
 * Moments in the middle of what the calling thread does; each hook replaces the one before, NULL:
 * no more. A hook's own pauses and wakes call none. Pauses (sched_yield, nanosleep): what a thread
 * does that waits for a moment; the hook comes first. Wakes of a futex: before and after. Sleeps on
 * a futex: before, when all is decided.
 */
void faults_at_pauses(void (*what)(void *arg), void *arg);
void faults_at_wakes(void (*before)(void *arg), void (*after)(void *arg), void *arg);
void faults_at_sleeps(void (*what)(void *arg), void *arg);

/* Reads of a descriptor: before. */
void faults_at_reads(void (*what)(void *arg), void *arg);

/*
 * Each thread that any thread starts from now on calls what(arg) first, as if the system had not
 * given it a processor earlier. NULL: no more.
 */
void faults_at_starts(void (*what)(void *arg), void *arg);

/*
 * From now on, or no more: membarrier, which worked so far, is refused, as in a sandbox entered
 * late.
 */
void faults_refuse_membarrier(bool refuse);

/* Blocks of memory and mappings taken and not given back. */
long faults_outstanding(void);

#endif
