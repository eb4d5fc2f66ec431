/*
 * Nodes: the tasks and jobs of the layers, with handles that stay safe.
 *
 * A handle is a node's index and generation. Nodes are in slabs of 512. Each node that is taken
 * gets the next generation of its slab. A slab whose generations are used up gives out no more. So
 * no handle ever names a newer node (G5).
 *
 * A slab whose nodes are all free gives its memory back, except for TW__NODE_IDLE_SLABS of them.
 * Free nodes are taken in the order in which they were put: one that was just put is in the cache
 * of the thread that put it.
 *
 * Pairing table
 *   NODE1  owner: store-release (get) -> load-acquire (find): the generation.
 *
 * Under the table's lock there is no call of the system or the allocator, and no first touch of a
 * page. A node ends under its owner's lock.
 */
#ifndef TW_EXECUTOR_NODES_H
#define TW_EXECUTOR_NODES_H

#include "executor/base/line.h"
#include "mpsc/base/atomics.h"

enum { TW__NODE_SLAB = 512, TW__NODE_IDLE_SLABS = 4, TW__NODES_MAX = 1 << 28 };

struct tw__object;

/* What each node begins with. */
struct tw__node {
	_Atomic uint32_t generation;
	uint32_t next;  /* free: the next one's index + 1; 0: none */
	uint32_t index; /* constant while the slab has memory */
	/* the owner's */
	uint8_t state, flags, mode, missed;
	_Atomic(struct tw__object *) owner; /* NULL: it is free, or has ended */
};

/* Under the table's lock. A thread may take nodes of one slab while another puts to the next. */
struct tw__slab {
	_Alignas(TW__CACHE_LINE) char *memory; /* NULL: none */
	struct tw__in_line place; /* in `partial` or `bare`; else all its nodes are in use */
	uint32_t first;           /* index of its first node */
	uint32_t generation;      /* of the node taken last; UINT32_MAX: used up */
	uint32_t free, last_free; /* as `next` of a node: a queue */
	uint32_t used, fresh;     /* nodes that are taken; that were ever, from this memory */
};

struct tw__nodes {
	_Atomic uint32_t lock;
	_Atomic uint32_t growth; /* the lock for adding memory; taken first */
	uint32_t first_generation;
	uint32_t count, max_count; /* of slabs; tests lower the last one */
	uint32_t idle;             /* slabs with memory, none of whose nodes is in use */
	size_t node_size;
	struct tw__line partial, bare; /* slabs with free nodes; without memory */
	struct tw__slab *rows[17];     /* each is twice as long as the one before */
};

/* node_size: bytes, with the struct tw__node; a multiple of 8. Allocates nothing. */
void tw__nodes_init(struct tw__nodes *nodes, size_t node_size);

void tw__nodes_fini(struct tw__nodes *nodes);

/* A node has what its last owner left, or zeros. Returns 0, -ENOMEM, or -EAGAIN: all are in use. */
int tw__node_get(struct tw__nodes *nodes, struct tw__object *owner, struct tw__node **out);

/* Nodes that are put under one hold: waiters still spin. */
enum { TW__NODE_BATCH = 16 };

struct tw__node_batch {
	uint32_t count;
	struct tw__node *nodes[TW__NODE_BATCH];
};

/* Ends the node: handles to it are stale. It is put with the batch, or when that is full. */
void tw__node_put_later(struct tw__nodes *nodes, struct tw__node_batch *batch,
			struct tw__node *node);

void tw__node_put_batch(struct tw__nodes *nodes, struct tw__node_batch *batch);

/* Ends the node, and puts it. */
void tw__node_put(struct tw__nodes *nodes, struct tw__node *node);

/* It is never 0. */
static inline uint64_t tw__node_handle(const struct tw__node *node)
{
	return (uint64_t)tw_load_relaxed(&node->generation) << 32 | (node->index + 1);
}

/* The owner's node of a handle; NULL: there is none. Any number is allowed. Its lock is held. */
struct tw__node *tw__node_find(struct tw__nodes *nodes, const struct tw__object *owner,
			       uint64_t handle);

#endif
