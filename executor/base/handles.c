/* Nodes in slabs, and their handles. Calls the line, and maps memory. */
#include "executor/base/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mpsc/base/process.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/atomics.h"
#include "mpsc/base/random.h"
#include "mpsc/base/futex.h"

enum { FIRST_ROW = 8 };

/* Of a slab's number. */
static uint32_t row_of(uint32_t number)
{
	return (uint32_t)__builtin_clz(FIRST_ROW) - (uint32_t)__builtin_clz(number + FIRST_ROW);
}

static struct tw__slab *slab_of(const struct tw__nodes *nodes, uint32_t index)
{
	uint32_t number = index / TW__NODE_SLAB, row = row_of(number);
	return &nodes->rows[row][number + FIRST_ROW - (FIRST_ROW << row)];
}

static struct tw__node *node_of(const struct tw__nodes *nodes, const struct tw__slab *slab,
				uint32_t index)
{
	size_t offset = index % TW__NODE_SLAB * nodes->node_size;
	return (struct tw__node *)(void *)(slab->memory + offset);
}

static struct tw__slab *first_slab(const struct tw__line *line)
{
	return line->first ? TW__OWNER(struct tw__slab, place, line->first) : NULL;
}

/* --------------------------------------------------------------- growth, locked */

/*
 * Adds memory: to a slab that has none, or to a new one; unless there is a free node by now. A fork
 * may come at any moment. Returns 0, -ENOMEM or -EAGAIN.
 */
static int grow(struct tw__nodes *nodes)
{
	tw__tiny_lock(&nodes->lock);
	bool enough = nodes->partial.first;
	struct tw__slab *slab = first_slab(&nodes->bare); /* none leaves but here */
	uint32_t number = nodes->count, row = row_of(number);
	tw__tiny_unlock(&nodes->lock);
	if (enough || (!slab && number == nodes->max_count))
		return enough ? 0 : -EAGAIN;
	bool is_new = !slab;
	if (is_new && !nodes->rows[row])
		nodes->rows[row] =
		    tw__alloc_aligned(_Alignof(struct tw__slab), (FIRST_ROW << row) * sizeof *slab);
	char *memory =
	    is_new && !nodes->rows[row] ? NULL : tw__map(TW__NODE_SLAB * nodes->node_size);
	if (!memory)
		return -ENOMEM;
	if (is_new) {
		slab = slab_of(nodes, number * TW__NODE_SLAB);
		*slab = (struct tw__slab){.first = number * TW__NODE_SLAB,
					  .generation = nodes->first_generation};
	}
	tw__tiny_lock(&nodes->lock);
	if (is_new)
		nodes->count++;
	else
		tw__line_leave(&nodes->bare, &slab->place);
	slab->memory = memory;
	tw__line_append(&nodes->partial, tw__in_line_link(&slab->place));
	nodes->idle++;
	tw__tiny_unlock(&nodes->lock);
	return 0;
}

/* -------------------------------------------------------------------- get and put */

/*
 * A node of the first slab; NULL: there is none. The node is not touched if it was never taken from
 * this memory, since a page may have to come first.
 */
static struct tw__node *take(struct tw__nodes *nodes, uint32_t *index, uint32_t *generation)
{
	struct tw__slab *slab = first_slab(&nodes->partial);
	if (!slab)
		return NULL;
	bool fresh = !slab->free;
	*index = fresh ? slab->first + slab->fresh++ : slab->free - 1;
	struct tw__node *node = node_of(nodes, slab, *index);
	if (!fresh)
		slab->free = node->next;
	nodes->idle -= slab->used == 0;
	*generation = ++slab->generation;
	if (++slab->used == TW__NODE_SLAB || slab->generation == UINT32_MAX)
		tw__line_leave(&nodes->partial, &slab->place);
	return node;
}

int tw__node_get(struct tw__nodes *nodes, struct tw__object *owner, struct tw__node **out)
{
	uint32_t index, generation;
	for (;;) {
		tw__tiny_lock(&nodes->lock);
		struct tw__node *node = *out = take(nodes, &index, &generation);
		tw__tiny_unlock(&nodes->lock);
		if (tw_likely(node)) {
			node->index = index;
			tw_store_relaxed(&node->generation, generation);
			tw_store_release(&node->owner, owner); /* NODE1 */
			return 0;
		}
		tw__tiny_lock(&nodes->growth);
		int r = grow(nodes);
		tw__tiny_unlock(&nodes->growth);
		if (r)
			return r;
	}
}

