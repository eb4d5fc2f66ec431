/*
 * Runs: the claim of an entry, its callback, and its end; and batches of entries. What follows on a
 * run: series.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "wheel/run/run.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/process.h"
#include "wheel/core/frame.h"
#include "wheel/timer/group.h"
#include "mpsc/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/run/work.h"
#include "wheel/timer/cancel.h"

/* --------------------------------------------------------------------- batches */

/* The last access: the service may be destroyed now. */
static void one_batch_less(tw_service *service)
{
	tw_add_release(&service->submitted->batches_out, (uint32_t)-1); /* RUN4 */
}

int tw__batch_submit(tw_service *service, struct tw__chunk *chunk, tw_executor *executor,
		     uint32_t flags, uint64_t now_ns)
{
	TW_ASSERT_DRIVER(service);
	tw_batch *batch = (tw_batch *)(void *)chunk;
	chunk->holder_count = flags;
	tw_store_relaxed(tw__batch_word(batch, HOLDER_SERVICE), (uintptr_t)service);
	chunk->holder[HOLDER_SUBMITTED_NS] = now_ns;
	tw_store_relaxed(tw__batch_word(batch, HOLDER_FINISHED), 0);
	tw_store_relaxed(tw__batch_word(batch, HOLDER_GIVEN_BACK), 0);
	tw_add_relaxed(&service->submitted->batches_out, 1);
	tw_store_release(tw__batch_word(batch, HOLDER_NEXT), 0); /* RUN1 */
	TW_PROBE4(handover, service, batch, chunk->count, chunk->tick);
	int r = executor->ops->submit(executor, batch, chunk->count);
	if (r < 0) { /* an ordinary chunk again */
		chunk->holder_count = 0;
		tw_add_relaxed(&service->submitted->refused, 1);
		one_batch_less(service);
	}
	return r;
}

static void batch_return(tw_service *service, struct tw__chunk *chunk)
{
	struct tw__chunk *first = tw_load_relaxed(&service->submitted->returned);
	do {
		chunk->next = first;
	} while (!tw_cas_weak_release(&service->submitted->returned, &first, chunk)); /* RUN3 */
}

void tw__batch_finish(tw_batch *batch, unsigned n)
{
	TW_ASSERT(n > 0);
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	/* now: then another finisher may return the chunk */
	uint64_t count = chunk->count;
	/* RUN2 */
	uint64_t finished = tw_add_acq_rel(tw__batch_word(batch, HOLDER_FINISHED), n) + n;
	if (finished != count)
		return;
	tw_service *service = tw__batch_service(batch);
	bool given_back = tw_load_relaxed(tw__batch_word(batch, HOLDER_GIVEN_BACK)) != 0;
	batch_return(service, chunk);
	if (tw_unlikely(given_back)) /* the driver looks at it after arming the bell (GATE3) */
		tw__gate_ring(&service->gate);
	one_batch_less(service);
}

/* ------------------------------------------------------- the inline executor */

/* The driver needs no batch; submit serves every other caller. */
static int inline_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	(void)self;
	while (n-- > 0)
		if (tw__run_one(batch) < 0)
			tw_run_return(batch);
	return 0;
}

static const struct tw_executor_ops inline_ops = {sizeof inline_ops, inline_submit};

tw_executor tw__inline_executor = {&inline_ops};

tw_executor *tw_executor_inline(void)
{
	return &tw__inline_executor;
}

/* Entries whose word and record are fetched ahead of their run. */
enum { RUN_AHEAD = 6 };

/* --------------------------------------------------------------------- end */

