/* What scheduling and looking at timers share. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "wheel/core.h"

/* An UNFILED word's deadline bits: its delay in units of 2^20 ns (about 1 ms), for tw_remaining. */
enum { TW__HINT_SHIFT = 20 };

#endif
