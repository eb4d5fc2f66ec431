#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wheel/core/service.h"
#include "wheel/core/frame.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/end.h"
#include "wheel/run/batch.h"

/* ---------------------------------------------------------- foreach and dump */

/* fn and arg of a pending timer, as they belong together: the word is the same before and after. */
static bool read_record(tw_service *service, uint32_t slot, uint64_t *word, tw_fn **fn, void **arg)
{
	*word = tw_load_acquire(&service->slots.words[slot]); /* WORD1 */
	if (tw__word_state(*word) == TW__FREE)
		return false;
	*fn = tw_load_acquire(&service->slots.records[slot].fn);
	*arg = tw_load_acquire(&service->slots.records[slot].arg); /* acquire: not after the second look */
	uint64_t again = tw_load_relaxed(&service->slots.words[slot]);
	return tw__word_generation(again) == tw__word_generation(*word) && tw__word_state(again) != TW__FREE;
}

int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg)
{
	int r = visit ? tw__service_check(service) : -EINVAL;
	if (r)
		return r;
	uint32_t end = tw_load_acquire(&service->slots.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word, remaining_ns;
		tw_fn *fn;
		void *arg;
		if (!read_record(service, slot, &word, &fn, &arg))
			continue;
		tw_timer timer = tw__handle_make(&service->slots, slot, tw__word_generation(word));
		if (tw_remaining(service, timer, &remaining_ns))
			continue;
		r = visit(visitor_arg, timer, fn, arg, remaining_ns);
		if (r)
			return r;
	}
	return 0;
}

static int print_timer(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns)
{
	fprintf(visitor_arg, "slot %" PRIu32 " generation %08" PRIx32 " pending, due in %.3f ms, fn %p, arg %p\n",
		(uint32_t)timer.id, (uint32_t)(timer.id >> 32), (double)remaining_ns / 1e6, (void *)(uintptr_t)fn, arg);
	return 0;
}

int tw_service_dump(tw_service *service, FILE *out)
{
	if (!service || !out)
		return -EINVAL;
	return tw_service_foreach(service, print_timer, out);
}

/* ------------------------------------------------------------------ validate */

struct complaint {
	char *why;
	size_t size;
	bool any;
};

__attribute__((format(printf, 2, 3))) static void complain(struct complaint *c, const char *format, ...)
{
	va_list args;
	if (!c->any && c->why) {
		va_start(args, format);
		vsnprintf(c->why, c->size, format, args);
		va_end(args);
	}
	c->any = true;
}

/*
 * Each armed timer that is in no lane must have a current entry in the wheel or in an outbox: exactly one while its seq is 0, at
 * least one otherwise (word.h).
 */
struct census {
	tw_service *service;
	uint64_t first;   /* current entries of seq 0 */
	uint64_t *marked; /* a bit for each slot that has a current entry */
	uint32_t end;     /* of the slots that were in use when the census began */
};

static void count_entry(struct census *census, uint64_t entry)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&census->service->slots.words[slot]);
	if (!tw__entry_is_current(entry, word) || slot >= census->end)
		return;
	census->first += !tw__word_seq(word);
	census->marked[slot / 64] |= UINT64_C(1) << slot % 64;
}

static bool is_marked(const struct census *census, uint32_t slot)
{
	return census->marked[slot / 64] >> slot % 64 & 1;
}

static void count_chunks(struct census *census, const struct tw__chunk *chunk, bool ready)
{
	for (; chunk; chunk = chunk->next)
		for (unsigned i = ready ? chunk->holder_count : 0; i < chunk->count; i++)
			count_entry(census, chunk->entries[i]);
}

static void count_waiting(void *census, const struct tw__chunk *first)
{
	count_chunks(census, first, true);
}

static void count_entries(struct census *census)
{
	const tw_service *service = census->service;
	const struct tw__wheel *wheel = &service->driver->wheel;
	count_chunks(census, wheel->late.list.first, false);
	for (unsigned i = 0; i < wheel->level_count; i++)
		for (uint64_t b = 0; b <= wheel->levels[i].mask; b++)
			count_chunks(census, wheel->levels[i].buckets[b].list.first, false);
	tw__outbox_visit(service, count_waiting, census);
}

