/* What the driver offers to the rest of the core. */
#ifndef TW_WHEEL_POLL_H
#define TW_WHEEL_POLL_H

#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

struct tw__poll {
	uint64_t drained; /* lane entries */
	uint64_t elapsed; /* ticks since the poll before */
	size_t done;      /* callbacks run or handed over */
	bool again;       /* a lane was left with entries */
	bool behind;      /* the cascade of far timers */
};

/* A poll that drains this many entries for each tick since the last one is no quiet one. */
enum { TW__BUSY_ENTRIES = 32 };

/* One whole poll, `driving` held. budget: callbacks to run or hand over. */
struct tw__poll tw__poll(tw_service *service, struct tw__local *local, size_t budget);

/* Files an entry that did not get its run, if its timer is alive. The driver's. */
void tw__refile(tw_service *service, uint64_t entry);

/* TW_CLOSE_RUN: what is handed over runs whatever its deadline. */
bool tw__forced(const tw_service *service);

/*
 * TW_CLOSE_DROP: threads that close end all pending timers, and ready runs stay where they are. So
 * from the moment that a close asks for it: what a schedule pushes after that close has answered,
 * and the gate is open still, does not run.
 */
static inline bool tw__dropping(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing) == TW__CLOSING_DROP;
}

/*
 * Takes in the chunks of batches that are over. The number of runs that were given back with them.
 * `driving` held.
 */
unsigned tw__driver_collect(tw_service *service);

/* Whether there may be something in the lanes (gate.h, GATE2). `driving` held. */
bool tw__driver_any_unread(tw_service *service);

/*
 * What a word that the driver publishes says of it: the gate accepts new work,
 * unless it is closed.
 */
static inline uint64_t tw__driver_accepting(const tw_service *service)
{
	/* the driver's own */
	return tw_load_relaxed(&service->phase.closed) ? 0 : TW__GATE_ACCEPTING;
}

/*
 * A new word for the gate: flags (but ACCEPTING, which is added), and the next sequence number,
 * which stands for now. `driving` held.
 */
void tw__driver_publish(tw_service *service, uint64_t flags);

/*
 * Refuses new timers from here on: each push that no later drain sees, sees the gate closed.
 * `driving` held.
 */
void tw__driver_publish_closed(tw_service *service);

#endif
