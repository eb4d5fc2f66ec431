/* Closing a service over a given executor. */
#ifndef TW_WHEEL_CLOSE_H
#define TW_WHEEL_CLOSE_H

#include "tickwheel/service.h"

/*
 * tw_service_close. quiet(service) is called once, when nothing is left, while other calls still
 * wait: it ends the executor's threads. alone: no other thread uses the service, nor will.
 */
int tw__core_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns,
		   void (*quiet)(tw_service *), bool alone);

#endif
