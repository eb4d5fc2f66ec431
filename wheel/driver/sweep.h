/* Sweeping dead entries out of the wheel and out of outboxes. */
#ifndef TW_WHEEL_SWEEP_H
#define TW_WHEEL_SWEEP_H

#include "wheel/driver/outbox.h"
#include "wheel/core/service.h"

/* Sweeps a part if a sweep is under way, or, with `look`, if one is wanted. */
void tw__sweep(tw_service *service, uint64_t drained, bool look);

/* Whether a sweep is wanted. */
bool tw__sweep_wanted(tw_service *service);

/* A whole sweep in one call. */
void tw__sweep_all(tw_service *service);

/* Goes on through about n chunks of an outbox. How many it has not used. */
unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n);

#endif
