/* Memory goes back after a storm; see trim.c. */
#ifndef TW_WHEEL_TRIM_H
#define TW_WHEEL_TRIM_H

#include "wheel/core.h"

/* A driver's, at the end of a turn. look: now and then, to see whether there is much to give. busy: traffic has come back. */
void tw__trim(tw_service *service, bool look, bool busy);

/* The tick thread's: the deadline, or the instant at which there will be something to give back. */
static inline uint64_t tw__trim_by(const tw_service *service, uint64_t deadline_ns)
{
	return service->trim_at_ns && service->trim_at_ns < deadline_ns ? service->trim_at_ns : deadline_ns;
}

#endif
