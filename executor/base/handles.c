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

/* Others who want the lock meanwhile still spin. */
enum { PUT_TOGETHER = 16 };

static struct tw__node *node_at(const struct tw__nodes *nodes, uint32_t index)
{
	const struct tw__slab *slab = nodes->slabs[index / TW__NODE_SLAB];
	size_t offset = index % TW__NODE_SLAB * nodes->node_size;
	return (struct tw__node *)(void *)(slab->memory + offset);
}

/* Its distance from the first one. */
static uint32_t age_of(const struct tw__nodes *nodes, uint32_t generation)
{
	return generation - nodes->first_generation;
}

static struct tw__slab *first_slab(const struct tw__line *line)
{
	return line->first ? TW__OWNER(struct tw__slab, place, line->first) : NULL;
}

/* ------------------------------------------------------------------------ slabs */

/* Makes room for more slabs. Without the lock. A fork may come at any moment. */
static int grow_table(struct tw__nodes *nodes)
{
	tw__tiny_lock(&nodes->lock);
	uint32_t room = nodes->room ? 2 * nodes->room : 8;
	tw__tiny_unlock(&nodes->lock);
	struct tw__slab **larger = tw__alloc(room * sizeof(void *)), **old = larger;
	if (!larger)
		return -ENOMEM;
	tw__tiny_lock(&nodes->lock);
	if (nodes->room < room) {
		for (uint32_t i = 0; i < nodes->count; i++)
			larger[i] = nodes->slabs[i];
		old = nodes->slabs;
		nodes->slabs = larger;
		nodes->room = room;
	}
	tw__tiny_unlock(&nodes->lock);
	tw__free(old);
	return 0;
}

/* Another slab, purged. The lock is held. Returns 0 or -EAGAIN. */
static int add_purged(struct tw__nodes *nodes, struct tw__slab *slab)
{
	if (nodes->count == nodes->max_count)
		return -EAGAIN;
	*slab = (struct tw__slab){.first = nodes->count * TW__NODE_SLAB,
				  .base = nodes->first_generation};
	nodes->slabs[nodes->count] = slab;
	nodes->count++;
	tw__line_append(&nodes->purged, tw__in_line_link(&slab->place));
	return 0;
}

/* Memory of slabs, linked by its first word. */
struct purged {
	struct purged *next;
};

static void purge(struct tw__nodes *nodes, struct tw__slab *slab, struct purged **purged)
{
	struct purged *memory = (struct purged *)(void *)slab->memory;
	memory->next = *purged;
	*purged = memory;
	slab->memory = NULL;
	slab->free = slab->fresh = 0;
	nodes->idle--;
	tw__line_leave(&nodes->partial, &slab->place);
	tw__line_append(&nodes->purged, tw__in_line_link(&slab->place));
}

/* Without the lock. If there is no room for more mappings, the pages alone go. */
static void unmap(const struct tw__nodes *nodes, struct purged *purged)
{
	size_t bytes = TW__NODE_SLAB * nodes->node_size;
	for (struct purged *next; purged; purged = next) {
		next = purged->next;
		if (munmap(purged, bytes))
			madvise(purged, bytes, MADV_DONTNEED);
	}
}

/* Without the lock: gives some purged slab memory. Returns 0, -ENOMEM or -EAGAIN. */
static int add_slab(struct tw__nodes *nodes)
{
	struct purged *memory = tw__map(TW__NODE_SLAB * nodes->node_size);
	struct tw__slab *spare = tw__alloc_aligned(_Alignof(struct tw__slab), sizeof *spare);
	int r = memory && spare ? 0 : -ENOMEM;
	tw__tiny_lock(&nodes->lock);
	while (!r && !nodes->purged.first && nodes->count == nodes->room) {
		tw__tiny_unlock(&nodes->lock);
		r = grow_table(nodes);
		tw__tiny_lock(&nodes->lock);
	}
	if (!r && !nodes->purged.first && !(r = add_purged(nodes, spare)))
		spare = NULL;
	if (!r) {
		first_slab(&nodes->purged)->memory = (char *)memory;
		tw__line_append(&nodes->partial, tw__line_pop(&nodes->purged));
		nodes->idle++;
	}
	tw__tiny_unlock(&nodes->lock);
	tw__free(spare);
	if (r && memory) {
		memory->next = NULL;
		unmap(nodes, memory);
	}
	return r;
}

/* -------------------------------------------------------------------- get and put */

/*
 * A node of the first slab; NULL: there is none. *fresh: its generation if it was never taken from
 * this memory. Then it is not touched here, since a page may have to come first.
 */
static struct tw__node *take(struct tw__nodes *nodes, uint32_t *index, uint32_t *fresh)
{
	struct tw__slab *slab = first_slab(&nodes->partial);
	if (!slab)
		return NULL;
	*index = slab->free ? slab->free - 1 : slab->first + slab->fresh++;
	struct tw__node *node = node_at(nodes, *index);
	*fresh = slab->free ? 0 : slab->base;
	slab->free = slab->free ? node->next : 0;
	nodes->idle -= slab->used++ == 0;
	if (!slab->free && slab->fresh == TW__NODE_SLAB)
		tw__line_leave(&nodes->partial, &slab->place);
	return node;
}

