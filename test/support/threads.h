/* The threads of this process, its descriptors and its memory. */
#ifndef TEST_SUPPORT_THREADS_H
#define TEST_SUPPORT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* The number of threads, as the kernel lists them. A thread may be listed after it was joined. */
int threads_alive(void);

/* Whether a thread runs, or waits for a processor. */
bool thread_is_runnable(long id);

int threads_runnable(void);

int descriptors_open(void);

int64_t resident_bytes(void);

#endif
