/* Forked children: what they find is checked there, and told by their exit status. */
#ifndef TEST_SUPPORT_CHILD_H
#define TEST_SUPPORT_CHILD_H

#include <sys/types.h>

/*
 * Whether a child of a fork in the middle of other threads' calls may allocate and free. The
 * sanitizers (of gcc 12) hold on to locks of their allocator that other threads had taken, as the C
 * library does not.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHILD_ALLOCATES = 0 };
#else
enum { CHILD_ALLOCATES = 1 };
#endif

/* In a child: prints both sides and ends it if they differ. */
#define child_eq(actual, wanted) \
	child_compare(#actual, (long long)(actual), (long long)(wanted), __FILE__, __LINE__)
void child_compare(const char *what, long long is, long long wanted, const char *file, int line);

/*
 * fork(); a child that hangs is killed after a while, also where its thread had all signals
 * blocked.
 */
pid_t child_fork(void);

/* The child has ended, with exit status 0. For the test's own thread. */
void expect_child_well(pid_t child);

/* Runs body(arg) in a child, which must come to its end. */
void expect_in_child(void (*body)(void *arg), void *arg);

#endif
