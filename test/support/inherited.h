/* What a forked child finds of its parent's services, and what it can have of its own. All end a child that finds otherwise. */
#ifndef TEST_SUPPORT_INHERITED_H
#define TEST_SUPPORT_INHERITED_H

#include "tickwheel.h"

/* Each call on the service answers as in a child; destroy, which is not made here, apart. */
void check_calls(tw_service *service, tw_timer timer);

/* A service of its own, with threads; one on a manual clock. */
void check_own_service(void);
void check_own_clock(void);

#endif
