/*
 * The driver: turns the wheel. It is the tick thread, or whoever calls tw_advance.
 *
 * One turn: take chunks home, drain the lanes, turn the wheel to now, give what is due to the executor, move far timers a bit
 * nearer, sweep a bit.
 *
 * It never allocates and has no path that can fail; callbacks run on it (inline) may, and so may the re-arming of many of them in one turn.
 */
#include "wheel/driver/poll.h"

#include <string.h>
#include <time.h>

#include "wheel/run/watchdog.h"
#include "wheel/service/probes.h"
#include "wheel/run/run.h"
#include "wheel/driver/purge.h"
#include "wheel/run/work.h"

enum { TURNS_PER_COUNT = 16 }; /* turns between two looks at whether to sweep */

uint64_t tw__driver_now(tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(now_ns < service->last_reading_ns))
		tw_bump(&service->clock_steps, 1);
	service->last_reading_ns = now_ns;
	if (now_ns > service->last_now_ns)
		service->last_now_ns = now_ns;
	return service->last_now_ns;
}

static uint64_t cpu_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------ hand over */

/* Sorts out what is for other executors. False: that was all, and the chunk is back in the store. */
static bool leaves_own(tw_service *service, struct tw__chunk *chunk)
{
	if (tw_likely(!tw_load_relaxed(&service->routed))) /* relaxed: came with the timer (W1) */
		return true;
	tw__route_out(service, chunk);
	if (chunk->count > 0)
		return true;
	tw__chunk_put(&service->wheel, chunk);
	return false;
}

/* Moves what fits of a chunk to the end of another one: all or nothing, but where chunks are short. */
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

/* Appends due chunks to what waits for the executor; small ones share a chunk. */
static void collect(tw_service *service, struct tw__chunk_list *due, uint64_t now_ns)
{
	struct tw__chunk *chunk;
	while ((chunk = tw__chunk_pop(due))) {
		uint64_t due_ns = tw__tick_ns(service, chunk->tick);
		tw__histogram_add(&service->lateness, now_ns > due_ns ? now_ns - due_ns : 0, chunk->count);
		if (!leaves_own(service, chunk))
			continue;
		if (service->ready.last)
			fill_up(service, service->ready.last, chunk);
		if (chunk->count == 0) {
			tw__chunk_put(&service->wheel, chunk);
			continue;
		}
		chunk->holder_count = 0;
		tw__chunk_append(&service->ready, chunk);
		service->came_ready++;
	}
}

static void turn_wheel(tw_service *service)
{
	uint64_t now_ns = tw__driver_now(service);
	struct tw__chunk_list due = {0};
	bool more;
	tw_store_relaxed(&service->turned_ns, now_ns);
	service->turning_to = tw__ticks_down(service, now_ns - service->start_ns);
	do {
		more = tw__wheel_turn(&service->wheel, service->turning_to, &due);
		tw_store_release(&service->gate.cursor,
				 service->wheel.next - 1); /* before batches are lent: claims rely on it */
		collect(service, &due, now_ns);
	} while (tw_unlikely(more));
}

/* Everything in the wheel is due now: TW_CLOSE_RUN. */
static void empty_wheel(tw_service *service)
{
	struct tw__chunk_list all = {0};
	struct tw__chunk *chunk;
	tw__wheel_empty(&service->wheel, &all);
	while ((chunk = tw__chunk_pop(&all))) {
		chunk->holder_count = 0;
		chunk->tick = service->wheel.next - 1;
		for (unsigned i = 0; i < chunk->count; i++)
			tw__note_handed(service, chunk->entries[i]);
		if (leaves_own(service, chunk))
			tw__chunk_append(&service->ready, chunk);
	}
}

void tw__refile(tw_service *service, uint64_t entry)
{
	uint32_t slot = tw__entry_slot(entry);
	if (!slot) {
		tw__group_offer_again(service, (uint32_t)(entry >> TW__GENERATION_SHIFT));
		return;
	}
	_Atomic uint64_t *at = &service->slots.words[slot];
	uint64_t word = tw_load_acquire(at), next = service->wheel.next, tick;
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return;
		tick = tw__word_deadline(word, next);
		if (tw_likely(word & TW__FAR || tick < next + TW__WHEEL_REACH))
			break;
		tick = next - 1; /* due hours ago, and read as the future: so the judge must find this */
	} while (!tw_cas_acq_rel(at, &word, tw__word_move(word, 0, 0, tick)));
	tw__file(service, slot, word, tick, true);
}

unsigned tw__driver_take_home(tw_service *service)
{
	unsigned given_back = 0;
	struct tw__chunk *chunk = tw_exchange_acquire(&service->returned, NULL), *next; /* R3 */
	for (; chunk; chunk = next) {
		next = chunk->next;
		uint64_t bits = tw_load_relaxed(tw__batch_word((tw_batch *)(void *)chunk, HOLDER_GIVEN_BACK));
		for (; bits; bits &= bits - 1, given_back++)
			tw__refile(service, chunk->entries[__builtin_ctzll(bits)]);
		tw__chunk_put(&service->wheel, chunk);
	}
	return given_back;
}