/* What the words say. */
struct words {
	uint64_t pending;
	uint64_t first;   /* armed, of seq 0 */
	uint64_t missing; /* armed, of another seq, and without a current entry */
	uint32_t missing_slot;
};

static void check_words(const struct census *census, struct complaint *c, struct words *words)
{
	tw_service *service = census->service;
	for (uint32_t slot = 1; slot < census->end; slot++) {
		uint64_t word = tw_load_acquire(&service->slots.words[slot]), state = tw__word_state(word);
		if (state == TW__FREE)
			continue;
		words->pending += !tw__is_unsettled(service, slot, word);
		if (!tw__word_armed(word) && state != TW__RUNNING && state != TW__SETTLING && state != TW__DOOMED)
			complain(c, "slot %" PRIu32 " is in no known state", slot);
		words->first += tw__word_armed(word) && !tw__word_seq(word);
		if (tw__word_armed(word) && tw__word_seq(word) && !is_marked(census, slot)) {
			words->missing++;
			words->missing_slot = slot;
		}
	}
}

enum { MOMENT_NS = 50000, LONGEST_WAIT_NS = 100000000 };

static bool lanes_empty(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_unread(lane))
			return false;
	return true;
}

/*
 * Whether nothing of the service is out. The driver is held: what comes home now is followed by nothing. Who called for nothing may still have a
 * cancelled group settled behind them; a piece of it takes a moment.
 */
static bool comes_to_rest(tw_service *service)
{
	uint64_t until_ns = tw_clock_now(tw_clock_monotonic()) + LONGEST_WAIT_NS;
	while (tw_load_acquire(&service->loans->batches_out) & ~TW__CLOSER_WAITS) { /* RUN4 */
		const struct timespec moment = {.tv_nsec = MOMENT_NS};
		if (tw__inside(service) || tw_clock_now(tw_clock_monotonic()) >= until_ns)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static void check_totals(const struct census *census, struct complaint *c, const struct words *words)
{
	tw_service *service = census->service;
	if (lanes_empty(service) && census->first != words->first)
		complain(c, "%" PRIu64 " timers of seq 0 are armed, %" PRIu64 " entries are theirs", words->first,
			 census->first);
	if (lanes_empty(service) && words->missing)
		complain(c, "%" PRIu64 " timers are armed and have no entry, one of them in slot %" PRIu32,
			 words->missing, words->missing_slot);
	struct tw_service_stats stats = {.size = sizeof stats};
	if (tw_service_stats(service, &stats))
		return;
	uint64_t ended = stats.fired + stats.cancelled + stats.dropped + stats.late_dropped;
	if (stats.scheduled != ended + words->pending)
		complain(c, "ledger: scheduled %" PRIu64 ", ended %" PRIu64 ", pending %" PRIu64, stats.scheduled,
			 ended, words->pending);
}

static void check(struct census *census, struct complaint *c)
{
	bool at_rest = comes_to_rest(census->service);
	const char *wrong = tw__wheel_check(&census->service->driver->wheel);
	if (wrong)
		complain(c, "%s", wrong);
	struct words words = {0};
	count_entries(census);
	check_words(census, c, &words);
	if (at_rest)
		check_totals(census, c, &words);
}

int tw_service_validate(tw_service *service, char *why, size_t why_size)
{
	int r = tw__service_check(service);
	if (r)
		return r;
	struct complaint c = {why, why_size, false};
	struct census census = {.service = service, .end = tw_load_acquire(&service->slots.fresh)};
	census.marked = calloc(census.end / 64 + 1, sizeof *census.marked);
	if (!census.marked)
		return -ENOMEM;
	bool driven_here = tw__inside(service) && pthread_mutex_trylock(&service->driving);
	if (!tw__inside(service))
		pthread_mutex_lock(&service->driving);
	if (!driven_here) {
		check(&census, &c);
		pthread_mutex_unlock(&service->driving);
	}
	free(census.marked);
	return driven_here ? -EBUSY : c.any ? -EFAULT : 0;
}