static void run_finish(tw_service *service, struct tw__local *local, struct tw__run *run,
		       uint64_t claimed, struct tw__run_clock *clock)
{
	_Atomic uint64_t *at = &service->slots.words[run->slot];
	tw_bump(&local->runs, 1);
	if (tw_likely(!run->rearm && !(claimed & (TW__HAS_EXT | TW__HAS_PERSISTENT)))) {
		tw_bump(&local->fired, 1);
		tw__set_free(service, local, run->slot, run->generation, 0);
		return;
	}
	if (tw__continues(service, local, run, tw_load_acquire(at), clock->now_ns))
		return;
	uint64_t word = tw_load_acquire(at), releasing;
	bool cancelled = tw__ended_as_cancelled(service, run, word);
	enum tw_fate fate = cancelled ? TW_FATE_CANCELLED : TW_FATE_FIRED;
	tw__count_end(service, local, fate);
	if (!(claimed & TW__HAS_EXT)) {
		tw__set_free(service, local, run->slot, run->generation, 0);
		return;
	}
	do {
		releasing = tw__word_make(run->generation, TW__RELEASING, word & TW__WAITED);
	} while (!tw__word_cas_acq_rel(at, &word, releasing));
	/* a release may take any time */
	if (tw__release(service, local, run->slot, run->generation, fate))
		clock->now_ns = 0;
}

/* --------------------------------------------------------------------- run */

/* The entry is alive but not due. It goes back to the driver, who alone files. */
static void push_back(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t tick)
{
	tw__lane_grow_reserved(&local->lane, 1);
	tw__lane_put(&local->lane, tw__what_make(TW__KIND_BACK, entry), tick);
	tw__publish(service, local);
	tw__wake_for_back(service, entry, tick);
}

struct batch_of {
	uint64_t tick, due_ns;
	bool forced;
	struct tw__run_clock *clock;
};

/* The claim: the deadline, and the marks of the running word. False: gone, or not due. */
static bool claim(tw_service *service, struct tw__local *local, uint64_t entry,
		  const struct batch_of *of, uint64_t *tick, uint64_t *marks)
{
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD1, WORD4 */
	for (;;) {
		if (tw__word_generation(word) != generation || !tw__word_armed(word)) {
			if (!tw__entry_is_armed(&service->slots, entry, &word))
				return false;
			continue;
		}
		uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
		*tick = tw__deadline_in_batch(word, of->tick, cursor);
		if (tw_unlikely(word & TW__BEYOND_RANGE) &&
		    !tw__far_read(&service->slots, slot, &word, tick))
			continue;
		if (tw_unlikely(*tick > cursor && !of->forced)) {
			push_back(service, local, entry, *tick);
			return false;
		}
		uint64_t running = tw__word_run(word);
		*marks = running & TW__DEADLINE_MASK;
		/* planted: far_claim_blind */
		if (tw_likely(tw__deadline_move(&service->slots, slot, &word, *tick, running, 0)))
			return true;
	}
}

