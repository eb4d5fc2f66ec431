/* What looking at a timer shares with close. */
#ifndef TW_WHEEL_CANCEL_H
#define TW_WHEEL_CANCEL_H

#include "wheel/core/service.h"

/*
 * How long an armed timer still has; UINT64_MAX: it is disarmed. False: the word has changed; *word
 * is what it is now. Then *left_ns is right only for the timer's owner, since nobody else writes
 * the slot's far deadline.
 */
bool tw__remaining_of(tw_service *service, uint32_t slot, uint64_t *word, uint64_t *left_ns);

#endif
