/*
 * Waking the driver, and threads that wait for the end of a run, of a group's members, or of a bulk
 * call: they sleep on the finish bell.
 */
#ifndef TW_WHEEL_WAKE_H
#define TW_WHEEL_WAKE_H

#include "wheel/core/service.h"

/* After a push whose deadline is known: wakes the driver if it sleeps longer than that. */
void tw__wake_for(tw_service *service, uint64_t deadline_ns);

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

/* Moves the finish bell and wakes all threads that wait for it. */
void tw__ring_finish(tw_service *service);

#endif