static bool run_entry(tw_service *service, struct tw__local *local, uint64_t entry,
		      const struct batch_of *of)
{
	struct tw__run_clock *clock = of->clock;
	uint64_t tick, marks;
	if (!claim(service, local, entry, of, &tick, &marks))
		return false;
	struct tw__run run = {.outer = tw__current_run,
			      .service = service,
			      .slot = tw__entry_slot(entry),
			      .generation = (uint32_t)(entry >> TW__GENERATION_SHIFT),
			      .due_ns = tw__tick_ns(service, tick),
			      .closing = of->forced};
	uint64_t begun_ns = clock->now_ns ? clock->now_ns : tw__run_clock_read(clock, service);
	const char *name = NULL;
	if (tw_unlikely(marks & TW__HAS_EXT)) {
		if (clock->estimated)
			tw__run_clock_exact(clock, service);
		begun_ns = clock->now_ns;
		struct tw__ext *ext = tw__ext_of(&service->slots, run.slot);
		run.group = tw_load_relaxed(&service->slots.records[run.slot].group);
		run.context = ext->context;
		name = tw_load_relaxed(&ext->name);
		if (tw_load_relaxed(&ext->traits) & TW__TRAIT_SERIES)
			tw__series_begins(service, local, &run, begun_ns);
	}
	run.begun_ns = begun_ns;
	struct tw__record *record = &service->slots.records[run.slot];
	tw_fn *fn = tw_load_relaxed(&record->fn); /* WORD1 */
	void *arg = tw_load_relaxed(&record->arg);
	TW_ASSERT(fn != TW__POISON);

	struct tw__histogram *latencies = tw_load_relaxed(&local->latencies);
	tw__histogram_add(&latencies[TW__LATENCY_WAIT],
			  begun_ns > of->due_ns ? begun_ns - of->due_ns : 0, 1);
	TW_PROBE5(run, service, run.slot, run.generation, fn, begun_ns - of->due_ns);
	tw__current_run = &run;
	struct tw__run_record *shown = tw__user_begin(service, fn, arg, name, begun_ns);
	void *former = tw__context_enter(run.context);
	tw__group_count_run(service, run.group, 1);
	fn(arg);
	tw__group_count_run(service, run.group, -1);
	tw__context_leave(former);
	tw__user_end(shown);
	tw__current_run = run.outer;
	TW_ASSERT(!tw__forked(service));
	/* what an extension record stands for depends on when the run has ended */
	bool plain = tw_likely(!run.rearm && !(marks & TW__HAS_EXT));
	uint64_t now_ns =
	    plain ? tw__run_clock_read(clock, service) : tw__run_clock_exact(clock, service);
	tw__histogram_add(&latencies[TW__LATENCY_RUN], now_ns > begun_ns ? now_ns - begun_ns : 0,
			  1);
	TW_PROBE4(done, service, run.slot, run.generation,
		  now_ns > begun_ns ? now_ns - begun_ns : 0);
	run_finish(service, local, &run, marks, clock);
	return true;
}

bool tw__local_ready_to_run(struct tw__local *local)
{
	if (tw_unlikely(!tw_load_relaxed(&local->latencies))) {
		struct tw__histogram *latencies =
		    tw__alloc_zeroed(TW__LATENCIES, sizeof *latencies);
		if (!latencies)
			return false;
		tw_store_release(&local->latencies, latencies); /* pairs with tw_service_stats */
	}
	return tw__lane_refill_reserve(&local->lane);
}

/* ----------------------------------------------------------------- batches */

static void prefetch_entry(tw_service *service, uint64_t entry)
{
	uint32_t slot = tw__entry_slot(entry);
	__builtin_prefetch((const void *)&service->slots.words[slot], 1);
	__builtin_prefetch(&service->slots.records[slot]);
}

bool tw__batch_run(tw_batch *batch, struct tw__local *local, unsigned index,
		   struct tw__run_clock *clock)
{
	TW_ASSERT(index < tw__batch_chunk(batch)->count &&
		  tw__batch_chunk(batch)->count <= TW__CHUNK_ENTRIES);
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	tw_service *service = tw__batch_service(batch);
	if (index + RUN_AHEAD < chunk->count)
		prefetch_entry(service, chunk->entries[index + RUN_AHEAD]);
	uint32_t flags = tw_load_relaxed(tw__batch_flag_word(batch));
	if (tw_unlikely(flags & TW__BATCH_ENDED)) {
		tw__cancel_entry(service, chunk->entries[index]);
		return false;
	}
	struct batch_of of = {chunk->tick, chunk->holder[HOLDER_SUBMITTED_NS],
			      flags & TW__BATCH_FORCED, clock};
	return run_entry(service, local, chunk->entries[index], &of);
}

size_t tw__run_inline(tw_service *service, struct tw__local *local, struct tw__chunk *chunk,
		      bool forced, size_t budget, uint64_t now_ns)
{
	TW_ASSERT_DRIVER(service);
	size_t ran = 0;
	struct tw__run_clock clock = {.now_ns = now_ns};
	struct batch_of of = {chunk->tick, now_ns, forced, &clock};
	unsigned i = chunk->holder_count;
	for (; i < chunk->count && ran < budget && tw__local_ready_to_run(local); i++) {
		if (i + RUN_AHEAD < chunk->count)
			prefetch_entry(service, chunk->entries[i + RUN_AHEAD]);
		chunk->holder_count = i + 1; /* a callback may look at what is pending */
		ran += run_entry(service, local, chunk->entries[i], &of);
	}
	return ran;
}

