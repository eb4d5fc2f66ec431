/* What follows on a run that was more than a plain one-shot's. */
#ifndef TW_WHEEL_SERIES_H
#define TW_WHEEL_SERIES_H

#include "wheel/core/frame.h"
#include "wheel/core/local.h"

/*
 * The run of a series begins. It stands for the latest instant that has passed. The instants before
 * that one are missed, except in a burst. They are overruns of this run.
 */
void tw__series_begins(tw_service *service, struct tw__local *local, struct tw__run *run,
		       uint64_t now_ns);

/*
 * Decides what follows on a run that was more than a plain one-shot's; word: what its control word
 * was a moment ago. True: it is armed again, or disarmed, and no longer this thread's.
 */
bool tw__continues(tw_service *service, struct tw__local *local, struct tw__run *run, uint64_t word,
		   uint64_t now_ns);

/*
 * Whether the end of this run is the end of a series, or of a re-arm, that was cancelled in the
 * middle.
 */
bool tw__ended_as_cancelled(tw_service *service, struct tw__run *run, uint64_t word);

#endif
