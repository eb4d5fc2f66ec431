/* Waking the driver, by any thread. */
#ifndef TW_WHEEL_WAKE_H
#define TW_WHEEL_WAKE_H

#include "wheel/core/service.h"

/* After a push whose deadline is known: wakes the driver if it sleeps longer than that. */
void tw__wake_for(tw_service *service, uint64_t deadline_ns);

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

#endif
