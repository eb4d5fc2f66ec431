/* Memory goes back after a storm; see purge.c. */
#ifndef TW_WHEEL_PURGE_H
#define TW_WHEEL_PURGE_H

#include "wheel/core/service.h"

/* The driver's. */
struct tw__purge {
	bool purging;                   /* memory is going back, a step a poll */
	uint32_t next_slots, next_exts; /* blocks from here on have been looked at */
	/* when that begins, if things stay as they are; 0: nothing to give */
	uint64_t begin_ns;
};

/*
 * A driver's, at the end of a poll. look: now and then, to see whether there is much to give. busy:
 * traffic has come back.
 */
void tw__purge_step(tw_service *service, bool look, bool busy);

/* The tick thread's: the deadline, or the instant at which it is to wake up to give memory back. */
uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns);

#endif
