/* What the driver offers to the rest of the core. */
#ifndef TW_WHEEL_POLL_H
#define TW_WHEEL_POLL_H

#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

struct tw__poll {
	uint64_t drained; /* lane entries */
	uint64_t pushed;  /* the same that threads have put since the poll before, read or not */
	uint64_t elapsed; /* ticks since the poll before */
	size_t done;      /* callbacks run or handed over */
	bool now;         /* more is due, in a lane or in the cascade of far timers */
	bool soon;        /* something is left for the next tick */
};

/* A poll that drains this many entries for each tick since the last one is no quiet one. */
enum { TW__BUSY_ENTRIES = 32 };

/* One whole poll, `driving` held. budget: callbacks to run or hand over. */
struct tw__poll tw__poll(tw_service *service, struct tw__local *local, size_t budget);

/* Takes in the chunks of batches that are over. How many runs were given back with them. */
unsigned tw__driver_collect(tw_service *service);

/* Whether there may be something in lanes that are not young (gate.h, GATE2). `driving` held. */
bool tw__driver_any_unread(tw_service *service);

/* ACCEPTING, unless the service is closed. */
static inline uint64_t tw__driver_accepting(const tw_service *service)
{
	/* the driver's own */
	return tw_load_relaxed(&service->phase.closed) ? 0 : TW__GATE_ACCEPTING;
}

/* A new word for the gate: flags, ACCEPTING, and the next sequence number, which stands for now. */
void tw__driver_publish(tw_service *service, uint64_t flags);

/* Refuses new timers: each push that no later drain sees, sees the gate closed. */
void tw__driver_publish_closed(tw_service *service);

#endif
