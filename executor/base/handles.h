/*
 * Nodes: the tasks and jobs of the layers above the service, with handles that never go bad.
 *
 * A handle is a node's index and generation. Memory of nodes stays theirs until the whole table ends, so a stale handle is looked up
 * without harm: its generation no longer matches. Generations begin at a random value for each table, and a node whose generation has come round
 * is retired, so no handle ever names a newer node (G5).
 *
 * get and put are lock-free: a stack of free nodes (R. K. Treiber, 1986) whose head carries a count of takings against ABA. Growing
 * takes a mutex and allocates: chunks of 64, 128, 256 .. nodes, which never move.
 *
 * tw__node_find is a hint: the node may go to somebody else at once. Its user takes whatever lock guards the node's contents and asks
 * tw__node_is once more; the lock must not lie in the node's own contents, unless these outlive the node's owner.
 *
 * Pairing table
 *   N1  free: CAS acq_rel (put) -> CAS acq_rel (get): what the last owner wrote, next_free above all. Without it get may
 *       take a link that was never there.
 *   N2  chunks[k]: store-release (grow) -> load-acquire (find): a chunk's nodes are zeroed and numbered.
 *   N3  generation: store-release (put) -> load-acquire (find, is): who sees the old one may read a node's contents only under its lock.
 *
 * Not good at: threads that get and put flat out at once; they share the head's cache line.
 */
#ifndef TW_EXECUTOR_NODES_H
#define TW_EXECUTOR_NODES_H

#include <pthread.h>

#include "mpsc/base/atomics.h"

enum { TW__NODE_CHUNKS = 23, TW__NODE_FIRST_BITS = 6, TW__NODES_MAX = 1 << 28 };

/* What each node begins with. */
struct tw__node {
	_Atomic uint32_t generation;
	_Atomic uint32_t next_free; /* index + 1; 0: none */
	uint32_t index;             /* constant */
	uint32_t spare;             /* its owner's */
};

struct tw__nodes {
	_Atomic uint64_t free; /* takings (32 bits) | index + 1 of the first free node, or 0 */
	_Atomic(char *) chunks[TW__NODE_CHUNKS];
	size_t node_size;
	uint32_t first_generation;
	uint32_t max;
	_Atomic uint32_t made; /* under the lock */
	_Atomic uint32_t retired;
	pthread_mutex_t lock;
};

/* node_size: bytes, the struct tw__node at the beginning included; a multiple of 8. max: 1 .. TW__NODES_MAX. Allocates nothing. */
void tw__nodes_init(struct tw__nodes *nodes, size_t node_size, uint32_t max);

/* All nodes are gone with it. */
void tw__nodes_fini(struct tw__nodes *nodes);

/* A node of the caller's own; beyond its head it holds what its last owner left, or zeros. 0, -ENOMEM, or -EAGAIN: max are in use. */
int tw__node_get(struct tw__nodes *nodes, struct tw__node **out);

/* Free again; handles to it are stale from now on. */
void tw__node_put(struct tw__nodes *nodes, struct tw__node *node);

/* The same for a node that its owner keeps, to use it again himself. False: it is retired, and nobody's. */
bool tw__node_end(struct tw__nodes *nodes, struct tw__node *node);

/* Never 0, which is "none". */
static inline uint64_t tw__node_handle(const struct tw__node *node)
{
	return (uint64_t)tw_load_relaxed(&node->generation) << 32 | (node->index + 1);
}

/* Whether the handle is still the node's. */
static inline bool tw__node_is(const struct tw__node *node, uint64_t handle)
{
	return tw_load_acquire(&node->generation) == handle >> 32; /* N3 */
}

/* The node of a handle, or NULL: stale, or never given out. Any number may be asked for. */
struct tw__node *tw__node_find(const struct tw__nodes *nodes, uint64_t handle);

#endif
