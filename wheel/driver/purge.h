/* Memory goes back after a storm; see purge.c. */
#ifndef TW_WHEEL_TRIM_H
#define TW_WHEEL_TRIM_H

#include "wheel/core/service.h"

/* The driver's. */
struct tw__purge {
	bool trimming;                     /* memory is going back, a step a turn */
	uint32_t trim_slots, trim_options; /* blocks from here on have been looked at */
	/* when that begins, if things stay as they are; 0: nothing to give */
	uint64_t trim_at_ns;
};

/*
 * A driver's, at the end of a turn. look: now and then, to see whether there is much to give. busy:
 * traffic has come back.
 */
void tw__trim(tw_service *service, bool look, bool busy);

/* The tick thread's: the deadline, or the instant at which it is to wake up to give memory back. */
uint64_t tw__trim_by(const tw_service *service, uint64_t deadline_ns);

#endif
