/* The threads of this process. */
#ifndef TEST_SUPPORT_THREADS_H
#define TEST_SUPPORT_THREADS_H

/* The number of threads, as the kernel lists them. A thread may be listed after it was joined. */
int threads_alive(void);

#endif
