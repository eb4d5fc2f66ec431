/* Sorts due runs by executor, and submits them. Calls the batches. */
#include "wheel/driver/outbox.h"

#include <string.h>

#include "wheel/driver/driver.h"
#include "wheel/run/run.h"

/*
 * Returns the executor's outbox, or an idle one that becomes it, or NULL: all that may serve it are
 * in use. Addresses decide nothing else (sim.h).
 */
static struct tw__outbox *outbox_of(struct tw__outboxes *boxes, tw_executor *executor)
{
	uint64_t hash = (uint64_t)(uintptr_t)executor * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct tw__outbox *idle = NULL;
	for (unsigned i = 0; i < TW__OUTBOX_PROBES; i++) {
		struct tw__outbox *box = &boxes->boxes[1 + (hash + i) % TW__OUTBOXES];
		if (box->executor == executor)
			return box;
		if (!idle && !box->out && !box->runs.first)
			idle = box;
		if (!box->executor) /* never used */
			break;
	}
	if (idle)
		*idle = (struct tw__outbox){.executor = executor};
	return idle;
}

/* ----------------------------------------------------- the queue of outboxes */

static void queue_append(struct tw__outboxes *boxes, struct tw__outbox *box)
{
	box->next = NULL;
	*(boxes->last ? &boxes->last->next : &boxes->first) = box;
	boxes->last = box;
	boxes->queued++;
}

static struct tw__outbox *queue_pop(struct tw__outboxes *boxes)
{
	struct tw__outbox *box = boxes->first;
	boxes->first = box->next;
	if (!boxes->first)
		boxes->last = NULL;
	boxes->queued--;
	return box;
}

/* -------------------------------------------------------------------- sorting */

/*
 * The executor that a due timer names; NULL: the service's own. False: it is not armed any more.
 * The name's record may go to another timer meanwhile, so the word is read twice (WORD5).
 */
static bool look_up(tw_service *service, uint64_t entry, tw_executor **executor)
{
	struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry);
	TW_ASSERT(slot != 0);
	uint64_t word;
	*executor = NULL;
	if (!tw__entry_is_armed(slots, entry, &word))
		return false;
	if (!(word & TW__EXT))
		return true;
	/* WORD5 */
	uint32_t ext = tw_load_acquire(&slots->records[slot].ext);
	*executor = ext == TW__EXT_INLINE ? &tw__inline_executor
					  : tw_load_acquire(&slots->exts[ext].executor); /* WORD5 */
	return tw__entry_is_armed(slots, entry, &word);
}

static void append_chunk(struct tw__outboxes *boxes, struct tw__outbox *box,
			 struct tw__chunk *chunk)
{
	chunk->holder_count = 0;
	if (!box->runs.first)
		queue_append(boxes, box);
	tw__chunk_append(&box->runs, chunk);
	boxes->came++;
}

/*
 * False: there is no outbox, or chunks are short. Then there is no new chunk for the rest of the
 * poll: later runs must not overtake those that were put back into the wheel (G6).
 */
static bool outbox_append(tw_service *service, tw_executor *executor, uint64_t entry, uint64_t tick)
{
	struct tw__outboxes *boxes = &service->driver->outboxes;
	struct tw__outbox *box = outbox_of(boxes, executor);
	if (!box)
		return false;
	struct tw__chunk *chunk = box->runs.last;
	if (!chunk || chunk->count == TW__CHUNK_ENTRIES) {
		boxes->short_of_chunks |= tw__short_of_chunks(service);
		if (boxes->short_of_chunks)
			return false;
		chunk = tw__chunk_get(&service->driver->wheel);
		chunk->tick = tick;
		append_chunk(boxes, box, chunk);
	}
	chunk->entries[chunk->count++] = entry;
	return true;
}

/* The chunk may become empty. */
static void sort_named(tw_service *service, struct tw__chunk *chunk)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < chunk->count; i++) {
		uint64_t entry = chunk->entries[i];
		tw_executor *executor;
		if (!look_up(service, entry, &executor))
			continue;
		if (!executor) {
			chunk->entries[kept++] = entry;
		} else if (!outbox_append(service, executor, entry, chunk->tick)) {
			tw__refile(service, entry);
			service->driver->outboxes.refiled = true;
		}
	}
	chunk->count = kept;
}

/* Moves a chunk to the end of another one: all or nothing, unless chunks are short. */
static void fill_up(tw_service *service, struct tw__chunk *last, struct tw__chunk *chunk)
{
	unsigned room = TW__CHUNK_ENTRIES - last->count, n = chunk->count;
	if (n > room)
		n = tw__short_of_chunks(service) ? room : 0;
	memcpy(last->entries + last->count, chunk->entries, n * sizeof *chunk->entries);
	last->count += n;
	chunk->count -= n;
	if (n)
		memmove(chunk->entries, chunk->entries + n, chunk->count * sizeof *chunk->entries);
}

