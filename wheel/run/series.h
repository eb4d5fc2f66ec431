/* What follows on a run that was more than a plain one-shot's. */
#ifndef TW_WHEEL_SERIES_H
#define TW_WHEEL_SERIES_H

#include "wheel/core/frame.h"
#include "wheel/core/service.h"

/*
 * The run of a series begins. It stands for the latest instant that has passed. Those before it are
 * overruns of this run, except in a burst.
 */
void tw__series_begins(tw_service *service, struct tw__local *local, struct tw__run *run,
		       uint64_t now_ns);

/*
 * Decides what follows on a run; word: its control word, a moment ago. True: the timer is armed
 * again, or disarmed, and no longer this thread's.
 */
bool tw__continues(tw_service *service, struct tw__local *local, struct tw__run *run, uint64_t word,
		   uint64_t now_ns);

/* Whether this end is that of a series, or of a re-arm, that was cancelled in the run. */
bool tw__ended_as_cancelled(tw_service *service, struct tw__run *run, uint64_t word);

#endif
