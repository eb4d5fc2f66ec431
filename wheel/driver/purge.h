/* Memory goes back after a storm; see purge.c. */
#ifndef TW_WHEEL_TRIM_H
#define TW_WHEEL_TRIM_H

#include "wheel/core/service.h"

/* A driver's, at the end of a turn. look: now and then, to see whether there is much to give. busy: traffic has come back. */
void tw__trim(tw_service *service, bool look, bool busy);

/* Turns that come anyway give memory back a second after a storm; a tick thread that sleeps is woken for it only so much later (G9). */
#define TW__TRIM_ASLEEP_NS UINT64_C(10000000000)

/* The tick thread's: the deadline, or the instant at which it is to wake up to give memory back. */
static inline uint64_t tw__trim_by(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t wake_ns = service->trim_at_ns + TW__TRIM_ASLEEP_NS;
	return service->trim_at_ns && wake_ns < deadline_ns ? wake_ns : deadline_ns;
}

#endif
