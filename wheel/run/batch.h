/*
 * Batches: chunks of the wheel that executors have.
 *
 * A batch is a chunk of the wheel that was submitted to an executor. Its holder's words are used as
 * laid out here. Runs are claimed one by one through the cursor; the batch returns when the last
 * claimed run has finished. The cursor carries the batch's sequence number, so that a worker that
 * is late does not claim from a batch that has returned, and may have been submitted again.
 *
 *     cursor: sequence (48 bits) | next entry (8) | entries (8)
 *
 * Pairing table
 *   RUN1  cursor: store-release (submit) -> load-acquire, CAS seq_cst (claim): the batch's fields
 *       and entries. A claim of an executor of one thread stores relaxed: what comes after it in
 *       the cursor, the next submit, follows on RUN2 and RUN3. The timer's own claim stays a CAS
 *       (word.h).
 *   RUN2  finished: add acq_rel -> the last adder: all runs of the batch are over before it
 *       returns. (one site: the additions pair with each other)
 *   RUN3  service.returned: CAS release (return) -> exchange acquire (driver): the chunk is
 *       nobody else's.
 *   RUN4  service.batches_out: sub release, the last access to the service -> load acquire (close).
 *   RUN5  service.finish_bell: after the word moved on (seq_cst) add seq_cst -> waiter: load of the
 *       bell before its look at the word (both acquire), then futex on the value: either the waiter
 *       sees the word moved, or the bell differs.
 */
#ifndef TW_WHEEL_BATCH_H
#define TW_WHEEL_BATCH_H

#include "tickwheel/executor.h"
#include "wheel/core/service.h"
#include "wheel/wheel.h"

/* The batches of a service that are out, and what its executors have refused. */
struct tw__submitted {
	uint64_t batch_sequence;  /* of the driver's last batch; 48 bits */
	_Atomic uint64_t refused; /* layers hand over on any thread */

	/* Batches that executors have finished with; any thread pushes, the driver takes all. */
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
enum { HOLDER_SERVICE, HOLDER_CURSOR, HOLDER_FINISHED, HOLDER_SUBMITTED_NS, HOLDER_GIVEN_BACK };

static inline struct tw__chunk *tw__batch_chunk(tw_batch *batch)
{
	return (struct tw__chunk *)(void *)batch;
}

static inline tw_service *tw__batch_service(tw_batch *batch)
{
	/*
	 * Relaxed: the same for all batches of an arena, but a late thread may look while the chunk
	 * is submitted anew.
	 */
	return (tw_service *)(uintptr_t)tw_load_relaxed(
	    (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[HOLDER_SERVICE]);
}

static inline _Atomic uint64_t *tw__batch_word(tw_batch *batch, int which)
{
	return (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[which];
}

/* Makes a chunk a batch of that outbox. It counts as out until it has returned. */
tw_batch *tw__batch_submit(tw_service *service, struct tw__chunk *chunk, bool forced,
			   uint32_t outbox, uint64_t now_ns);

/* An executor refused it: it is an ordinary chunk again. */
void tw__batch_retract(tw_service *service, tw_batch *batch);

/* Claims the next entry: its index, or -1. sequence: of the batch. */
int tw__batch_claim(tw_batch *batch, uint64_t sequence);

/* The same for an executor of one thread: nobody else claims from it. */
int tw__batch_claim_alone(tw_batch *batch);

/* The n-th of the entries that are left to claim becomes the next. Nobody else claims meanwhile. */
void tw__batch_prefer(tw_batch *batch, unsigned nth);

/* Whether entries of that batch are left to claim. */
bool tw__batch_left(tw_batch *batch, uint64_t sequence);

static inline uint64_t tw__batch_sequence(tw_batch *batch)
{
	return tw_load_acquire(tw__batch_word(batch, HOLDER_CURSOR)) >> 16;
}

/*
 * Its executor runs nothing any more: each entry that a thread claims from now on ends its timer as
 * cancelled. Nothing of the batch was claimed yet.
 */
void tw__batch_end_all(tw_batch *batch);

/* n claimed entries are finished with; the batch may be gone afterwards. */
void tw__batch_finish(tw_batch *batch, unsigned n);

extern tw_executor tw__inline_executor;

#endif
