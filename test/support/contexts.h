/* Context hooks that install contexts as they are, and count them. NULL is not counted. */
#ifndef TEST_SUPPORT_CONTEXTS_H
#define TEST_SUPPORT_CONTEXTS_H

extern int captures, releases;

/* Sets the hooks, for the rest of the test. */
void contexts_count(void);

#endif