void tw__outbox_add(tw_service *service, struct tw__chunk *chunk)
{
	TW_ASSERT_DRIVER(service);
	struct tw__outboxes *boxes = &service->driver->outboxes;
	struct tw__outbox *own = &boxes->boxes[0];
	/* relaxed: came with the timer (WORD1) */
	if (tw_unlikely(tw_load_relaxed(&service->named_another)))
		sort_named(service, chunk);
	if (own->runs.last)
		fill_up(service, own->runs.last, chunk);
	if (chunk->count > 0)
		append_chunk(boxes, own, chunk);
	else
		tw__chunk_put(&service->driver->wheel, chunk);
}

/* ------------------------------------------------------------------- delivery */

/* The first chunk leaves; next: the one after it, which the chunk may not know any more. */
static void outbox_pop(struct tw__outbox *box, struct tw__chunk *next)
{
	if (box->compacted == box->runs.first)
		box->compacted = NULL;
	box->runs.first = next;
	if (!next)
		box->runs.last = NULL;
}

/* Leaves n entries in the first chunk. The rest comes next. */
static void split(tw_service *service, struct tw__chunk_list *list, size_t n)
{
	struct tw__chunk *chunk = list->first, *rest = tw__chunk_get(&service->driver->wheel);
	rest->count = chunk->count - (uint32_t)n;
	rest->holder_count = 0;
	rest->tick = chunk->tick;
	memcpy(rest->entries, chunk->entries + n, rest->count * sizeof *rest->entries);
	chunk->count = (uint32_t)n;
	rest->next = chunk->next;
	chunk->next = rest;
	if (list->last == chunk)
		list->last = rest;
}

/* The quota. All together no more than a service with few timers has (service/create.c). */
static bool may_submit(const struct tw__outboxes *boxes, const struct tw__outbox *box)
{
	uint32_t limit = boxes->submit_limit;
	return box->out == 0 ? boxes->out < 4 * limit
			     : boxes->out < limit && box->out < limit - boxes->out;
}

void tw__outbox_returned(tw_service *service, const struct tw__chunk *chunk)
{
	TW_ASSERT_DRIVER(service);
	struct tw__outboxes *boxes = &service->driver->outboxes;
	boxes->boxes[chunk->holder_count >> TW__BATCH_OUTBOX_SHIFT].out--;
	boxes->out--;
}

/* The inline executor's. Some is left if memory is short, too. */
static size_t run_here(tw_service *service, struct tw__local *local, struct tw__outbox *box,
		       size_t budget)
{
	struct tw__chunk *chunk;
	size_t done = 0;
	while ((chunk = box->runs.first) && done < budget) {
		if (chunk->holder_count < chunk->count)
			done += tw__run_inline(service, local, chunk, tw__forced(service),
					       budget - done, tw__driver_now(service));
		if (chunk->holder_count < chunk->count)
			break;
		outbox_pop(box, chunk->next);
		tw__chunk_put(&service->driver->wheel, chunk);
	}
	return done;
}

/* A chunk that the executor refuses is first again. */
static size_t deliver(tw_service *service, struct tw__outbox *box, size_t budget)
{
	struct tw__outboxes *boxes = &service->driver->outboxes;
	uint32_t flags = (uint32_t)(box - boxes->boxes) << TW__BATCH_OUTBOX_SHIFT |
			 (tw__forced(service) ? TW__BATCH_FORCED : 0);
	size_t done = 0;
	while (box->runs.first && done < budget && may_submit(boxes, box)) {
		struct tw__chunk *chunk = box->runs.first;
		if (chunk->count > budget - done)
			split(service, &box->runs, budget - done);
		/* read now: once taken over the chunk may be gone */
		struct tw__chunk *next = chunk->next;
		size_t count = chunk->count;
		if (tw__batch_submit(service, chunk, box->executor, flags,
				     service->driver->last_now_ns) < 0)
			break;
		outbox_pop(box, next);
		box->out++;
		boxes->out++;
		done += count;
	}
	return done;
}

/*
 * Where the budget ends, the next poll goes on with the next outbox; else it begins with the
 * second, so that each comes first for compaction.
 */
size_t tw__outbox_deliver(tw_service *service, struct tw__local *local, size_t budget)
{
	TW_ASSERT_DRIVER(service);
	struct tw__outboxes *boxes = &service->driver->outboxes;
	size_t done = 0;
	unsigned n = TW__COMPACT_STEP + 2 * boxes->came;
	uint32_t left = boxes->queued;
	for (; left > 0 && done < budget; left--) {
		struct tw__outbox *box = queue_pop(boxes);
		done += box->executor == &tw__inline_executor
			    ? run_here(service, local, box, budget - done)
			    : deliver(service, box, budget - done);
		n = tw__outbox_compact(service, box, n);
		if (box->runs.first)
			queue_append(boxes, box);
	}
	if (left == 0 && boxes->queued > 1)
		queue_append(boxes, queue_pop(boxes));
	boxes->came = 0;
	return done;
}
