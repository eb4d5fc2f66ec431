/*
 * Routes: what has come due for executors that timers name themselves, and releases that are owed after a refusal.
 *
 * A batch is for one executor, so a due chunk's entries are sorted out into chunks of one executor each. They stand in one list; order
 * holds for each executor: an entry goes to the end of its executor's newest chunk, or into a newer one. One that refuses is
 * not asked again in the same turn, and holds up nobody else: the first few are listed, those beyond kept as bits by hash. Another that
 * falls on the same bit waits for a tick, not for ever, since the hash changes from turn to turn. But for that, addresses have no part in what is
 * handed over when (sim.h).
 *
 * Which executor a timer names is read from its side record, while the timer may be cancelled and the record go to the next one:
 * word, index, executor, and the word again (word.h, W5); if it is not armed then, the entry is dead. The record is never unmapped,
 * and `executor` is an atomic that nothing else overwrites (slots.h).
 *
 * Condemned. What a refusing executor's policy drops must have its release called, and not by the tick thread: such a timer stays
 * armed, marked under its option lock, and is offered again. Who claims it calls the release instead of the callback; a reset
 * takes the mark away; at close, the closer ends it. The tick thread only tries that lock: if it is taken, the timer is left as it is for a tick.
 *
 * An entry of a group that wants to be settled (slot 0, group.h) is kept and offered again likewise, since settling calls releases. Such
 * entries never come out of the wheel, and so are not sorted out here.
 *
 * A service none of whose timers names an executor pays one load for each due chunk.
 *
 * Not good at: thousands of executors with one timer a tick each: each gets a chunk of 512 bytes.
 */
#include "wheel/driver/outbox.h"

#include <string.h>

#include "wheel/driver/poll.h"
#include "wheel/service/probes.h"
#include "wheel/run/run.h"

/* What a routed chunk's holder words hold. HOLDER_SERVICE and HOLDER_CURSOR are not ours: a late joiner may look at them. */
enum { HOLDER_EXECUTOR = HOLDER_LENT_NS, HOLDER_CONDEMNED = HOLDER_GIVEN_BACK };

static tw_executor *executor_of(const struct tw__chunk *chunk)
{
	return (tw_executor *)(uintptr_t)chunk->holder[HOLDER_EXECUTOR];
}

static bool is_condemned(const struct tw__chunk *chunk)
{
	return chunk->holder[HOLDER_CONDEMNED] != 0;
}

static void address(struct tw__chunk *chunk, tw_executor *executor, bool condemned)
{
	chunk->holder[HOLDER_EXECUTOR] = (uintptr_t)executor;
	chunk->holder[HOLDER_CONDEMNED] = condemned;
}

