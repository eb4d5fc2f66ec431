/* TW_REFUSED_DROP. */
#ifndef TW_WHEEL_DRIVER_DROP_H
#define TW_WHEEL_DRIVER_DROP_H

#include "wheel/driver/outbox.h"

/*
 * Ends the timers of a chunk that their executor has refused, calls their releases, and puts the
 * chunk back.
 */
void tw__outbox_drop(tw_service *service, struct tw__local *local, struct tw__chunk *chunk);

#endif