bool tw__forced(const tw_service *service)
{
	return tw_load_relaxed(&service->closed) == TW__CLOSING_RUN;
}

enum offered { TAKEN, REFUSED, HELD_BACK };

/* Offers the first chunk that is ready; if it is not taken it stays. */
static enum offered offer(tw_service *service, struct tw__chunk *chunk)
{
	if (tw__holds_back(service))
		return HELD_BACK;
	struct tw__chunk *next = chunk->next;
	bool was_last = service->ready.last == chunk;
	tw_batch *batch = tw__batch_lend(service, chunk, tw__forced(service), service->last_now_ns);
	TW_PROBE4(handover, service, batch, chunk->count, chunk->tick);
	if (service->thinned == chunk)
		service->thinned = NULL;
	int r = service->executor->ops->submit(service->executor, batch, chunk->count);
	if (r >= 0) {
		service->ready.first = next;
		if (was_last)
			service->ready.last = NULL;
		return TAKEN;
	}
	tw__batch_unlend(service, batch);
	chunk->holder_count = 0;
	tw_bump(&service->refused, 1);
	return REFUSED;
}

struct tw__chunk *tw__chunk_split(tw_service *service, struct tw__chunk *chunk, size_t n)
{
	struct tw__chunk *rest = tw__chunk_get(&service->wheel);
	rest->count = chunk->count - (uint32_t)n;
	rest->holder_count = 0;
	rest->tick = chunk->tick;
	memcpy(rest->entries, chunk->entries + n, rest->count * sizeof *rest->entries);
	chunk->count = (uint32_t)n;
	return rest;
}

/* An entry whose timer is not armed: if it is armed again, that brings another. Those of groups stay. */
void tw__chunk_thin(const tw_service *service, struct tw__chunk *chunk)
{
	unsigned left = 0;
	for (unsigned i = 0; i < chunk->count; i++) {
		tw__wheel_entry entry = chunk->entries[i];
		uint32_t slot = tw__entry_slot(entry);
		uint64_t word = tw_load_acquire(&service->slots.words[slot]);
		if (!slot || ((word ^ entry) >> TW__GENERATION_SHIFT == 0 && tw__word_armed(word)))
			chunk->entries[left++] = entry;
	}
	chunk->count = left;
}

/* The chunk behind `before` (NULL: the first) is packed into that, if it fits. */
static bool pack_ready(tw_service *service, struct tw__chunk *before, struct tw__chunk *chunk)
{
	bool fits = before && before->holder_count == 0 && before->count + chunk->count <= TW__CHUNK_ENTRIES;
	if (chunk->holder_count > 0 || (chunk->count > 0 && !fits))
		return false;
	if (chunk->count > 0)
		memcpy(before->entries + before->count, chunk->entries, chunk->count * sizeof *chunk->entries);
	if (before) {
		before->count += chunk->count;
		before->next = chunk->next;
	} else {
		service->ready.first = chunk->next;
	}
	if (service->ready.last == chunk)
		service->ready.last = before;
	tw__chunk_put(&service->wheel, chunk);
	return true;
}

/* Goes on through what is ready and was not taken. */
static void thin_ready(tw_service *service)
{
	struct tw__chunk *before = service->thinned, *chunk;
	for (unsigned n = TW__THIN_STEP + 2 * service->came_ready; n > 0; n--) {
		chunk = before ? before->next : service->ready.first;
		if (!chunk)
			break;
		if (chunk->holder_count == 0)
			tw__chunk_thin(service, chunk);
		if (!pack_ready(service, before, chunk))
			before = chunk;
	}
	service->thinned = before && before->next ? before : NULL;
}

/* Leaves only the first n entries in the first chunk; the rest gets one of its own behind it. */
static struct tw__chunk *split(tw_service *service, size_t n)
{
	struct tw__chunk *chunk = service->ready.first;
	n += chunk->holder_count; /* run already */
	if (n >= chunk->count)
		return chunk;
	struct tw__chunk *rest = tw__chunk_split(service, chunk, n);
	rest->next = chunk->next;
	chunk->next = rest;
	if (service->ready.last == chunk)
		service->ready.last = rest;
	return chunk;
}

static struct tw__chunk *pop_ready(tw_service *service)
{
	struct tw__chunk *chunk = tw__chunk_pop(&service->ready);
	if (service->thinned == chunk)
		service->thinned = NULL;
	return chunk;
}

static size_t deliver(tw_service *service, struct tw__local *local, size_t budget)
{
	size_t done = 0;
	struct tw__chunk *chunk;
	while ((chunk = service->ready.first) && done < budget && !tw__forked(service)) {
		if (chunk->count > budget - done)
			chunk = split(service, budget - done);
		unsigned count = chunk->count;
		bool here = service->executor == tw_executor_inline();
		if (!here && chunk->holder_count == 0) {
			enum offered offered = offer(service, chunk);
			if (offered == TAKEN) {
				done += count;
				continue;
			}
			if (offered == HELD_BACK || service->on_refused == TW_REFUSED_RETRY)
				break;
			if (service->on_refused == TW_REFUSED_DROP) {
				pop_ready(service);
				tw__route_drop(service, local, service->executor, chunk, &service->routes.list);
				continue;
			}
		}
		if (chunk->holder_count < chunk->count)
			done += tw__run_inline(service, local, chunk, tw__forced(service), budget - done);
		if (chunk->holder_count < chunk->count)
			break;
		pop_ready(service);
		tw__chunk_put(&service->wheel, chunk);
	}
	if (tw_unlikely(service->ready.first != NULL) && !tw__forked(service))
		thin_ready(service);
	service->came_ready = 0;
	return done;
}

