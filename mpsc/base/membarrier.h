/*
 * The heavy half of an asymmetric barrier (Linux's membarrier; the idea is userspace-rcu's).
 *
 * The frequent side does `store; tw_compiler_barrier(); load`, the rare side `store;
 * tw__membarrier(); load`. The kernel makes every running thread of the process pass a full
 * barrier, so that of the two loads at least one sees the other side's store.
 */
#ifndef TW_MPSC_MEMBARRIER_H
#define TW_MPSC_MEMBARRIER_H

#include <stdbool.h>

/* Registers the process; false where the kernel has it not. Any thread, any number of times. */
bool tw__membarrier_register(void);

/* False: refused after all (a sandbox, say); then nothing may be concluded. */
bool tw__membarrier(void);

#endif
