#include "executor/base/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mpsc/base/cancel.h"
#include "mpsc/base/random.h"
#include "mpsc/base/map.h"

enum { PAGE = 4096, FIELD_BITS = 8, FIELD = (1 << FIELD_BITS) - 1 };

/* A slab of which more is used does not become current: it would soon be exhausted. */
enum { MANY_USED = TW__NODE_SLAB / 2 };

/* ----------------------------------------------------------------------- words */

static uint64_t word_make(uint64_t tag, unsigned used, unsigned fresh, unsigned head)
{
	return tag << 3 * FIELD_BITS | (uint64_t)used << 2 * FIELD_BITS | fresh << FIELD_BITS |
	       head;
}

static uint64_t word_tag(uint64_t word)
{
	return word >> 3 * FIELD_BITS;
}

static unsigned word_used(uint64_t word)
{
	return word >> 2 * FIELD_BITS & FIELD;
}

static unsigned word_fresh(uint64_t word)
{
	return word >> FIELD_BITS & FIELD;
}

static unsigned word_head(uint64_t word)
{
	return word & FIELD;
}

/* ---------------------------------------------------------------------- places */

/* NULL: there is none yet. */
static struct tw__slab *slab_of(const struct tw__nodes *nodes, uint32_t index)
{
	uint32_t number = (index >> TW__NODE_SLAB_BITS) + 1;
	unsigned k = 31u - (unsigned)__builtin_clz(number);
	if (k >= TW__NODE_EXTENTS)
		return NULL;
	struct tw__extent *extent = tw_load_acquire(&nodes->extents[k]); /* NODE2 */
	return extent ? &extent->slabs[number - (UINT32_C(1) << k)] : NULL;
}

static struct tw__node *node_at(const struct tw__nodes *nodes, const struct tw__slab *slab,
				unsigned place)
{
	return (struct tw__node *)(void *)(slab->memory + place * nodes->node_size);
}

/* ------------------------------------------------------------------- generations */

/* Its distance from the first one. */
static uint32_t age_of(const struct tw__nodes *nodes, uint32_t generation)
{
	return generation - nodes->first_generation;
}

static uint32_t random_generation(void)
{
	TW__UNCANCELLED;
	uint32_t generation = (uint32_t)tw__random_bits();
	/* not 0, and not 1: the last one would be just before it */
	return generation < 2 ? 2 : generation;
}

bool tw__node_end(struct tw__nodes *nodes, struct tw__node *node)
{
	uint32_t next = tw_load_relaxed(&node->generation) + 1;
	next += next == 0;
	tw_store_release(&node->generation, next); /* NODE3 */
	if (tw_likely(next != nodes->first_generation - 1))
		return true;
	/* This generation is never given out: the table has used all up. */
	tw_add_relaxed(&nodes->retired, 1);
	return false;
}

/* ------------------------------------------------------------------------ lists */

/* The lock is held in all of these. */

static void unlist(struct tw__nodes *nodes, struct tw__slab *slab)
{
	if (slab->state == TW__SLAB_OUT)
		return;
	*(slab->before ? &slab->before->next : &nodes->lists[slab->state]) = slab->next;
	if (slab->next)
		slab->next->before = slab->before;
	nodes->idle -= slab->state == TW__SLAB_IDLE;
	slab->state = TW__SLAB_OUT;
}

static void list(struct tw__nodes *nodes, struct tw__slab *slab, enum tw__slab_state state)
{
	unlist(nodes, slab);
	slab->before = NULL;
	slab->next = nodes->lists[state];
	if (slab->next)
		slab->next->before = slab;
	nodes->lists[state] = slab;
	nodes->idle += state == TW__SLAB_IDLE;
	slab->state = state;
}

