/*
 * Runs, and the batches that they come from: chunks of the wheel that were submitted to an
 * executor. Runs are claimed one by one; the batch returns when the last one has finished. Only
 * those who have a ticket, or a claimed run, touch it.
 *
 * Pairing table
 *   RUN1  next: store-release (submit) -> load-acquire, add acq_rel (claim): the batch's fields and
 *       entries. A pool takes all that is left, and claims by a word of its own
 *       (executor/pool/parts.h).
 *   RUN2  finished: add acq_rel -> the last adder: all runs of the batch are over before it
 *       returns. (one site: the additions pair with each other)
 *   RUN3  submitted.returned: CAS release (return) -> exchange acquire (driver): the chunk is
 *       nobody else's.
 *   RUN4  submitted.batches_out: sub release, the last access to the service -> load acquire
 *       (close).
 *   RUN5  service.finish_bell: after the word moved on (seq_cst) add seq_cst -> waiter: load of the
 *       bell before its look at the word (both acquire), then futex: either it sees the word moved,
 *       or the bell differs.
 *   the flags (holder_count): relaxed. A strand's close may end a batch beside its runner. The
 *       thread that sets ENDED sees it; a claim beside it may see either.
 */
#ifndef TW_WHEEL_RUN_H
#define TW_WHEEL_RUN_H

#include "mpsc/base/atomics.h"
#include "tickwheel/executor.h"
#include "wheel/core/service.h"
#include "wheel/wheel.h"
#include "wheel/core/frame.h"

/* The batches of a service that are out, and what its executors have refused. */
struct tw__submitted {
	_Atomic uint64_t refused; /* layers hand over on any thread */

	/* any thread pushes, the driver takes all */
	alignas(TW__CACHE_LINE) _Atomic(struct tw__chunk *) returned;
	_Atomic uint32_t batches_out; /* submitted and not yet returned */
};

enum tw__batch_flags {
	TW__BATCH_FORCED = 1, /* close runs all: no look at deadlines */
	TW__BATCH_ENDED = 2   /* nothing of it is to run: its executor is no more */
};

/* Above the flags: the index of the outbox that the batch came from (outbox.h). */
enum { TW__BATCH_OUTBOX_SHIFT = 8 };

/* What a chunk's `holder` words hold while it is a batch. */
enum { HOLDER_SERVICE, HOLDER_NEXT, HOLDER_FINISHED, HOLDER_SUBMITTED_NS, HOLDER_GIVEN_BACK };

static inline struct tw__chunk *tw__batch_chunk(tw_batch *batch)
{
	return (struct tw__chunk *)(void *)batch;
}

static inline tw_service *tw__batch_service(tw_batch *batch)
{
	/* relaxed: a late thread may look while the chunk is submitted anew, with the same */
	return (tw_service *)(uintptr_t)tw_load_relaxed(
	    (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[HOLDER_SERVICE]);
}

static inline _Atomic uint64_t *tw__batch_word(tw_batch *batch, int which)
{
	return (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[which];
}

static inline _Atomic uint32_t *tw__batch_flag_word(tw_batch *batch)
{
	return (_Atomic uint32_t *)&tw__batch_chunk(batch)->holder_count;
}

/*
 * Submits a chunk as a batch, which counts as out until it has returned. flags: enum
 * tw__batch_flags, and the outbox's index. If the answer is negative, the executor has refused.
 */
int tw__batch_submit(tw_service *service, struct tw__chunk *chunk, tw_executor *executor,
		     uint32_t flags, uint64_t now_ns);

/* The caller holds tickets for all of them. */
static inline unsigned tw__batch_left(tw_batch *batch)
{
	return tw__batch_chunk(batch)->count -
	       (unsigned)tw_load_acquire(tw__batch_word(batch, HOLDER_NEXT)); /* RUN1 */
}

/*
 * Each entry claimed from now on ends its timer as cancelled. The caller has all tickets that are
 * left. The next submit takes the mark off.
 */
static inline void tw__batch_end_all(tw_batch *batch)
{
	tw_or_relaxed(tw__batch_flag_word(batch), TW__BATCH_ENDED);
}

/* n claimed entries are over. The batch may be gone afterwards. */
void tw__batch_finish(tw_batch *batch, unsigned n);

extern tw_executor tw__inline_executor;

/* ------------------------------------------------------ instants of runs */

/*
 * The instants of runs in a row: each ends where the next begins. Most runs take less time than a
 * reading of the clock, so the register is read instead, for statistics and liveness. What decides
 * something reads the clock: tw__run_clock_exact.
 */

/* All members are 0 until it is first read. */
struct tw__run_clock {
	uint64_t now_ns; /* the last reading; 0: none */
	bool estimated;  /* it is the register's */
};

static inline uint64_t tw__run_clock_exact(struct tw__run_clock *clock, const tw_service *service)
{
	clock->estimated = false;
	return clock->now_ns = tw__clock_read(service);
}

static inline uint64_t tw__run_clock_read(struct tw__run_clock *clock, const tw_service *service)
{
	clock->estimated = service->time.by_counter;
	return clock->now_ns = tw__clock_read_fast(service);
}

/* ------------------------------------------------------------------------ runs */

/*
 * The deadline of a near word met in a batch: at most TW__NEAR_TICKS before its tick, or, after a
 * reset, after the cursor. Told apart while the batch has stood for less than half the range. After
 * that the cursor is the base: read perhaps too late, never too early.
 */
static inline uint64_t tw__deadline_in_batch(uint64_t word, uint64_t batch_tick, uint64_t cursor)
{
	if (tw_unlikely(cursor - batch_tick >= 2 * TW__NEAR_TICKS))
		return tw__word_deadline(word, cursor);
	uint64_t base = batch_tick > TW__NEAR_TICKS ? batch_tick - TW__NEAR_TICKS : 0;
	return base + ((word - base) & TW__DEADLINE_MASK);
}

/* Returns true if a callback was run, and the clock read after it. */
bool tw__batch_run(tw_batch *batch, struct tw__local *local, unsigned index,
		   struct tw__run_clock *clock);

/* As tw_run_one, for the n-th entry that is left. For the simulation. */
TW_PRIVATE int tw__run_nth(tw_batch *batch, unsigned nth);

/* tw_run_one without its checks. */
int tw__run_one(tw_batch *batch);

/* Runs entries of a chunk on the driver. Returns how many callbacks ran. */
size_t tw__run_inline(tw_service *service, struct tw__local *local, struct tw__chunk *chunk,
		      bool forced, size_t budget, uint64_t now_ns);

/* Makes the histograms and the lane's reserve. Returns false if memory is short. */
bool tw__local_ready_to_run(struct tw__local *local);

/* ------------------------------------------------------- what follows on a run */

/*
 * The run stands for the latest instant that has passed. Those before it are its overruns, except
 * in a burst.
 */
void tw__series_begins(tw_service *service, struct tw__local *local, struct tw__run *run,
		       uint64_t now_ns);

/*
 * word: the control word, a moment ago. True: the timer is armed again, or disarmed, and no longer
 * this thread's.
 */
bool tw__continues(tw_service *service, struct tw__local *local, struct tw__run *run, uint64_t word,
		   uint64_t now_ns);

/* Whether this end is that of a series, or of a re-arm, that was cancelled in the run. */
bool tw__ended_as_cancelled(tw_service *service, struct tw__run *run, uint64_t word);

/* ----------------------------------------------------------- work.c */

/* For close: calls the completions that are due. Their work comes back in polls. */
void tw__groups_complete(tw_service *service);

#endif
