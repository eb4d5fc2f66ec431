/* Removing ended timers from waiting chunks. */
#ifndef TW_WHEEL_DRIVER_COMPACT_H
#define TW_WHEEL_DRIVER_COMPACT_H

#include "wheel/driver/outbox.h"

/* Goes on through at most n chunks of an outbox. Returns how many it has not used. */
unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n);

#endif
