/* Removing ended timers from waiting chunks. */
#ifndef TW_WHEEL_DRIVER_COMPACT_H
#define TW_WHEEL_DRIVER_COMPACT_H

#include "wheel/driver/outbox.h"

/* Compacts at most n chunks of each list of an outbox. Returns how many of them were not needed. */
unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n);

#endif
