/*
 * For each shard: a binary heap of (deadline, hash). What it holds may be out of date: an element
 * counts only if the table still has a key of that hash with that deadline. below_ms says how far
 * the heap is complete. A key that gets an earlier deadline than that is added; so the first
 * element that counts is the shard's earliest key. The shard whose first element is the earliest
 * of all is the one to evict from.
 */
#include <stdlib.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/evict.h"
#include "examples/cache/expiry.h"

/*
 * What a pending timer costs the service: the middle of tw_service_stats.memory_bytes for 1 to 10
 * million.
 */
#define TIMER_BYTES 48
#define LEAST_CANDIDATES 64

size_t evict_used(void)
{
	size_t used = 0;
	for (size_t i = 0; i < SHARDS; i++)
		used += atomic_load_explicit(&shards[i].bytes, memory_order_relaxed) +
			atomic_load_explicit(&shards[i].volatile_keys, memory_order_relaxed) *
			    TIMER_BYTES;
	return used;
}

static void set_earliest(struct shard *s)
{
	const struct candidates *c = &s->candidates;
	atomic_store_explicit(&s->earliest_ms, c->count > 0 ? c->heap[0].deadline_ms : UINT64_MAX,
			      memory_order_relaxed);
}

static void make_space(struct candidates *c, size_t count)
{
	if (count <= c->room)
		return;
	c->room = count + count / 2;
	c->heap = reallocate(c->heap, c->room * sizeof(*c->heap));
}

static void push(struct candidates *c, struct candidate new)
{
	make_space(c, c->count + 1);
	size_t at = c->count++;
	for (; at > 0 && new.deadline_ms < c->heap[(at - 1) / 2].deadline_ms; at = (at - 1) / 2)
		c->heap[at] = c->heap[(at - 1) / 2];
	c->heap[at] = new;
}

static struct candidate pop(struct candidates *c)
{
	struct candidate first = c->heap[0], last = c->heap[--c->count];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < c->count; at = child) {
		if (child + 1 < c->count &&
		    c->heap[child + 1].deadline_ms < c->heap[child].deadline_ms)
			child++;
		if (c->heap[child].deadline_ms >= last.deadline_ms)
			break;
		c->heap[at] = c->heap[child];
	}
	c->heap[at] = last;
	if (c->count == 0)
		c->below_ms = 0;
	return first;
}

static void collect(void *arg, struct shard *s, struct entry *e)
{
	struct candidates *c = arg;
	(void)s;
	if (e->deadline_ms != 0)
		c->heap[c->count++] = (struct candidate){.deadline_ms = e->deadline_ms,
							 .hash = table_hash(entry_key(e))};
}

static int by_deadline(const void *a, const void *b)
{
	uint64_t x = ((const struct candidate *)a)->deadline_ms,
		 y = ((const struct candidate *)b)->deadline_ms;
	return (x > y) - (x < y);
}

/* Fills the heap with the earliest keys. A sorted array is a heap. */
static void fill(struct shard *s)
{
	struct candidates *c = &s->candidates;
	size_t wanted = s->volatile_keys / 16 + LEAST_CANDIDATES;
	c->count = 0;
	make_space(c, s->volatile_keys);
	table_each(s, collect, c);
	qsort(c->heap, c->count, sizeof(*c->heap), by_deadline);
	c->below_ms = UINT64_MAX;
	if (c->count > wanted) {
		c->count = wanted;
		c->below_ms = c->heap[wanted - 1].deadline_ms;
		c->room = wanted;
		c->heap = reallocate(c->heap, wanted * sizeof(*c->heap));
	}
}

void evict_consider(struct shard *s, struct entry *e)
{
	struct candidates *c = &s->candidates;
	if (e->deadline_ms >= c->below_ms)
		return;
	if (c->count > 4 * s->keys + LEAST_CANDIDATES) { /* mostly out of date */
		c->count = 0;
		c->below_ms = 0;
	} else {
		push(c, (struct candidate){.deadline_ms = e->deadline_ms,
					   .hash = table_hash(entry_key(e))});
	}
	set_earliest(s);
}

/* The shard with the earliest key, or NULL if there is none. */
static struct shard *find_shard(void)
{
	struct shard *best = NULL;
	uint64_t earliest = UINT64_MAX;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &shards[i];
		uint64_t at = atomic_load_explicit(&s->earliest_ms, memory_order_relaxed);
		if (at == UINT64_MAX &&
		    atomic_load_explicit(&s->volatile_keys, memory_order_relaxed) > 0) {
			pthread_mutex_lock(&s->lock);
			if (s->candidates.count == 0)
				fill(s);
			set_earliest(s);
			at = atomic_load_explicit(&s->earliest_ms, memory_order_relaxed);
			pthread_mutex_unlock(&s->lock);
		}
		if (at < earliest) {
			earliest = at;
			best = s;
		}
	}
	return best;
}

static bool evict_one(void)
{
	struct shard *s = find_shard();
	if (s == NULL)
		return false;
	pthread_mutex_lock(&s->lock);
	if (s->candidates.count > 0) {
		struct candidate first = pop(&s->candidates);
		struct entry *e = table_find_deadline(s, first.hash, first.deadline_ms);
		if (e != NULL)
			expiry_evict(s, first.hash, e);
	}
	set_earliest(s);
	pthread_mutex_unlock(&s->lock);
	return true;
}

bool evict_make_room(void)
{
	uint64_t most = atomic_load_explicit(&cache.maxmemory, memory_order_relaxed);
	while (most != 0 && evict_used() > most)
		if (!evict_one())
			return false;
	return true;
}