int tw__node_get(struct tw__nodes *nodes, struct tw__object *owner, struct tw__node **out)
{
	uint32_t index, fresh;
	for (;;) {
		tw__tiny_lock(&nodes->lock);
		struct tw__node *node = *out = take(nodes, &index, &fresh);
		tw__tiny_unlock(&nodes->lock);
		int r = tw_likely(node != NULL) ? 0 : add_slab(nodes);
		if (tw_unlikely(r))
			return r;
		if (!node)
			continue;
		if (fresh) {
			node->index = index;
			tw_store_relaxed(&node->generation, fresh);
		}
		tw_store_relaxed(&node->owner, owner);
		return 0;
	}
}

/* False: the node has used all generations up. */
static inline bool end_node(const struct tw__nodes *nodes, struct tw__node *node)
{
	uint32_t next = tw_load_relaxed(&node->generation) + 1;
	next += next == 0;
	tw_store_relaxed(&node->owner, NULL);
	tw_store_relaxed(&node->generation, next);
	return tw_likely(next != nodes->first_generation - 1);
}

void tw__node_put_later(struct tw__nodes *nodes, struct tw__node_batch *batch,
			struct tw__node *node)
{
	if (!end_node(nodes, node))
		return;
	node->next = batch->first;
	batch->first = node->index + 1;
	if (++batch->count == PUT_TOGETHER)
		tw__node_put_batch(nodes, batch);
}

static void give_back(struct tw__nodes *nodes, struct tw__node *node, struct purged **purged)
{
	struct tw__slab *slab = nodes->slabs[node->index / TW__NODE_SLAB];
	uint32_t generation = tw_load_relaxed(&node->generation);
	if (age_of(nodes, generation) > age_of(nodes, slab->base))
		slab->base = generation;
	if (!slab->free && slab->fresh == TW__NODE_SLAB)
		tw__line_append(&nodes->partial, tw__in_line_link(&slab->place));
	node->next = 0;
	*(slab->free ? &node_at(nodes, slab->last_free - 1)->next : &slab->free) = node->index + 1;
	slab->last_free = node->index + 1;
	if (--slab->used == 0 && ++nodes->idle > TW__NODE_IDLE_SLABS)
		purge(nodes, slab, purged);
}

void tw__node_put_batch(struct tw__nodes *nodes, struct tw__node_batch *batch)
{
	struct purged *purged = NULL;
	if (!batch->first)
		return;
	tw__tiny_lock(&nodes->lock);
	while (batch->first) {
		struct tw__node *node = node_at(nodes, batch->first - 1);
		batch->first = node->next;
		give_back(nodes, node, &purged);
	}
	tw__tiny_unlock(&nodes->lock);
	batch->count = 0;
	unmap(nodes, purged);
}

void tw__node_put(struct tw__nodes *nodes, struct tw__node *node)
{
	struct purged *purged = NULL;
	if (!end_node(nodes, node))
		return;
	tw__tiny_lock(&nodes->lock);
	give_back(nodes, node, &purged);
	tw__tiny_unlock(&nodes->lock);
	unmap(nodes, purged);
}

struct tw__node *tw__node_find(struct tw__nodes *nodes, const struct tw__object *owner,
			       uint64_t handle)
{
	struct tw__node *node = NULL;
	uint32_t index = (uint32_t)handle - 1, number = index / TW__NODE_SLAB;
	tw__tiny_lock(&nodes->lock);
	if (number < nodes->count && index % TW__NODE_SLAB < nodes->slabs[number]->fresh)
		node = node_at(nodes, index);
	bool is = node && tw_load_relaxed(&node->generation) == handle >> 32 &&
		  tw_load_relaxed(&node->owner) == owner;
	tw__tiny_unlock(&nodes->lock);
	return is ? node : NULL;
}

/* ------------------------------------------------------------------- birth and end */

void tw__nodes_init(struct tw__nodes *nodes, size_t node_size)
{
	TW__UNCANCELLED;
	uint32_t generation = (uint32_t)tw__random_bits();
	*nodes = (struct tw__nodes){.node_size = node_size,
				    .max_count = TW__NODES_MAX / TW__NODE_SLAB,
				    /* not 0, and not 1: the last one would be just before it */
				    .first_generation = generation < 2 ? 2 : generation};
	tw__line_init(&nodes->partial);
	tw__line_init(&nodes->purged);
}

void tw__nodes_fini(struct tw__nodes *nodes)
{
	for (uint32_t i = 0; i < nodes->count; i++) {
		struct tw__slab *slab = nodes->slabs[i];
		if (slab->memory)
			munmap(slab->memory, TW__NODE_SLAB * nodes->node_size);
		tw__free(slab);
	}
	tw__free(nodes->slabs);
}
