/* Persistent timers: what a reset does to one that is not armed. */
#ifndef TW_WHEEL_PERSISTENT_H
#define TW_WHEEL_PERSISTENT_H

#include "wheel/core/service.h"

/* The word has changed: look at it again. No errno and no outcome. */
enum { TW__RESET_AGAIN = 4096 };

/*
 * Arms a persistent timer that is disarmed, or runs. What tw_reset returns, or TW__RESET_AGAIN with
 * *word as it is now. An extension record has been looked at.
 */
int tw__persistent_reset(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick,
			 bool only_earlier);

#endif
