/* Closing a service over a given executor. */
#ifndef TW_WHEEL_CLOSE_H
#define TW_WHEEL_CLOSE_H

#include "tickwheel/service.h"

/*
 * tw_service_close_with; `options` is complete and sound. quiet(service) is called once, when
 * nothing is left, by the close owner, while other calls still wait: it ends the executor's
 * threads. alone: no other thread uses the service, nor will.
 */
int tw__core_close(tw_service *service, const struct tw_close_options *options,
		   void (*quiet)(tw_service *), bool alone);

#endif