void tw__node_put_later(struct tw__nodes *nodes, struct tw__node_batch *batch,
			struct tw__node *node)
{
	tw_store_relaxed(&node->owner, NULL);
	batch->nodes[batch->count++] = node;
	if (batch->count == TW__NODE_BATCH)
		tw__node_put_batch(nodes, batch);
}

/* Returns memory that is the system's, or NULL. */
static inline char *give_back(struct tw__nodes *nodes, struct tw__node *node)
{
	struct tw__slab *slab = slab_of(nodes, node->index);
	char *memory = slab->memory;
	bool used_up = slab->generation == UINT32_MAX;
	if (!slab->place.where && !used_up)
		tw__line_append(&nodes->partial, tw__in_line_link(&slab->place));
	node->next = 0;
	*(slab->free ? &node_of(nodes, slab, slab->last_free - 1)->next : &slab->free) =
	    node->index + 1;
	slab->last_free = node->index + 1;
	if (tw_likely(--slab->used) || (!used_up && ++nodes->idle <= TW__NODE_IDLE_SLABS))
		return NULL;
	slab->memory = NULL;
	slab->free = slab->fresh = 0;
	if (!used_up) {
		nodes->idle--;
		tw__line_leave(&nodes->partial, &slab->place);
		tw__line_append(&nodes->bare, tw__in_line_link(&slab->place));
	}
	return memory;
}

void tw__node_put_batch(struct tw__nodes *nodes, struct tw__node_batch *batch)
{
	for (uint32_t i = 0; i < batch->count;) {
		char *memory = NULL;
		tw__tiny_lock(&nodes->lock);
		while (i < batch->count && !memory)
			memory = give_back(nodes, batch->nodes[i++]);
		tw__tiny_unlock(&nodes->lock);
		size_t bytes = TW__NODE_SLAB * nodes->node_size;
		if (tw_unlikely(memory) && munmap(memory, bytes)) /* no room for more mappings */
			madvise(memory, bytes, MADV_DONTNEED);
	}
	batch->count = 0;
}

void tw__node_put(struct tw__nodes *nodes, struct tw__node *node)
{
	struct tw__node_batch batch;
	batch.count = 1;
	batch.nodes[0] = node;
	tw_store_relaxed(&node->owner, NULL);
	tw__node_put_batch(nodes, &batch);
}

struct tw__node *tw__node_find(struct tw__nodes *nodes, const struct tw__object *owner,
			       uint64_t handle)
{
	struct tw__node *node = NULL;
	uint32_t index = (uint32_t)handle - 1, number = index / TW__NODE_SLAB;
	tw__tiny_lock(&nodes->lock);
	const struct tw__slab *slab = number < nodes->count ? slab_of(nodes, index) : NULL;
	if (slab && index % TW__NODE_SLAB < slab->fresh)
		node = node_of(nodes, slab, index);
	bool is = node && tw_load_acquire(&node->owner) == owner && /* NODE1 */
		  tw_load_relaxed(&node->generation) == handle >> 32;
	tw__tiny_unlock(&nodes->lock);
	return is ? node : NULL;
}

/* ------------------------------------------------------------------- birth and end */

void tw__nodes_init(struct tw__nodes *nodes, size_t node_size)
{
	TW__UNCANCELLED;
	*nodes = (struct tw__nodes){.node_size = node_size,
				    .max_count = TW__NODES_MAX / TW__NODE_SLAB,
				    .first_generation = (uint32_t)tw__random_bits() / 2};
	tw__line_init(&nodes->partial);
	tw__line_init(&nodes->bare);
}

void tw__nodes_fini(struct tw__nodes *nodes)
{
	for (uint32_t i = 0; i < nodes->count; i++) {
		char *memory = slab_of(nodes, i * TW__NODE_SLAB)->memory;
		if (memory)
			munmap(memory, TW__NODE_SLAB * nodes->node_size);
	}
	for (size_t row = 0; row < sizeof nodes->rows / sizeof *nodes->rows; row++)
		tw__free(nodes->rows[row]);
}
