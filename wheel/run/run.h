/* Runs: from a claimed entry to the end of its callback. The pairs: batch.h. */
#ifndef TW_WHEEL_RUN_H
#define TW_WHEEL_RUN_H

#include "mpsc/base/atomics.h"
#include "wheel/run/run_clock.h"
#include "wheel/core/service.h"
#include "wheel/run/batch.h"

/*
 * The deadline of a near word met in a batch of batch_tick: at most TW__NEAR_TICKS before that, or,
 * after a reset, after the cursor. Told apart while the batch has stood for less than half the
 * range. After that the cursor is the base: a deadline may be read too late, never too early.
 */
static inline uint64_t tw__deadline_in_batch(uint64_t word, uint64_t batch_tick, uint64_t cursor)
{
	if (tw_unlikely(cursor - batch_tick >= 2 * TW__NEAR_TICKS))
		return tw__word_deadline(word, cursor);
	uint64_t base = batch_tick > TW__NEAR_TICKS ? batch_tick - TW__NEAR_TICKS : 0;
	return base + ((word - base) & TW__DEADLINE_MASK);
}

/* Runs the claimed entry. True: a callback was run, and the clock read after it. */
bool tw__batch_run(tw_batch *batch, struct tw__local *local, unsigned index,
		   struct tw__run_clock *clock);

/* As tw_run_one, of the n-th of the entries that are left. For the simulation. */
TW_PRIVATE int tw__run_nth(tw_batch *batch, unsigned nth);

/* tw_run_one of a ticket that is sound, on a thread that is not cancelled meanwhile. */
int tw__run_one(tw_batch *batch);

/* Runs entries of a chunk that was not submitted, on the driver. How many callbacks ran. */
size_t tw__run_inline(tw_service *service, struct tw__local *local, struct tw__chunk *chunk,
		      bool forced, size_t budget, uint64_t now_ns);

/* Readies a thread for running: histograms, a lane reserve. False: out of memory. */
bool tw__local_ready_to_run(struct tw__local *local);

#endif
