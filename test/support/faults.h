/*
 * Failures on demand: what the library asks of malloc, calloc, aligned_alloc, mmap and pthread_create goes through here (the
 * linker's --wrap), and is counted. Other libraries' calls do not.
 */
#ifndef TEST_SUPPORT_FAULTS_H
#define TEST_SUPPORT_FAULTS_H

#include <stdbool.h>

/* From now on the n-th request (0: the next one) fails, and if `all` each one after it too. */
void faults_arm(long nth, bool all);

/* Back to normal. Whether a request was refused since faults_arm. */
bool faults_disarm(void);

/* Blocks of memory and mappings taken and not given back. */
long faults_outstanding(void);

#endif
