/*
 * The finish bell: threads that wait for the end of a run, of a group's members, or of a batch call
 * sleep on it.
 */
#ifndef TW_WHEEL_FINISH_H
#define TW_WHEEL_FINISH_H

#include "wheel/core/service.h"

/* Moves the finish bell and wakes all threads that wait for it. */
void tw__ring_finish(tw_service *service);

#endif