/* ------------------------------------------------- for executors of others */

/* Returns 0, -EINVAL (NULL) or -EPERM (in a forked child). */
static int check_ticket(const char *call, tw_batch *batch)
{
	if (!batch)
		return tw__refuse(-EINVAL, call, "batch is NULL");
	const tw_service *service = tw__batch_is_work(batch)
					? tw__work_service((struct tw__work *)(void *)batch)
					: tw__batch_service(batch);
	return tw__forked(service) ? -EPERM : 0;
}

/* Returns an index, or -1: the executor has used a ticket twice. */
static int claim_ticket(tw_batch *batch)
{
	_Atomic uint64_t *next = tw__batch_word(batch, HOLDER_NEXT);
	uint64_t count = tw__batch_chunk(batch)->count;
	uint64_t index = tw_load_acquire(next); /* RUN1 */
	if (index < count)
		index = tw_add_acq_rel(next, 1); /* RUN1 */
	TW_ASSERT(index < count);
	return index < count ? (int)index : -1;
}

int tw__run_one(tw_batch *batch)
{
	if (tw_unlikely(tw__batch_is_work(batch)))
		return tw__work_run((struct tw__work *)(void *)batch);
	tw_service *service = tw__batch_service(batch);
	struct tw__local *local = tw__local_of(service);
	if (!local || !tw__local_ready_to_run(local))
		return -ENOMEM;
	int index = claim_ticket(batch);
	struct tw__run_clock clock = {0};
	bool ran = index >= 0 && tw__batch_run(batch, local, (unsigned)index, &clock);
	tw__batch_finish(batch, 1);
	return ran;
}

int tw_run_one(tw_batch *batch)
{
	TW__UNCANCELLED;
	int r = check_ticket(__func__, batch);
	return tw_unlikely(r) ? r : tw__run_one(batch);
}

/*
 * Through this thread's lane; if memory is short through a bit in the batch, which the driver looks
 * at when that has returned.
 */
void tw_run_return(tw_batch *batch)
{
	if (!batch || check_ticket(__func__, batch))
		return;
	if (tw_unlikely(tw__batch_is_work(batch))) {
		tw__work_submit_later((struct tw__work *)(void *)batch);
		return;
	}
	tw_service *service = tw__batch_service(batch);
	struct tw__local *local = tw__local_of(service);
	int index = claim_ticket(batch);
	if (index >= 0) {
		if (local && tw__local_ready_to_run(local))
			/* the driver reads the word for when it is due */
			push_back(service, local, tw__batch_chunk(batch)->entries[index],
				  tw_load_relaxed(&service->gate.cursor));
		else
			tw_or_seq_cst(tw__batch_word(batch, HOLDER_GIVEN_BACK), UINT64_C(1)
										    << index);
	}
	tw__batch_finish(batch, 1);
}

int tw__run_nth(tw_batch *batch, unsigned nth)
{
	if (tw__batch_is_work(batch))
		return tw__run_one(batch);
	struct tw__local *local = tw__local_of(tw__batch_service(batch));
	if (!local || !tw__local_ready_to_run(local))
		return -ENOMEM; /* first: the order is kept */
	struct tw__chunk *chunk = tw__batch_chunk(batch);
	uint64_t *left = chunk->entries + (chunk->count - tw__batch_left(batch)),
		 chosen = left[nth];
	TW_ASSERT(nth < tw__batch_left(batch));
	for (; nth; nth--)
		left[nth] = left[nth - 1];
	left[0] = chosen;
	return tw__run_one(batch);
}
