/* What looking at a timer shares with close. */
#ifndef TW_WHEEL_CANCEL_H
#define TW_WHEEL_CANCEL_H

#include "wheel/core/service.h"

/* How long an armed timer still has; a hint (tw_remaining). */
uint64_t tw__remaining_of(tw_service *service, uint32_t slot, uint64_t word);

#endif
