/* What the driver offers to the rest of the core. */
#ifndef TW_WHEEL_POLL_H
#define TW_WHEEL_POLL_H

#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

struct tw__turn {
	uint64_t drained; /* lane entries */
	uint64_t elapsed; /* ticks since the turn before */
	size_t done;      /* callbacks run or handed over */
	bool again;       /* a lane was left with entries */
	bool behind;      /* more far timers should have been moved nearer by now, or groups wait for their settling */
};

/* A turn that drains so many entries for each tick since the last one is no quiet one. */
enum { TW__BUSY_ENTRIES = 32 };

/* One whole turn, `driving` held. budget: callbacks to run or hand over. */
struct tw__turn tw__turn(tw_service *service, struct tw__local *local, size_t budget);

/* Files an entry again that was handed over, or has left the wheel, if it is current (resolve.c). The driver's. */
void tw__refile(tw_service *service, uint64_t entry);

/* TW_CLOSE_RUN: what is handed over runs whatever its deadline. */
bool tw__forced(const tw_service *service);

/* TW_CLOSE_DROP: the closer ends all that is pending; what was ready stays where it is. */
static inline bool tw__dropping(const tw_service *service)
{
	return tw_load_relaxed(&service->phase.closed) == TW__CLOSING_DROP;
}

/* Groups wait to be settled, and there are chunks to hand them over in; else they wait for a tick. */
static inline bool tw__groups_ready(const tw_service *service)
{
	return !tw__dropping(service) && tw__groups_waiting(&service->groups) && !tw__short_of_chunks(service);
}

/* Takes in the chunks of batches that are over. The number of runs that were given back with them. `driving` held. */
unsigned tw__driver_take_home(tw_service *service);

/* Takes what lies in the lanes, or has come home with a batch, without turning. As tw__drain. `driving` held. */
uint64_t tw__driver_gather(tw_service *service, bool *again);

/* Whether there may be something in the lanes (gate.h, GATE2). `driving` held. */
bool tw__driver_any_unread(tw_service *service);

/* What a word that the driver publishes says of it: the gate accepts what is new, but for a closed one. */
static inline uint64_t tw__driver_accepting(const tw_service *service)
{
	return tw_load_relaxed(&service->phase.closed) ? 0 : TW__GATE_ACCEPTING; /* the driver's own */
}

/* A new word for the gate: flags (but ACCEPTING, which is added), and the next sequence number, which stands for now. `driving` held. */
void tw__driver_publish(tw_service *service, uint64_t flags);

/* Refuses new timers from here on: each push that no later drain sees, sees the gate closed. `driving` held. */
void tw__driver_publish_closed(tw_service *service, uint32_t mode);

#endif
