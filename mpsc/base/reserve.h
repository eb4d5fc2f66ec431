/* Address space for arrays that grow with use. */
#ifndef TW_MPSC_RESERVE_H
#define TW_MPSC_RESERVE_H

#include <stddef.h>

/*
 * Reserves `bytes` of zeroed memory, whose pages come when they are first touched. That also holds
 * in a process that locks what it maps (mlockall with MCL_FUTURE): the memory is not locked, so it
 * does not count against RLIMIT_MEMLOCK. NULL: the system refuses. munmap gives it back.
 */
void *tw__reserve(size_t bytes);

/*
 * 1 if the process locks and fills what it maps from now on: mlockall with MCL_FUTURE and without
 *   MCL_ONFAULT. 0 if it does
 * not. -EAGAIN: RLIMIT_MEMLOCK leaves no room. -ENOMEM.
 */
int tw__new_memory_is_locked(void);

#endif
