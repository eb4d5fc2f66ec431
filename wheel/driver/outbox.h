/*
 * Outboxes: due runs on their way to an executor. The driver alone uses them.
 *
 * An outbox is a list of chunks: the driver submits from its front (G6). Outboxes with waiting runs
 * take turns. The service's own executor has the first outbox. An executor that timers name gets
 * one when its first run comes due, and may lose it when nothing waits and all its batches are
 * back. If its hash's place and the neighbors are in use, the runs stay in the wheel for a tick.
 *
 * Refusal. An executor that refuses is not asked again in the same poll. Its runs hold up nobody.
 *
 * Quota. A batch keeps its chunk until all its runs are finished. So the chunks that are out are
 * limited (`submit_limit`), and an executor may hold at most as many as are left for the others (A.
 * Choudhury, E. Hahne, "Dynamic queue length thresholds", 1998): the first executor that hangs
 * takes at most a half, the second at most a third. Each may always have one batch.
 *
 * Compaction. Entries of ended timers leave waiting chunks, a few chunks in a poll, and chunks that
 * fit into one are merged. So waiting runs need no more chunks than the timers that live.
 */
#ifndef TW_WHEEL_OUTBOX_H
#define TW_WHEEL_OUTBOX_H

#include "tickwheel/service.h"
#include "wheel/wheel.h"

enum { TW__OUTBOXES = 4096, TW__OUTBOX_PROBES = 64 };

/* Waiting chunks that a poll compacts, and two for each that has come. */
enum { TW__COMPACT_STEP = 8 };

struct tw__outbox {
	tw_executor *executor;
	struct tw__chunk_list runs; /* that wait */
	/* the last one that compaction has passed; NULL: none */
	struct tw__chunk *compacted;
	uint32_t out;            /* chunks that the executor has */
	struct tw__outbox *next; /* in the queue of those with runs */
};

/* Bytes of all outboxes: a mapping, touched on demand. */
#define TW__OUTBOXES_BYTES ((TW__OUTBOXES + 1) * sizeof(struct tw__outbox))

/* One that is not full, and one that its executor has, for each. */
enum { TW__OUTBOX_CHUNKS = 2 * (TW__OUTBOXES + 1) };

struct tw__outboxes {
	/* the service's executor's, then by hash; executor NULL: never used */
	struct tw__outbox *boxes;
	struct tw__outbox *first, *last; /* those with waiting runs, one after the other */
	uint32_t queued;
	uint32_t came;              /* chunks that have come in this poll */
	uint32_t out, submit_limit; /* chunks that all executors have; may have */
	/* in this poll runs were put back into the wheel */
	bool refiled;
	bool short_of_chunks; /* in this poll outboxes get no new chunk */
};

struct tw__local;

/* ------------------------------------------------------------------ outbox.c */

/* Takes over a due chunk. Runs of timers that name an executor go to its outbox. */
void tw__outbox_add(tw_service *service, struct tw__chunk *chunk);

/* Submits the runs that wait, or runs them here. Returns how many, at most budget. */
size_t tw__outbox_deliver(tw_service *service, struct tw__local *local, size_t budget);

/* A batch has come back. Call before its chunk is put back. */
void tw__outbox_returned(tw_service *service, const struct tw__chunk *chunk);

/* Chunks that outboxes and batches may still need. */
static inline size_t tw__outbox_reserve(const struct tw__outboxes *boxes)
{
	return boxes->submit_limit + TW__OUTBOX_CHUNKS - boxes->out - boxes->queued;
}

#endif
