/*
 * What a forked child finds of its parent's services, and what it can have of its own. All end a
 * child that finds otherwise.
 */
#ifndef TEST_SUPPORT_INHERITED_H
#define TEST_SUPPORT_INHERITED_H

#include <sys/types.h>

#include "tickwheel.h"

/*
 * child_fork() in the worst moment: each lock of the service, and the process-wide one, is held. In
 * the parent they are free again afterwards.
 */
pid_t fork_amid_locks(tw_service *service);

/* Runs body(arg) in such a child, which must come to its end. */
void expect_amid_locks(tw_service *service, void (*body)(void *arg), void *arg);

/* Calls on the service answer as in a child; destroy, which is not made here, apart. */
void check_calls(tw_service *service, tw_timer timer);

/* A service of its own, with threads; one on a manual clock. */
void check_own_service(void);
void check_own_clock(void);

#endif
