#include "executor/base/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define FREE_INDEX UINT64_C(0xffffffff)

/* Chunk k holds the indices from FIRST * (2^k - 1) on, FIRST * 2^k of them. */
static unsigned chunk_of(uint32_t index)
{
	return 31u - (unsigned)__builtin_clz((index >> TW__NODE_FIRST_BITS) + 1);
}

static uint32_t chunk_start(unsigned chunk)
{
	return ((UINT32_C(1) << chunk) - 1) << TW__NODE_FIRST_BITS;
}

static size_t chunk_nodes(unsigned chunk)
{
	return (size_t)1 << (chunk + TW__NODE_FIRST_BITS);
}

/* NULL: there is none yet. */
static struct tw__node *node_at(const struct tw__nodes *nodes, uint32_t index)
{
	unsigned chunk = chunk_of(index);
	if (chunk >= TW__NODE_CHUNKS)
		return NULL;
	char *start = tw_load_acquire(&nodes->chunks[chunk]); /* N2 */
	return start ? (struct tw__node *)(void *)(start + (index - chunk_start(chunk)) * nodes->node_size) : NULL;
}

void tw__nodes_init(struct tw__nodes *nodes, size_t node_size, uint32_t max)
{
	*nodes = (struct tw__nodes){.node_size = node_size, .max = max};
	pthread_mutex_init(&nodes->lock, NULL);
	if (getrandom(&nodes->first_generation, sizeof nodes->first_generation, 0) < 0)
		nodes->first_generation = (uint32_t)getpid() * UINT32_C(2654435761);
}

void tw__nodes_fini(struct tw__nodes *nodes)
{
	for (unsigned chunk = 0; chunk < TW__NODE_CHUNKS; chunk++)
		free(tw_load_relaxed(&nodes->chunks[chunk]));
	pthread_mutex_destroy(&nodes->lock);
}

/* ---------------------------------------------------------------------- free */

static struct tw__node *pop(struct tw__nodes *nodes)
{
	uint64_t head = tw_load_acquire(&nodes->free), rest; /* N1 */
	struct tw__node *node;
	do {
		if (!(head & FREE_INDEX))
			return NULL;
		node = node_at(nodes, (uint32_t)(head & FREE_INDEX) - 1);
		/* If it is taken meanwhile, this is a stale number, and the count has moved on. */
		rest = ((head >> 32) + 1) << 32 | tw_load_relaxed(&node->next_free);
	} while (!tw_cas_acq_rel(&nodes->free, &head, rest)); /* N1 */
	return node;
}

static void push(struct tw__nodes *nodes, struct tw__node *node)
{
	uint64_t head = tw_load_relaxed(&nodes->free);
	do {
		tw_store_relaxed(&node->next_free, (uint32_t)(head & FREE_INDEX));
	} while (!tw_cas_acq_rel(&nodes->free, &head, (head & ~FREE_INDEX) | (node->index + 1))); /* N1 */
}

/* ---------------------------------------------------------------------- grow */

/* The lock is held. Its first node; NULL: out of memory. */
static struct tw__node *add_chunk(struct tw__nodes *nodes, unsigned chunk)
{
	char *start = calloc(chunk_nodes(chunk), nodes->node_size);
	if (start)
		tw_store_release(&nodes->chunks[chunk], start); /* N2 */
	return (struct tw__node *)(void *)start;
}

/* A node that nobody has had. Numbered as it is given out, so that untouched memory stays so. */
static int make(struct tw__nodes *nodes, struct tw__node **out)
{
	uint32_t index = tw_load_relaxed(&nodes->made);
	unsigned chunk = chunk_of(index);
	if (index - tw_load_relaxed(&nodes->retired) >= nodes->max || index >= TW__NODES_MAX)
		return -EAGAIN;
	struct tw__node *node =
	    tw_load_relaxed(&nodes->chunks[chunk]) ? node_at(nodes, index) : add_chunk(nodes, chunk);
	if (!node)
		return -ENOMEM;
	node->index = index;
	tw_store_release(&node->generation, nodes->first_generation);
	*out = node;
	tw_store_release(&nodes->made, index + 1);
	return 0;
}

int tw__node_get(struct tw__nodes *nodes, struct tw__node **out)
{
	*out = pop(nodes);
	if (tw_likely(*out != NULL))
		return 0;
	pthread_mutex_lock(&nodes->lock);
	int r = make(nodes, out);
	pthread_mutex_unlock(&nodes->lock);
	if (r == -EAGAIN && (*out = pop(nodes)))
		r = 0; /* one came back meanwhile */
	return r;
}

bool tw__node_end(struct tw__nodes *nodes, struct tw__node *node)
{
	uint32_t next = tw_load_relaxed(&node->generation) + 1;
	tw_store_release(&node->generation, next); /* N3 */
	if (tw_likely(next != nodes->first_generation - 1))
		return true;
	tw_add_relaxed(&nodes->retired,
		       1); /* this one generation is never given out: the table's handles all lie behind */
	return false;
}

void tw__node_put(struct tw__nodes *nodes, struct tw__node *node)
{
	if (tw__node_end(nodes, node))
		push(nodes, node);
}

struct tw__node *tw__node_find(const struct tw__nodes *nodes, uint64_t handle)
{
	uint32_t index = (uint32_t)handle - 1;
	if ((uint32_t)handle == 0 || index >= tw_load_acquire(&nodes->made))
		return NULL;
	struct tw__node *node = node_at(nodes, index);
	return node && tw__node_is(node, handle) ? node : NULL;
}
