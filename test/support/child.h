/* Forked children: what they find is checked there, and told by their exit status. */
#ifndef TEST_SUPPORT_CHILD_H
#define TEST_SUPPORT_CHILD_H

#include <sys/types.h>

/* In a child: prints both sides and ends it if they differ. */
#define child_eq(actual, wanted) child_compare(#actual, (long long)(actual), (long long)(wanted), __FILE__, __LINE__)
void child_compare(const char *what, long long is, long long wanted, const char *file, int line);

/* fork(); a child that hangs is killed after a while, also where its thread had all signals blocked. */
pid_t child_fork(void);

/* The child has ended, with exit status 0. For the test's own thread. */
void expect_child_well(pid_t child);

/* Runs body(arg) in a child, which must come to its end. */
void expect_in_child(void (*body)(void *arg), void *arg);

#endif
