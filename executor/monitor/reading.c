#include "executor/monitor/reading.h"
#include "wheel/core/ticks.h"
#include "wheel/timer/end.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- groups */

/* What is counted of a group. */
struct count {
	uint32_t members;
	uint32_t slot; /* of the member that is due next; 0: none */
	uint64_t tick; /* at which that one is due; UINT64_MAX: it runs */
};

/* The index of the group whose member the timer is; 0: of none. The word is read again. */
static uint32_t group_of(const tw_service *service, uint32_t slot, uint64_t word)
{
	if (tw__word_state(word) == TW__FREE || !tw__word_has_record(word))
		return 0;
	/* acquire: not after the second look */
	uint64_t tag = tw_load_acquire(&tw__ext_of(&service->slots, slot)->tag);
	uint64_t again = tw_load_relaxed(&service->slots.words[slot]);
	bool same = tw__word_generation(again) == tw__word_generation(word) &&
		    tw__word_state(again) != TW__FREE;
	bool counts = same && !tw__is_cancelled(service, slot, again);
	return counts ? (uint32_t)(tag & TW__GROUP_INDEX_MASK) : 0;
}

static void note_deadline(tw_service *service, struct count *count, uint32_t slot, uint64_t word)
{
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), tick = UINT64_MAX;
	if (!tw__word_armed(word) ||
	    !tw__deadline_read(&service->slots, slot, &word, cursor, &tick))
		tick = UINT64_MAX;
	if (count->slot && count->tick <= tick)
		return;
	count->slot = slot;
	count->tick = tick;
}

static void count_members(tw_service *service, struct count *counts, uint32_t end_of_groups)
{
	uint32_t end = tw_load_acquire(&service->slots.depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD1 */
		uint32_t index = group_of(service, slot, word);
		if (!index || index >= end_of_groups)
			continue;
		counts[index].members++;
		note_deadline(service, &counts[index], slot, word);
	}
}

static void describe(const tw_service *service, const struct count *count,
		     struct tw__seen_group *seen)
{
	const struct tw__group *table = tw_load_acquire(&service->groups.table);
	uint64_t word = tw_load_acquire(&table[seen->index].word);
	seen->running = word & TW__GROUP_RUNNING_MASK;
	seen->closed = word & (TW__GROUP_CLOSED | TW__GROUP_DEAD);
	seen->due_ns = UINT64_MAX;
	uint64_t of_slot = tw_load_acquire(&service->slots.words[count->slot]);
	if (group_of(service, count->slot, of_slot) != seen->index)
		return; /* it has ended meanwhile */
	if (count->tick != UINT64_MAX)
		seen->due_ns = tw__tick_ns(service, count->tick);
	seen->fn = tw__callback_of(
	    service, tw__entry_make(count->slot, tw__word_generation(of_slot)), &seen->name);
}

/* Keeps `out` sorted, the largest first. Returns how many there are now. */
static int insert(struct tw__seen_group out[TW__GROUPS_SHOWN], int n, uint32_t index,
		  uint32_t members)
{
	int at = n;
	while (at > 0 && out[at - 1].members < members)
		at--;
	if (at == TW__GROUPS_SHOWN)
		return n;
	n += n < TW__GROUPS_SHOWN;
	memmove(&out[at + 1], &out[at], (size_t)(n - at - 1) * sizeof *out);
	out[at] = (struct tw__seen_group){.index = index, .members = members};
	return n;
}

/*
 * Looks at each slot in use, and writes the groups with the most members, the largest first. Groups
 * without members are left out. Any thread. Returns their number, or -ENOMEM.
 */
static int groups_largest(tw_service *service, struct tw__seen_group out[TW__GROUPS_SHOWN])
{
	bool any = tw_load_acquire(&service->groups.table) != NULL;
	uint32_t end = any ? tw_load_acquire(&service->groups.fresh) : 0;
	if (end == 0)
		return 0;
	struct count *counts = calloc(end, sizeof *counts);
	if (!counts)
		return -ENOMEM;
	count_members(service, counts, end);
	int n = 0;
	for (uint32_t index = 1; index < end; index++)
		if (counts[index].members)
			n = insert(out, n, index, counts[index].members);
	for (int i = 0; i < n; i++)
		describe(service, &counts[out[i].index], &out[i]);
	free(counts);
	return n;
}

/* ------------------------------------------------------------------- readings */

static void keep_run(void *context, const struct tw__seen_run *run)
{
	struct tw__reading *reading = context;
	if (reading->run_count == reading->run_room) {
		size_t room = reading->run_room ? 2 * reading->run_room : 64;
		struct tw__seen_run *runs = realloc(reading->runs, room * sizeof *runs);
		reading->no_memory |= !runs;
		if (!runs)
			return;
		reading->runs = runs;
		reading->run_room = room;
	}
	reading->runs[reading->run_count++] = *run;
}

int tw__runs_compare(const void *a, const void *b)
{
	const struct tw__seen_run *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int read_pool(tw_service *service, struct tw_pool_stats *pool)
{
	pool->size = sizeof *pool;
	int r = tw_service_pool_stats(service, pool);
	if (r == -ENOENT)
		pool->size = 0;
	return r == -ENOENT ? 0 : r;
}

int tw__reading_take(tw_service *service, struct tw__reading *reading, bool for_viewers)
{
	reading->stats.size = sizeof reading->stats;
	reading->histograms.size = sizeof reading->histograms;
	reading->liveness.size = sizeof reading->liveness;
	int r = tw_service_stats(service, &reading->stats);
	if (!r)
		r = tw_service_histograms(service, &reading->histograms);
	if (!r)
		r = tw_service_liveness(service, &reading->liveness);
	if (!r)
		r = read_pool(service, &reading->pool);
	if (r)
		return r;
	reading->pool_max_workers = reading->liveness.pool_max_workers;
	reading->pool_at_max = reading->liveness.pool_at_max;
	tw__runs_visit(service, reading->liveness.now_ns, keep_run, reading);
	if (reading->run_count)
		qsort(reading->runs, reading->run_count, sizeof *reading->runs, tw__runs_compare);
	if (for_viewers)
		reading->group_count = groups_largest(service, reading->groups);
	return reading->no_memory || reading->group_count < 0 ? -ENOMEM : 0;
}

void tw__reading_free(struct tw__reading *reading)
{
	free(reading->runs);
}
