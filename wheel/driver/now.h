/* The driver's reading of the clock. */
#ifndef TW_WHEEL_NOW_H
#define TW_WHEEL_NOW_H

#include "wheel/core/service.h"

/* Reads the service's clock; never earlier than the last reading. */
uint64_t tw__driver_now(tw_service *service);

#endif