static uint64_t hash(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

/* Where the executor's newest chunk stands, or would. */
static struct tw__chunk **tail_of(tw_service *service, tw_executor *executor)
{
	struct tw__chunk **tails = service->routes.tails;
	uint64_t place = hash((uintptr_t)executor) % TW__ROUTE_TAILS;
	while (tails[place] && executor_of(tails[place]) != executor)
		place = (place + 1) % TW__ROUTE_TAILS;
	return &tails[place];
}

/* The chunk is its executor's newest. */
static void remember(tw_service *service, struct tw__chunk *chunk)
{
	struct tw__routes *routes = &service->routes;
	struct tw__chunk **tail = tail_of(service, executor_of(chunk));
	if (!*tail && routes->tail_count == TW__ROUTE_TAILS_MAX) {
		memset(routes->tails, 0, sizeof routes->tails); /* the next entries begin chunks of their own */
		routes->tail_count = 0;
		tail = tail_of(service, executor_of(chunk));
	}
	routes->tail_count += !*tail;
	*tail = chunk;
}

/* A chunk that nothing may be appended to any more. True: it was its executor's newest. Those behind its place may have been turned away by it. */
static bool forget(tw_service *service, struct tw__chunk *chunk)
{
	struct tw__routes *routes = &service->routes;
	struct tw__chunk **tail = tail_of(service, executor_of(chunk)), *other;
	if (*tail != chunk)
		return false;
	*tail = NULL;
	routes->tail_count--;
	for (size_t place = (size_t)(tail - routes->tails + 1) % TW__ROUTE_TAILS; (other = routes->tails[place]);
	     place = (place + 1) % TW__ROUTE_TAILS) {
		routes->tails[place] = NULL;
		*tail_of(service, executor_of(other)) = other;
	}
	return true;
}

static uint64_t *refused_bit(tw_service *service, tw_executor *executor, uint64_t *mask)
{
	uint64_t bit = hash((uintptr_t)executor ^ hash(service->turns) << 4) % TW__ROUTE_REFUSED_BITS;
	*mask = UINT64_C(1) << bit % 64;
	return &service->routes.refused_bits[bit / 64];
}

static bool has_refused(tw_service *service, tw_executor *executor)
{
	const struct tw__routes *routes = &service->routes;
	for (unsigned i = 0; i < routes->refused_count; i++)
		if (routes->refused[i] == executor)
			return true;
	uint64_t mask, *bits = refused_bit(service, executor, &mask);
	return *bits & mask;
}

static void note_refusal(tw_service *service, tw_executor *executor)
{
	struct tw__routes *routes = &service->routes;
	uint64_t mask, *bits = refused_bit(service, executor, &mask);
	if (routes->refused_count < TW__ROUTE_REFUSED)
		routes->refused[routes->refused_count++] = executor;
	else
		*bits |= mask;
}

/* ---------------------------------------------------------------- sorting out */

static bool is_armed(uint64_t word, uint64_t entry)
{
	return (word ^ entry) >> TW__GENERATION_SHIFT == 0 && tw__word_armed(word);
}

/* The executor that a due timer names, or NULL. False: it is not armed any more, and a later arm brings an entry of its own. */
static bool look_up(tw_service *service, uint64_t entry, tw_executor **executor)
{
	struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry);
	tw__debug_check(slot != 0);
	uint64_t word = tw_load_acquire(&slots->words[slot]); /* W1 */
	*executor = NULL;
	if (!is_armed(word, entry))
		return false;
	if (!(word & TW__OPTION))
		return true;
	uint32_t option = tw_load_acquire(&slots->records[slot].option); /* W5: before the second look */
	*executor = tw_load_acquire(&slots->options[option].executor);   /* W5: likewise */
	return is_armed(tw_load_relaxed(&slots->words[slot]), entry);
}

/* False: no chunk for it. */
static bool append(tw_service *service, tw_executor *executor, uint64_t entry, uint64_t tick)
{
	struct tw__chunk *chunk = *tail_of(service, executor);
	if (!chunk || chunk->count == TW__CHUNK_ENTRIES) {
		/* Once short, for the rest of the turn: what comes later must not overtake what was kept back (G6). */
		if (service->routes.short_of_chunks || tw__short_of_chunks(service))
			return false;
		chunk = tw__chunk_get(&service->wheel);
		chunk->holder_count = 0;
		chunk->tick = tick;
		address(chunk, executor, false);
		remember(service, chunk);
		tw__chunk_append(&service->routes.list, chunk);
		service->routes.came++;
	}
	chunk->entries[chunk->count++] = entry;
	return true;
}

void tw__route_out(tw_service *service, struct tw__chunk *chunk)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < chunk->count; i++) {
		uint64_t entry = chunk->entries[i];
		tw_executor *executor;
		if (!look_up(service, entry, &executor))
			continue;
		if (!executor) {
			chunk->entries[kept++] = entry;
		} else if (!append(service, executor, entry, chunk->tick)) {
			tw__refile(service, entry);
			service->routes.short_of_chunks = true;
		}
	}
	chunk->count = kept;
}

/* ------------------------------------------------------------------- dropping */