/* What is due, for whichever executor; in turn who comes first, lest a small budget serves one side only. */
static size_t deliver_all(tw_service *service, struct tw__local *local, size_t budget)
{
	if (tw_likely(!service->routes.list.first))
		return deliver(service, local, budget);
	if (service->turns % 2) {
		size_t done = deliver(service, local, budget);
		return done + tw__route_deliver(service, local, budget - done);
	}
	size_t done = tw__route_deliver(service, local, budget);
	return done + deliver(service, local, budget - done);
}

/* ---------------------------------------------------------------------- turn */

static void account(tw_service *service, uint64_t cpu_ns)
{
	tw_bump(&service->ticks, 1);
	tw_bump(&service->tick_cpu_ns, cpu_ns);
	if (cpu_ns > tw_load_relaxed(&service->tick_cpu_max_ns))
		tw_store_relaxed(&service->tick_cpu_max_ns, cpu_ns);
}

uint64_t tw__driver_gather(tw_service *service, bool *again)
{
	tw__driver_take_home(service);
	return tw__drain(service, again);
}

struct tw__turn tw__turn(tw_service *service, struct tw__local *local, size_t budget)
{
	struct tw__turn turn = {0};
	uint64_t cpu_ns = service->threaded ? cpu_now() : 0; /* a system call; a caller's loop accounts for itself */
	tw__driver_take_home(service);
	service->routes.short_of_chunks = false;
	turn.drained = tw__drain(service, &turn.again); /* first: what lanes hold is read against the old cursor */
	turn_wheel(service);
	if (tw_unlikely(tw__forced(service)))
		empty_wheel(service);
	turn.done = tw__works_offer(service);
	if (tw_likely(!tw__dropping(service))) {
		tw__groups_collect(service);
		turn.done += deliver_all(service, local, turn.done < budget ? budget - turn.done : 0);
	}
	turn.elapsed = service->wheel.next - service->moved_tick;
	turn.behind = tw__wheel_move_nearer(&service->wheel, turn.elapsed) || tw__groups_ready(service);
	service->moved_tick = service->wheel.next;
	bool look = ++service->turns % TURNS_PER_COUNT == 0 || service->woken;
	tw__sweep(service, turn.drained, look);
	tw__trim(service, look, turn.drained + turn.done > 8 * TW__BUSY_ENTRIES);
	service->woken = false;
	tw_store_relaxed(&service->entries, service->wheel.entries);
	tw_store_relaxed(&service->chunks_used, tw__wheel_chunks_held(&service->wheel));
	if (tw_unlikely(service->config.on_stuck != NULL))
		tw__tell_stuck(service);
	if (turn.drained || turn.done)
		account(service, service->threaded ? cpu_now() - cpu_ns : 0);
	return turn;
}

/* ----------------------------------------------------------------- publishing */

void tw__driver_publish(tw_service *service, uint64_t flags)
{
	uint64_t replaced = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	if (tw__forked(service)) /* in a callback that this thread ran */
		return;
	flags |= tw__driver_accepting(service);
	uint64_t base_ns = tw__driver_now(service) + service->tick_ns;
	service->bases_ns[(replaced + 1) % TW__STAMPS] = base_ns;
	tw_store_relaxed(&service->gate.base_ns, base_ns); /* an estimate to its readers */
	tw__gate_publish(&service->gate, flags);
	service->replaced_ns[replaced % TW__STAMPS] = tw__driver_now(service); /* drain.c, (b) */
}

void tw__driver_publish_closed(tw_service *service, uint32_t mode)
{
	bool first = tw_load_relaxed(&service->closed) == 0;
	tw_store_release(&service->closed, mode);
	if (first) {
		tw__driver_publish(service, 0);
		if (!tw__gate_barrier(&service->gate))
			tw_store_relaxed(&service->unsure, 1); /* published with turn_done, or under `driving` */
		tw__loop_closed(service);
	}
}

void tw__wake(tw_service *service)
{
	if (tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED)
		tw__gate_ring(&service->gate);
}

void tw__wake_for(tw_service *service, uint64_t deadline_ns)
{
	uint64_t word = tw__gate_look_after_push(&service->gate);
	if (tw_unlikely(word & TW__GATE_PARKED) && deadline_ns < tw_load_relaxed(&service->gate.plan))
		tw__gate_ring(&service->gate);
}

bool tw__driver_any_unread(tw_service *service)
{
	bool asymmetric = service->gate.asymmetric;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (asymmetric ? tw__lane_unread(lane) : tw__lane_unread_seq_cst(lane))
			return true;
	return false;
}
