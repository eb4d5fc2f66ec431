/* Clocks that a program moves by hand. */
#ifndef TW_WHEEL_CLOCK_MANUAL_H
#define TW_WHEEL_CLOCK_MANUAL_H

#include "mpsc/base/clock.h"

/*
 * The first service that listens to a manual clock, for a simulation, which sets the clock and
 * tells them itself. NULL: none.
 */
struct tw__clock_listener *tw__clock_manual_first(tw_clock *clock);

#endif
