/* How many timers live. */
#ifndef TW_WHEEL_LIVE_H
#define TW_WHEEL_LIVE_H

#include "wheel/core/service.h"

/*
 * The number of live timers, by the lanes' counters; about right while other threads work.
 * *producers, which may be NULL: the number of lanes, without those of the service's own threads.
 */
uint64_t tw__live_timers(tw_service *service, uint64_t *producers);

#endif
