/*
 * Nodes: the tasks and jobs of the layers above the service, with handles that stay safe.
 *
 * A handle is a node's index and generation. A node's address belongs to the table until the table
 * ends. So a stale handle is looked up without harm: its generation does not match. Generations
 * begin at a random value for each table and are never 0. A node whose generations are used up is
 * retired. So no handle ever names a newer node (G5).
 *
 * Nodes are in slabs of 128. A slab's free nodes form a stack (R. K. Treiber, 1986). Its word holds
 * all that changes, so get and put are one compare-and-swap:
 *
 *     word:  tag (40 bits) | used (8) | fresh (8) | head (8)
 *            takings         nodes     nodes that  first free node's
 *            (against ABA)   taken     were given  place + 1; 0: none
 *                                      out at all
 *
 * All threads take from one slab, the **current** one. When it is exhausted, another one becomes
 * current. The lock guards which one, and the lists of slabs that are not current and have free
 * nodes.
 *
 *     state of a slab   list       when
 *     OUT               -          current, or more than half used, or being purged
 *     IDLE              idle       all its nodes are free; at most TW__NODE_IDLE_SLABS are kept
 *     PARTIAL           partial    half of them are
 *     PURGED            purged     all are, and its memory has gone back to the system
 *
 * Slabs are taken in this order. An idle slab is in no other thread's cache, and lasts. The state
 * is a hint: a thread that has read `current` long ago may still take from a slab of any list. Only
 * the word decides. If no slab is left and none can be made, all words are searched.
 *
 * Purge, by the thread that gives a slab's last node back, if too many slabs are idle:
 * 1. Claim: CAS of the word from "nothing used" to "nothing left", so no thread takes a node.
 * 2. base := the furthest generation of its nodes. All of them continue from there.
 * 3. Give the pages back. They read as zeros, and generation 0 matches no handle.
 * 4. Open: store of the word "nothing used, nothing fresh".
 *
 * tw__node_find is a hint: another thread may free the node immediately, and it may read as zeros.
 * The caller takes the lock that guards the node's contents, and calls tw__node_is once more. That
 * lock must not be in the node's own contents.
 *
 * Pairing table
 *   NODE1  word: CAS seq_cst (put), store-release (open) -> CAS acq_rel (get), CAS acq_rel (claim):
 *       what the last owner wrote, above all next_free, and `base`. Without it get may take a link
 *       that was never there.
 *   NODE2  extents[k]: store-release (grow) -> load-acquire (find, put): its slabs and nodes exist.
 *   NODE3  generation: store-release (put, get) -> load-acquire (find, is): a thread that sees the
 *       old one may read a node's contents only under its lock.
 *   NODE4  current: store seq_cst, then load of the old slab's word (next_slab), against CAS of the
 *       word, then load of current (put, both seq_cst): of the last look at an exhausted slab, and
 *       the put that frees half of it, one sees the other, and lists the slab. Without it the slab
 *       is lost.
 *
 * Weak at: many threads that get without pause, since they share the current slab's word; tables
 * where one node of each slab lives for long, since a slab is given back as a whole; pages larger
 * than 4 KiB, whose memory stays.
 */
#ifndef TW_EXECUTOR_NODES_H
#define TW_EXECUTOR_NODES_H

#include <pthread.h>
#include <stdalign.h>

#include "mpsc/base/atomics.h"

enum {
	TW__NODE_SLAB_BITS = 7,
	TW__NODE_SLAB = 1 << TW__NODE_SLAB_BITS,
	TW__NODE_EXTENTS = 21,
	TW__NODE_IDLE_SLABS = 16,
	TW__NODES_MAX = 1 << 28
};

/* What each node begins with. */
struct tw__node {
	_Atomic uint32_t generation;
	_Atomic uint32_t next_free; /* its place in the slab + 1; 0: none */
	uint32_t index;             /* constant while the slab has memory */
	/* Its owner's, for whatever; these names suit items (item.h). */
	uint8_t state, flags, mode, missed;
};

enum tw__slab_state {
	TW__SLAB_OUT,
	TW__SLAB_PARTIAL,
	TW__SLAB_IDLE,
	TW__SLAB_PURGED,
	TW__SLAB_STATES
};

/* Under the lock, except the word; the memory and `first` are constant. */
struct tw__slab {
	alignas(TW__CACHE_LINE) _Atomic uint64_t word;
	char *memory;
	uint32_t first; /* the index of its first node */
	uint32_t base;  /* generation of nodes given out first, or again after a purge */
	enum tw__slab_state state;
	struct tw__slab *before, *next; /* in the list of its state */
};

/*
 * Extent k holds 2^k slabs, from slab 2^k - 1 on. The first is allocated, and never purged; the
 * others are mapped.
 */
struct tw__extent {
	char *memory;
	size_t bytes;
	struct tw__slab *slabs;
};

struct tw__nodes {
	_Atomic(struct tw__slab *) current; /* NULL: no node was taken yet */
	size_t node_size, slab_bytes;
	uint32_t first_generation;
	_Atomic(struct tw__extent *) extents[TW__NODE_EXTENTS];

	pthread_mutex_t lock; /* for what follows, and the slabs' lists */
	struct tw__slab *lists[TW__SLAB_STATES];
	uint32_t idle;      /* slabs in that list */
	uint32_t slabs;     /* made so far */
	uint32_t max_slabs; /* constant; tests lower it */
	_Atomic uint32_t retired;
};

/*
 * node_size: bytes, with the struct tw__node at the beginning; a multiple of 8. The table holds
 * TW__NODES_MAX nodes, less one slab. Allocates nothing.
 */
void tw__nodes_init(struct tw__nodes *nodes, size_t node_size);

/* Frees all nodes, too. */
void tw__nodes_fini(struct tw__nodes *nodes);

/*
 * Takes a node. After its head it holds what its last owner left, or zeros. Returns 0, -ENOMEM, or
 * -EAGAIN: all are in use.
 */
int tw__node_get(struct tw__nodes *nodes, struct tw__node **out);

/*
 * Frees the node. Handles to it are stale from now on. Sometimes gives memory back to the system: a
 * system call.
 */
void tw__node_put(struct tw__nodes *nodes, struct tw__node *node);

/* Nodes of one slab that are put with one compare-and-swap. All zeros: empty. */
struct tw__node_batch {
	struct tw__node *last; /* the first node that was put: the end of the chain */
	unsigned head, count;  /* place + 1 of the one that was put last */
};

/*
 * Ends the node as tw__node_put does. The memory stays in use until tw__node_put_batch, or until a
 * node of another slab is put.
 */
void tw__node_put_later(struct tw__nodes *nodes, struct tw__node_batch *batch,
			struct tw__node *node);

/* Puts what the batch holds, and empties it. */
void tw__node_put_batch(struct tw__nodes *nodes, struct tw__node_batch *batch);

/*
 * As tw__node_put, for a node that its owner uses again itself. False: the node is retired, and
 * belongs to nobody.
 */
bool tw__node_end(struct tw__nodes *nodes, struct tw__node *node);

/* Never 0, which is "none". */
static inline uint64_t tw__node_handle(const struct tw__node *node)
{
	return (uint64_t)tw_load_relaxed(&node->generation) << 32 | (node->index + 1);
}

/* Tells whether the handle still names the node. */
static inline bool tw__node_is(const struct tw__node *node, uint64_t handle)
{
	return tw_load_acquire(&node->generation) == handle >> 32; /* NODE3 */
}

/* The node of a handle. NULL: stale, or never given out. Any number is allowed. */
struct tw__node *tw__node_find(const struct tw__nodes *nodes, uint64_t handle);

#endif