/* Marks an armed timer that has a release. False: it has none, is armed no more, or differs from *word, which is brought up to date. */
static bool condemn(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint64_t seen = *word;
	pthread_mutex_t *lock = tw__option_trylock(&service->slots, slot);
	if (!lock)
		return true;
	uint32_t traits = tw__traits_of(&service->slots, slot);
	*word = tw_load_acquire(&service->slots.words[slot]);
	bool condemned = *word == seen && traits & TW__TRAIT_RELEASE;
	if (condemned)
		tw__option_of(&service->slots, slot)->condemned = true; /* it has TW__TRAIT_MOVES too (schedule.c) */
	pthread_mutex_unlock(lock);
	if (condemned)
		tw_store_relaxed(&service->condemns, true); /* a hint to close, which looks again and again */
	return condemned;
}

static bool is_due(const tw_service *service, uint64_t word, uint64_t batch_tick)
{
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	return tw__forced(service) || (!(word & TW__FAR) && tw__deadline_in_batch(word, batch_tick, cursor) <= cursor);
}

/* True: its entry is still wanted. */
static bool drop_entry(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t tick)
{
	uint32_t slot = tw__entry_slot(entry);
	if (!slot) { /* a group's members are not dropped, but settled */
		tw_store_relaxed(&service->condemns, true);
		return true;
	}
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	for (;;) {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return false;
		uint64_t seen = word;
		if (!is_due(service, word, tick)) {
			tw__refile(service, entry); /* moved to later meanwhile */
			return false;
		}
		if (word & TW__OPTION && condemn(service, slot, &word))
			return true;
		if (word == seen && tw__drop(service, local, slot, &word))
			return false;
	}
}

void tw__route_drop(tw_service *service, struct tw__local *local, tw_executor *executor, struct tw__chunk *chunk,
		    struct tw__chunk_list *list)
{
	unsigned kept = 0;
	for (unsigned i = chunk->holder_count; i < chunk->count; i++)
		if (drop_entry(service, local, chunk->entries[i], chunk->tick))
			chunk->entries[kept++] = chunk->entries[i];
	chunk->count = kept;
	chunk->holder_count = 0;
	struct tw__chunk *last = list->last;
	if (kept && last && is_condemned(last) && executor_of(last) == executor &&
	    last->count + kept <= TW__CHUNK_ENTRIES) {
		memcpy(last->entries + last->count, chunk->entries, kept * sizeof *chunk->entries);
		last->count += kept;
		kept = 0;
	}
	if (kept) {
		address(chunk, executor, true);
		tw__chunk_append(list, chunk);
	} else {
		tw__chunk_put(&service->wheel, chunk);
	}
}

/* ------------------------------------------------------------------- offering */

static void put_before(struct tw__chunk_list front, struct tw__chunk_list *list)
{
	if (!front.first)
		return;
	front.last->next = list->first;
	list->first = front.first;
	if (!list->last)
		list->last = front.last;
}

/* Runs a chunk on the driver; what is left of it for want of budget or memory is kept. */
static size_t run_here(tw_service *service, struct tw__local *local, struct tw__chunk *chunk, size_t budget,
		       struct tw__chunk_list *kept)
{
	size_t ran = tw__run_inline(service, local, chunk, tw__forced(service), budget);
	if (chunk->holder_count < chunk->count) {
		tw__chunk_append(kept, chunk);
		return ran;
	}
	forget(service, chunk);
	tw__chunk_put(&service->wheel, chunk);
	return ran;
}

/* True: the executor has it. */
static bool offer(tw_service *service, struct tw__chunk *chunk)
{
	tw_executor *executor = executor_of(chunk);
	bool condemned = is_condemned(chunk);
	bool newest = forget(service, chunk);
	tw_batch *batch = tw__batch_lend(service, chunk, tw__forced(service), service->last_now_ns);
	TW_PROBE4(handover, service, batch, chunk->count, chunk->tick);
	if (executor->ops->submit(executor, batch, chunk->count) >= 0)
		return true;
	tw__batch_unlend(service, batch);
	chunk->holder_count = 0;
	address(chunk, executor, condemned);
	if (newest)
		remember(service, chunk);
	tw_bump(&service->refused, 1);
	return false;
}

