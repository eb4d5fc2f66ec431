/* Emptying the lanes. */
#ifndef TW_WHEEL_DRAIN_H
#define TW_WHEEL_DRAIN_H

#include "wheel/core/service.h"

/*
 * A block: what is drained of a lane in one step. Long, so that most words are superseded within it
 * and not looked at.
 */
enum { TW__EPOCHS = 64, TW__BLOCK_ENTRIES = 64 * TW__SEGMENT_ENTRIES };

/* By sequence number of the gate's word; the driver's. */
struct tw__bases {
	uint64_t bases_ns[TW__EPOCHS]; /* what its pushes count from, drain.c's B(S) */
	/* a reading taken after that sequence number was replaced */
	uint64_t replaced_ns[TW__EPOCHS];
};

/*
 * Takes what the lanes hold. Returns the number of entries. *again: a lane was left with unread
 * entries.
 */
uint64_t tw__drain(tw_service *service, bool *again);

#endif
