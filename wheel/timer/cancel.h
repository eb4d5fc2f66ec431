/* What cancelling and looking at a timer share with runs and close. */
#ifndef TW_WHEEL_CANCEL_H
#define TW_WHEEL_CANCEL_H

#include "wheel/core/service.h"

/*
 * A batch whose executor is gone drops this entry: its timer is cancelled, unless it is disarmed. A
 * disarmed timer stays, and the promise of this entry is taken back. The word that says whether it
 * is disarmed is the one that the compare-and-swap changes. So a tw_disarm beside this call either
 * comes first, and the timer stays, or finds the timer ended.
 */
void tw__cancel_entry(tw_service *service, uint64_t entry);

/*
 * Cancels a timer that has a release, without calling the release: for layers whose release takes
 * a lock that the caller holds. True: cancelled. False: its release was called, or will be.
 */
bool tw__cancel_silently(tw_service *service, tw_timer timer);

/*
 * How long an armed timer still has; UINT64_MAX: it is disarmed. False: the word has changed; *word
 * is what it is now. Then *left_ns is right only for the timer's owner, since nobody else writes
 * the slot's far deadline.
 */
bool tw__remaining_of(tw_service *service, uint32_t slot, uint64_t *word, uint64_t *left_ns);

#endif