/* What is left over comes next in the list, and is its executor's newest chunk if this one was. */
static void split(tw_service *service, struct tw__chunk *chunk, size_t n)
{
	struct tw__chunk *rest = tw__chunk_split(service, chunk, n);
	struct tw__chunk **tail = tail_of(service, executor_of(chunk));
	address(rest, executor_of(chunk), is_condemned(chunk));
	put_before((struct tw__chunk_list){rest, rest}, &service->routes.list);
	if (*tail == chunk)
		*tail = rest;
}

/* Its turn to be gone through for what has ended: in each turn that of the next few. */
static bool is_to_be_thinned(struct tw__routes *routes, const struct tw__chunk *chunk)
{
	return routes->served++ - routes->thin_from < TW__THIN_STEP + 2 * routes->came && chunk->holder_count == 0;
}

/* True: nothing is left of it, or that is packed into the last one of `kept`, and the chunk is gone. */
static bool thin(tw_service *service, struct tw__chunk *chunk, struct tw__chunk_list *kept)
{
	struct tw__chunk *last = kept->last;
	tw__chunk_thin(service, chunk);
	bool packed = chunk->count > 0 && last && last->holder_count == 0 && executor_of(last) == executor_of(chunk) &&
		      is_condemned(last) == is_condemned(chunk) && last->count + chunk->count <= TW__CHUNK_ENTRIES;
	if (chunk->count > 0 && !packed)
		return false;
	if (packed) {
		memcpy(last->entries + last->count, chunk->entries, chunk->count * sizeof *chunk->entries);
		last->count += chunk->count;
	}
	if (forget(service, chunk) && packed)
		remember(service, last);
	tw__chunk_put(&service->wheel, chunk);
	return true;
}

/* Deals with one chunk; appends it to kept if it is not done with. */
static size_t serve(tw_service *service, struct tw__local *local, struct tw__chunk *chunk, size_t budget,
		    struct tw__chunk_list *kept)
{
	tw_executor *executor = executor_of(chunk);
	if (is_to_be_thinned(&service->routes, chunk) && thin(service, chunk, kept))
		return 0;
	if (executor == tw_executor_inline() || chunk->holder_count > 0)
		return run_here(service, local, chunk, budget, kept);
	bool waits = service->on_refused == TW_REFUSED_RETRY || is_condemned(chunk);
	if ((waits && has_refused(service, executor)) || tw__holds_back(service)) {
		tw__chunk_append(kept, chunk);
		return 0;
	}
	if (chunk->count > budget)
		split(service, chunk, budget);
	size_t count = chunk->count;
	if (offer(service, chunk))
		return count;
	note_refusal(service, executor);
	if (service->on_refused == TW_REFUSED_INLINE)
		return run_here(service, local, chunk, budget, kept);
	if (service->on_refused == TW_REFUSED_DROP) {
		forget(service, chunk);
		tw__route_drop(service, local, executor, chunk, kept);
	} else {
		tw__chunk_append(kept, chunk);
	}
	return 0;
}

size_t tw__route_deliver(tw_service *service, struct tw__local *local, size_t budget)
{
	struct tw__routes *routes = &service->routes;
	struct tw__chunk_list kept = {0};
	struct tw__chunk *chunk;
	size_t done = 0;
	routes->refused_count = 0;
	routes->served = 0;
	memset(routes->refused_bits, 0, sizeof routes->refused_bits);
	while (done < budget && (chunk = tw__chunk_pop(&routes->list)))
		done += serve(service, local, chunk, budget - done, &kept);
	put_before(kept, &routes->list);
	routes->thin_from += TW__THIN_STEP + 2 * routes->came;
	if (routes->thin_from >= routes->served)
		routes->thin_from = 0;
	routes->came = 0;
	return done;
}
