/*
 * Runs: what happens between a batch and the end of a callback.
 *
 * A batch is a chunk of the wheel on loan, with its holder's words used as laid out here. Runs are claimed one by one through
 * the cursor; the batch goes home when the last claimed run has finished. The cursor carries the batch's sequence number, so that
 * a worker that comes late to a batch which has gone home, and may be out again, does not claim from it.
 *
 *     cursor: sequence (48 bits) | next entry (8) | entries (8)
 *
 * Pairing table
 *   RUN1  cursor: store-release (lend) -> load-acquire, CAS seq_cst (claim): the batch's fields and entries. A claim of an executor of one thread
 *       stores relaxed: what comes after it in the cursor, the next lending, follows on RUN2 and RUN3. The timer's own claim stays a CAS (word.h).
 *   RUN2  finished: add acq_rel -> the last adder: all runs of the batch are over before it goes home. (one site: the additions pair with each other)
 *   RUN3  service.returned: CAS release (send home) -> exchange acquire (driver): the chunk is nobody else's.
 *   RUN4  service.batches_out: sub release, the last access to the service -> load acquire (close).
 *   RUN5  service.finish_bell: after the word moved on (seq_cst) add seq_cst -> waiter: load of the bell before its look at the
 *       word (both acquire), then futex on the value: either the waiter sees the word moved, or the bell differs.
 */
#ifndef TW_WHEEL_RUN_H
#define TW_WHEEL_RUN_H

#include "wheel/core/service.h"
#include "wheel/run/run_clock.h"

/* A callback under way on this thread; nested if it drives another service. */
struct tw__run {
	struct tw__run *outer;
	tw_service *service; /* NULL: a run of a strand's series, for tw_overruns and tw_late alone */
	uint32_t slot, generation;
	uint64_t tag;  /* the group it is a member of (group.h), or 0 */
	void *context; /* what it is under, or NULL */
	uint64_t overruns;
	uint64_t rearm_ns; /* the deadline it has asked for */
	bool rearm, closing, releasing;
	bool late;        /* beyond its max_lateness_ns */
	bool passed_over; /* claimed, but not to be run: too late */
};

extern _Thread_local struct tw__run *tw__current_run;

/* Whether this thread is inside a callback or release of the service. */
bool tw__inside(const tw_service *service);

enum tw__batch_flags {
	TW__BATCH_FORCED = 1, /* close runs all: no look at deadlines */
	TW__BATCH_ENDED = 2   /* nothing of it is to run: its executor is no more */
};

/* Above the flags: the index of the outbox that the batch came from (outbox.h). */
enum { TW__BATCH_OUTBOX_SHIFT = 8 };

/* What a chunk's `holder` words hold while it is a batch. */
enum { HOLDER_SERVICE, HOLDER_CURSOR, HOLDER_FINISHED, HOLDER_LENT_NS, HOLDER_GIVEN_BACK };

static inline struct tw__chunk *tw__batch_chunk(tw_batch *batch)
{
	return (struct tw__chunk *)(void *)batch;
}

static inline tw_service *tw__batch_service(tw_batch *batch)
{
	/* Relaxed: the same for all batches of an arena, but a late joiner may look while the chunk is lent anew. */
	return (tw_service *)(uintptr_t)tw_load_relaxed(
	    (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[HOLDER_SERVICE]);
}

static inline _Atomic uint64_t *tw__batch_word(tw_batch *batch, int which)
{
	return (_Atomic uint64_t *)&tw__batch_chunk(batch)->holder[which];
}

/*
 * The deadline of a word met in a batch of batch_tick. What it was handed over with is at most TW__WHEEL_REACH before that, what a
 * reset has made of it since at most as much after the cursor: told apart while the batch has stood for less than
 * half the range. After that (hours) a deadline may be read too late, never too early.
 */
static inline uint64_t tw__deadline_in_batch(uint64_t word, uint64_t batch_tick, uint64_t cursor)
{
	if (tw_unlikely(cursor - batch_tick >= 2 * TW__WHEEL_REACH))
		return tw__word_deadline(word, cursor);
	uint64_t base = batch_tick > TW__WHEEL_REACH ? batch_tick - TW__WHEEL_REACH : 0;
	return base + ((word - base) & TW__DEADLINE_MASK);
}

/* Makes a chunk a batch of that outbox; it counts as out until it is home again. */
tw_batch *tw__batch_lend(tw_service *service, struct tw__chunk *chunk, bool forced, uint32_t outbox, uint64_t now_ns);

/* An executor refused it: it is an ordinary chunk again. */
void tw__batch_unlend(tw_service *service, tw_batch *batch);

/* Claims the next entry: its index, or -1. sequence: of the batch that is meant. */
int tw__batch_claim(tw_batch *batch, uint64_t sequence);

/* The same for an executor of one thread: nobody else claims from it. */
int tw__batch_claim_alone(tw_batch *batch);

/* Whether entries of that batch are left to claim. */
bool tw__batch_left(tw_batch *batch, uint64_t sequence);

static inline uint64_t tw__batch_sequence(tw_batch *batch)
{
	return tw_load_acquire(tw__batch_word(batch, HOLDER_CURSOR)) >> 16;
}

/*
 * Runs the claimed entry. True: a callback was run. The clock is read when the callback has returned, so that runs in a row cost one
 * reading each.
 */
bool tw__batch_run(tw_batch *batch, struct tw__local *local, unsigned index, struct tw__run_clock *clock);

/* As tw_run_one and tw_run_drop, but ends the timer as cancelled, release included: its executor runs nothing any more. */
void tw__batch_end_one(tw_batch *batch);

/* The same for all that will be claimed of it from now on, by whoever runs it. Nothing of it was claimed yet. */
void tw__batch_end_all(tw_batch *batch);

/* n claimed entries are finished with; the batch may be gone afterwards. */
void tw__batch_finish(tw_batch *batch, unsigned n);

/* Runs the first `budget` entries of a chunk that was not lent, on the driver. Returns how many callbacks ran. */
size_t tw__run_inline(tw_service *service, struct tw__local *local, struct tw__chunk *chunk, bool forced,
		      size_t budget);

/* inline.c */
extern tw_executor tw__inline_executor;

/* Readies a thread for running: histograms, a lane reserve. False: out of memory. */
bool tw__local_ready_to_run(struct tw__local *local);

/* Frees the word of a timer that this thread owns, wakes its waiters, and gives the slot back. local may be NULL. */
void tw__set_free(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation);

/* Calls the release of a settling timer (if it has one), then frees it. local may be NULL. */
void tw__release(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation, enum tw_fate fate);

/*
 * series.c. Decides what follows on a run that was more than a plain one-shot's; word: what its control word was a moment ago. True:
 * it is armed again, and no longer this thread's.
 */
bool tw__continues(tw_service *service, struct tw__local *local, struct tw__run *run, uint64_t word, uint64_t now_ns);

/* Whether the end of this run is the end of a series, or of a re-arm, that was cancelled in the middle. */
bool tw__ended_as_cancelled(tw_service *service, struct tw__run *run, uint64_t word);

/* How long an armed timer still has; a hint (tw_remaining). */
uint64_t tw__remaining_of(tw_service *service, uint32_t slot, uint64_t word);

/* Moves the finish bell and wakes all who wait for it. */
void tw__ring_finish(tw_service *service);

#endif
