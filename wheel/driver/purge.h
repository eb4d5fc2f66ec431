/* Memory goes back after a storm; see purge.c. */
#ifndef TW_WHEEL_PURGE_H
#define TW_WHEEL_PURGE_H

#include "wheel/core/service.h"

/* Slots, extension records, chunks of the wheel. */
enum { TW__PURGE_PARTS = 3 };

struct tw__purge_part {
	struct tw__depot *depot;
	uint32_t kept; /* beyond one and a half times the need */
	uint32_t next; /* blocks from here on have been looked at */
	/* what was in use when the last pass began, and held when it ended */
	uint64_t used_before, held_after;
};

/* The driver's. */
struct tw__purge {
	struct tw__purge_part parts[TW__PURGE_PARTS];
	bool purging; /* memory is going back, a step a poll */
	/* when that begins, if things stay as they are; 0: nothing to give */
	uint64_t begin_ns;
};

/* At the service's creation. */
void tw__purge_init(tw_service *service);

/*
 * A driver's, at the end of a poll. look: now and then, to see whether there is much to give. busy:
 * traffic has come back.
 */
void tw__purge_step(tw_service *service, bool look, bool busy);

/*
 * The driver's, before it sleeps: looks whether there is much to give, which was freed since the
 * last poll, or while memory went back.
 */
void tw__purge_look(tw_service *service);

/* It is time to give memory back, by the driver's last reading of the clock. */
bool tw__purge_is_due(const tw_service *service);

/* The driver's: the deadline, or the instant at which it is to wake up to give memory back. */
uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns);

#endif
