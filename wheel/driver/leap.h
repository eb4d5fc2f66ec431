/* What the driver does when the cursor leaves the range in which near words read right. */
#ifndef TW_WHEEL_LEAP_H
#define TW_WHEEL_LEAP_H

#include "wheel/core/service.h"

/* Before the wheel is turned to `target`. Returns the tick to turn to: an earlier one if a leap is not possible yet. */
uint64_t tw__leap_begin(tw_service *service, uint64_t target);

/* After the wheel was turned. */
void tw__leap_end(tw_service *service);

#endif
