/* What a call does that a leap of the clock has overtaken. */
#ifndef TW_WHEEL_WHOLE_H
#define TW_WHEEL_WHOLE_H

#include "wheel/core/service.h"
#include "wheel/core/ticks.h"

/*
 * Writes the deadline of a timer whole, and asks the driver to file all timers anew. `written` is the near word that this thread has
 * published, and `tick` its deadline. A timer that was moved since keeps its deadline.
 */
void tw__write_whole(tw_service *service, uint32_t slot, uint64_t written, uint64_t tick);

#endif