/* Puts a slab that is not current into the list of its state. */
static void sort(struct tw__nodes *nodes, struct tw__slab *slab)
{
	uint64_t word = tw_load_seq_cst(&slab->word); /* NODE4 */
	if (word_used(word) > MANY_USED)
		return; /* a later put sorts it */
	enum tw__slab_state state = word_used(word) ? TW__SLAB_PARTIAL : TW__SLAB_IDLE;
	if (slab->state == TW__SLAB_OUT ||
	    (slab->state == TW__SLAB_PARTIAL && state == TW__SLAB_IDLE))
		list(nodes, slab, state);
}

/* ------------------------------------------------------------------------- grow */

static bool map_extent(const struct tw__nodes *nodes, struct tw__extent *extent, unsigned k)
{
	extent->bytes = nodes->slab_bytes << k;
	if (k == 0)
		return (extent->memory = calloc(1, extent->bytes)) != NULL;
	return (extent->memory = tw__map(extent->bytes)) != NULL;
}

static struct tw__extent *make_extent(const struct tw__nodes *nodes, unsigned k)
{
	size_t count = (size_t)1 << k;
	struct tw__extent *extent = calloc(1, sizeof *extent);
	struct tw__slab *slabs = aligned_alloc(alignof(struct tw__slab), count * sizeof *slabs);
	if (!extent || !slabs || !map_extent(nodes, extent, k)) {
		free(extent);
		free(slabs);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		slabs[i] =
		    (struct tw__slab){.memory = extent->memory + i * nodes->slab_bytes,
				      .first = (uint32_t)(count - 1 + i) << TW__NODE_SLAB_BITS,
				      .base = nodes->first_generation};
	extent->slabs = slabs;
	return extent;
}

/* The lock is held. Returns 0, -ENOMEM or -EAGAIN. */
static int make_slab(struct tw__nodes *nodes, struct tw__slab **out)
{
	uint32_t number = nodes->slabs + 1;
	unsigned k = 31u - (unsigned)__builtin_clz(number);
	if (nodes->slabs >= nodes->max_slabs)
		return -EAGAIN;
	if (!tw_load_relaxed(&nodes->extents[k])) {
		struct tw__extent *extent = make_extent(nodes, k);
		if (!extent)
			return -ENOMEM;
		tw_store_release(&nodes->extents[k], extent); /* NODE2 */
	}
	nodes->slabs = number;
	*out = slab_of(nodes, (number - 1) << TW__NODE_SLAB_BITS);
	return 0;
}

/* ------------------------------------------------------------------------ purge */

/*
 * An idle slab whose nodes are all free, claimed for this thread. The lock is held. *fresh: its
 * nodes that were ever given out.
 */
static struct tw__slab *claim_idle(struct tw__nodes *nodes, unsigned *fresh)
{
	struct tw__slab *slab = nodes->lists[TW__SLAB_IDLE];
	uint64_t word = tw_load_acquire(&slab->word);
	unlist(nodes, slab);
	if (word_used(word) == 0 && slab->first != 0) {
		*fresh = word_fresh(word);
		/* NODE1 */
		if (tw_cas_acq_rel(&slab->word, &word,
				   word_make(word_tag(word) + 1, 0, TW__NODE_SLAB, 0)))
			return slab;
	}
	sort(nodes, slab); /* a thread that saw it as current has taken a node */
	return NULL;
}

static void handles_give_back(const struct tw__nodes *nodes, struct tw__slab *slab, unsigned fresh)
{
	for (unsigned place = 0; place < fresh; place++) {
		uint32_t generation = tw_load_relaxed(&node_at(nodes, slab, place)->generation);
		if (age_of(nodes, generation) > age_of(nodes, slab->base))
			slab->base = generation;
	}
	/* If that fails, the memory stays. */
	madvise(slab->memory, nodes->slab_bytes, MADV_DONTNEED);
}

/* The lock is held, and released here. */
static void purge_some(struct tw__nodes *nodes)
{
	unsigned fresh;
	struct tw__slab *slab =
	    nodes->idle > TW__NODE_IDLE_SLABS ? claim_idle(nodes, &fresh) : NULL;
	pthread_mutex_unlock(&nodes->lock);
	if (!slab)
		return;
	handles_give_back(nodes, slab, fresh);
	pthread_mutex_lock(&nodes->lock);
	uint64_t tag = word_tag(tw_load_relaxed(&slab->word));
	tw_store_release(&slab->word, word_make(tag + 1, 0, 0, 0)); /* NODE1 */
	list(nodes, slab, TW__SLAB_PURGED);
	pthread_mutex_unlock(&nodes->lock);
}

/* -------------------------------------------------------------------- get and put */

/* NULL: the slab is exhausted. */
static struct tw__node *handles_take(struct tw__nodes *nodes, struct tw__slab *slab)
{
	uint64_t word = tw_load_acquire(&slab->word), next; /* NODE1 */
	struct tw__node *node;
	bool fresh;
	do {
		fresh = !word_head(word);
		if (fresh && word_fresh(word) == TW__NODE_SLAB)
			return NULL;
		node = node_at(nodes, slab, fresh ? word_fresh(word) : word_head(word) - 1);
		/*
		 * If another thread takes the head meanwhile, this number is stale, and the tag has
		 * changed.
		 */
		unsigned rest = fresh ? 0 : tw_load_relaxed(&node->next_free) & FIELD;
		next = word_make(word_tag(word) + 1, word_used(word) + 1, word_fresh(word) + fresh,
				 rest);
	} while (!tw_cas_acq_rel(&slab->word, &word, next)); /* NODE1 */
	if (fresh) {
		node->index = slab->first + word_fresh(word);
		tw_store_release(&node->generation, slab->base); /* NODE3 */
	}
	return node;
}

/* No slab is left: searches all slabs for a free node. The lock is held. NULL: all are in use. */
static struct tw__slab *search(struct tw__nodes *nodes)
{
	for (uint32_t number = 0; number < nodes->slabs; number++) {
		struct tw__slab *slab = slab_of(nodes, number << TW__NODE_SLAB_BITS);
		uint64_t word = tw_load_acquire(&slab->word);
		if (word_head(word) || word_fresh(word) < TW__NODE_SLAB)
			return slab;
	}
	return NULL;
}

/* The slab to take from next. The lock is held. Returns 0, -ENOMEM or -EAGAIN. */
static int handles_choose(struct tw__nodes *nodes, struct tw__slab **slab)
{
	static const enum tw__slab_state order[] = {TW__SLAB_IDLE, TW__SLAB_PARTIAL,
						    TW__SLAB_PURGED};
	for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
		if ((*slab = nodes->lists[order[i]]))
			return 0;
	int r = make_slab(nodes, slab);
	return r && (*slab = search(nodes)) ? 0 : r;
}

/*
 * Makes another slab current in place of the exhausted one (NULL: at first). Returns 0 (try again),
 * -ENOMEM or -EAGAIN.
 */
static int next_slab(struct tw__nodes *nodes, struct tw__slab *exhausted)
{
	struct tw__slab *slab = NULL;
	int r = 0;
	pthread_mutex_lock(&nodes->lock);
	if (tw_load_relaxed(&nodes->current) == exhausted && !(r = handles_choose(nodes, &slab))) {
		unlist(nodes, slab);
		tw_store_seq_cst(&nodes->current, slab); /* NODE4 */
		if (exhausted && exhausted != slab)
			sort(nodes, exhausted);
	}
	pthread_mutex_unlock(&nodes->lock);
	return r;
}

int tw__node_get(struct tw__nodes *nodes, struct tw__node **out)
{
	for (;;) {
		struct tw__slab *slab = tw_load_acquire(&nodes->current);
		*out = slab ? handles_take(nodes, slab) : NULL;
		if (tw_likely(*out != NULL))
			return 0;
		int r = next_slab(nodes, slab);
		if (r)
			return r;
	}
}

/* Half of a slab's nodes are free again, or all are. */
static void has_changed(struct tw__nodes *nodes, struct tw__slab *slab)
{
	if (tw_load_seq_cst(&nodes->current) == slab) /* NODE4 */
		return;
	pthread_mutex_lock(&nodes->lock);
	if (tw_load_relaxed(&nodes->current) != slab)
		sort(nodes, slab);
	purge_some(nodes);
}

/*
 * Adds nodes of one slab to its stack. The chain ends with *last; head is the place + 1 of its
 * first node.
 */
static void handles_push(struct tw__nodes *nodes, struct tw__slab *slab, unsigned head,
			 struct tw__node *last, unsigned count)
{
	uint64_t word = tw_load_relaxed(&slab->word), next;
	do {
		tw_store_relaxed(&last->next_free, word_head(word));
		next = word_make(word_tag(word), word_used(word) - count, word_fresh(word), head);
	} while (!tw_cas_seq_cst(&slab->word, &word, next)); /* NODE1, NODE4 */
	bool crossed = word_used(word) > MANY_USED && word_used(next) <= MANY_USED;
	if (tw_unlikely(crossed || word_used(next) == 0))
		has_changed(nodes, slab);
}

void tw__node_put(struct tw__nodes *nodes, struct tw__node *node)
{
	if (!tw__node_end(nodes, node))
		return;
	struct tw__slab *slab = slab_of(nodes, node->index);
	handles_push(nodes, slab, node->index - slab->first + 1, node, 1);
}

void tw__node_put_later(struct tw__nodes *nodes, struct tw__node_batch *batch,
			struct tw__node *node)
{
	if (!tw__node_end(nodes, node))
		return;
	if (batch->count && (batch->last->index ^ node->index) >> TW__NODE_SLAB_BITS)
		tw__node_put_batch(nodes, batch);
	if (batch->count++)
		tw_store_relaxed(&node->next_free, batch->head);
	else
		batch->last = node;
	batch->head = node->index % TW__NODE_SLAB + 1;
}

void tw__node_put_batch(struct tw__nodes *nodes, struct tw__node_batch *batch)
{
	if (batch->count)
		handles_push(nodes, slab_of(nodes, batch->last->index), batch->head, batch->last,
			     batch->count);
	batch->count = 0;
}

struct tw__node *tw__node_find(const struct tw__nodes *nodes, uint64_t handle)
{
	uint32_t index = (uint32_t)handle - 1;
	struct tw__slab *slab = (uint32_t)handle ? slab_of(nodes, index) : NULL;
	if (!slab || !(handle >> 32))
		return NULL;
	struct tw__node *node = node_at(nodes, slab, index % TW__NODE_SLAB);
	return tw__node_is(node, handle) ? node : NULL;
}

/* ------------------------------------------------------------------- birth and end */

void tw__nodes_init(struct tw__nodes *nodes, size_t node_size)
{
	memset(nodes, 0, sizeof *nodes);
	nodes->node_size = node_size;
	nodes->slab_bytes = (node_size * TW__NODE_SLAB + PAGE - 1) & ~(size_t)(PAGE - 1);
	nodes->max_slabs = (1 << TW__NODE_EXTENTS) - 1;
	nodes->first_generation = random_generation();
	pthread_mutex_init(&nodes->lock, NULL);
}

void tw__nodes_fini(struct tw__nodes *nodes)
{
	for (unsigned k = 0; k < TW__NODE_EXTENTS; k++) {
		struct tw__extent *extent = tw_load_relaxed(&nodes->extents[k]);
		if (!extent)
			continue;
		if (k == 0)
			free(extent->memory);
		else
			munmap(extent->memory, extent->bytes);
		free(extent->slabs);
		free(extent);
	}
	pthread_mutex_destroy(&nodes->lock);
}
