/* Batches that are not for the service's own executor, or not for running; see outbox.c. */
#ifndef TW_WHEEL_ROUTE_H
#define TW_WHEEL_ROUTE_H

#include "tickwheel/service.h"
#include "wheel/wheel.h"

enum { TW__ROUTE_TAILS = 128, TW__ROUTE_TAILS_MAX = 96, TW__ROUTE_REFUSED = 16, TW__ROUTE_REFUSED_BITS = 512 };

/* The driver's alone. */
struct tw__routes {
	struct tw__chunk_list list; /* each of one executor; in order for each */

	/* The newest chunks of executors, to be filled up: at the executor's hash, or at the next free place. */
	struct tw__chunk *tails[TW__ROUTE_TAILS];
	unsigned tail_count;

	/* Executors that have refused in this turn; beyond these, by a hash that is salted in each turn. */
	unsigned refused_count;
	tw_executor *refused[TW__ROUTE_REFUSED];
	uint64_t refused_bits[TW__ROUTE_REFUSED_BITS / 64];

	/* Chunks served in this turn, and that came in it; the first that this turn thins (poll.h). */
	unsigned served, came, thin_from;

	bool short_of_chunks; /* entries were put back into the wheel: look again next tick */
};

struct tw__local;

/* Takes the entries of timers that name another executor out of a due chunk, which may become empty. */
void tw__route_out(tw_service *service, struct tw__chunk *chunk);

/* Offers what is routed; what is refused goes by the service's policy. The number of runs handed over or run. */
size_t tw__route_deliver(tw_service *service, struct tw__local *local, size_t budget);

/*
 * TW_REFUSED_DROP: ends the timers of a chunk that `executor` has refused. Those with a release are condemned instead, and their entries
 * appended to `list` in this chunk; else it goes back to the store.
 */
void tw__route_drop(tw_service *service, struct tw__local *local, tw_executor *executor, struct tw__chunk *chunk,
		    struct tw__chunk_list *list);

#endif
