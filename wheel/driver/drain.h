/* Emptying the lanes. */
#ifndef TW_WHEEL_DRAIN_H
#define TW_WHEEL_DRAIN_H

#include "wheel/core/service.h"

/* Numbers of the gate that are remembered. */
enum { TW__EPOCHS = 1024 };

/* By sequence number of the gate's word; the driver's. */
struct tw__bases {
	uint64_t bases_ns[TW__EPOCHS]; /* what its pushes count from, drain.c's B(S) */
	/* a reading taken after that sequence number was replaced */
	uint64_t replaced_ns[TW__EPOCHS];
};

/*
 * Takes what the lanes hold; of the young lanes, what is to be read by now, or all. Returns the
 * number of entries. *again: a lane still has some to read.
 */
uint64_t tw__drain(tw_service *service, bool all, bool *again);

/*
 * The tick in which the first of the young lanes is to be read; UINT64_MAX: none (gate.h, GATE2).
 */
uint64_t tw__young_plan(tw_service *service);

#endif
