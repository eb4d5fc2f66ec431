/* The last step of every timer. */
#ifndef TW_WHEEL_RELEASE_H
#define TW_WHEEL_RELEASE_H

#include "wheel/core/local.h"

/*
 * Frees the word of a timer that this thread owns, takes it off its group's list, gives the slot
 * back, and wakes waiters. local may be NULL. group: the index, or 0.
 */
void tw__set_free(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  uint32_t group);

/*
 * Calls the release of a releasing timer (if it has one), then frees it. local may be NULL. True:
 * user code has run.
 */
bool tw__release(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		 enum tw_fate fate);

#endif
