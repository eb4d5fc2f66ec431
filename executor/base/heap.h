/*
 * The heap: the only min-heap of the tree, for the tasks of schedulers and strands, and for the
 * heap timers of the bench.
 *
 * Order: by key (signed), then by id, so equals leave in the order of their ids. An entry belongs
 * to its owner and knows its index, so any entry is removed, or moved to another key, in O(log n).
 * The key is in the heap's own array, so sifting compares neighbors and follows a pointer only
 * where two keys are equal. Sifts move a hole instead of swapping: one write of a node and of an
 * index per level (J. W. J. Williams: Algorithm 232, Heapsort, 1964).
 *
 * Inline, so that users pay for no call. The shape is a constant where it is used: the number of
 * children of a node, and whether ids count. Without ids equals leave in any order, and entries
 * need no id: the classic timer heap. The children of a node begin at a multiple of their number,
 * so four of them fill one cache line.
 *
 * Loose: a heap whose entries do not know their indices, only whether they are in it. They leave as
 * the first, or in a sweep. Sifting then touches only the array: with 100 000 entries that saves a
 * cache line a level.
 *
 * Memory: a push grows the array and may fail (-ENOMEM, nothing changed). After tw__heap_reserve a
 * push does not fail. Only tw__heap_give_back shrinks the array.
 *
 * Lock: the user's.
 */
#ifndef TW_EXECUTOR_HEAP_H
#define TW_EXECUTOR_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpsc/base/assert.h"

enum { TW__HEAP_NOWHERE = 0xffffffff, TW__HEAP_MAX = 1 << 30 };

/* Belongs to its owner, who sets index to NOWHERE before the first use. In no heap: NOWHERE. */
struct tw__heap_entry {
	uint32_t index;
	uint32_t spare; /* its owner's */
};

/*
 * An entry of a heap in which ids count. The owner sets id; constant while the entry is in the
 * heap.
 */
struct tw__heap_item {
	struct tw__heap_entry entry;
	uint64_t id;
};

struct tw__heap_node {
	int64_t key;
	struct tw__heap_entry *entry;
};

/* All zero: empty. */
struct tw__heap {
	struct tw__heap_node *nodes; /* nodes[1] begins a cache line */
	struct tw__heap_node *memory;
	uint32_t count, capacity;
};

/*
 * One number, which compilers carry as a constant through calls: the arity, plus 256 if ids count
 * and entries are items, plus 512 if the heap is loose.
 */
#define TW__HEAP_SHAPE(arity, by_id) ((unsigned)(arity) | ((by_id) ? 256u : 0u))
#define TW__HEAP_ARITY(shape) ((shape)&255u)
#define TW__HEAP_BY_ID(shape) ((shape)&256u)
#define TW__HEAP_IS_LOOSE(shape) ((shape)&512u)
#define TW__HEAP_USUAL TW__HEAP_SHAPE(2, true)
#define TW__HEAP_LOOSE (TW__HEAP_USUAL | 512u)

/* Makes room for `capacity` entries in all: until then no push fails. Returns 0 or -ENOMEM. */
int tw__heap_reserve_as(struct tw__heap *heap, uint32_t capacity, unsigned shape);

/* Empties the heap, which stays usable. Entries are not changed. */
void tw__heap_free(struct tw__heap *heap);

/*
 * Gives the memory of the nodes from .. to back to the system, in whole pages. The capacity stays.
 * These nodes hold nothing. Costs one system call; later pushes there touch new pages.
 */
void tw__heap_give_back(struct tw__heap *heap, uint32_t from, uint32_t to);

/* --------------------------------------------------------------------- sifts */

static inline uint64_t tw__heap_id(const struct tw__heap_entry *entry)
{
	return ((const struct tw__heap_item *)(const void *)entry)->id;
}

static inline bool tw__heap_before(struct tw__heap_node a, struct tw__heap_node b, unsigned shape)
{
	return TW__HEAP_BY_ID(shape) && a.key == b.key ? tw__heap_id(a.entry) < tw__heap_id(b.entry)
						       : a.key < b.key;
}

static inline void tw__heap_put(struct tw__heap *heap, uint32_t index, struct tw__heap_node node,
				unsigned shape)
{
	TW_ASSERT(index < heap->capacity);
	heap->nodes[index] = node;
	if (!TW__HEAP_IS_LOOSE(shape))
		node.entry->index = index; /* planted: heap_index */
}

static inline void tw__heap_sift_up(struct tw__heap *heap, uint32_t hole, struct tw__heap_node node,
				    unsigned shape)
{
	while (hole > 0) {
		uint32_t parent = (hole - 1) / TW__HEAP_ARITY(shape);
		if (!tw__heap_before(node, heap->nodes[parent], shape))
			break;
		tw__heap_put(heap, hole, heap->nodes[parent], shape);
		hole = parent;
	}
	tw__heap_put(heap, hole, node, shape);
}

/*
 * Of the children that begin at `first`, the one to leave first. Two functions, not one that tests
 * inside its loop: then compilers choose without a branch, which would be mispredicted half the
 * time.
 */
static inline uint32_t tw__heap_least_child(const struct tw__heap *heap, uint32_t first,
					    unsigned shape)
{
	uint32_t best = first, end = heap->count - first < TW__HEAP_ARITY(shape)
					 ? heap->count
					 : first + TW__HEAP_ARITY(shape);
	int64_t key = heap->nodes[first].key;
	for (uint32_t child = first + 1; child < end; child++) {
		bool before = heap->nodes[child].key < key;
		key = before ? heap->nodes[child].key : key;
		best = before ? child : best;
	}
	return best;
}

static inline uint32_t tw__heap_least_child_by_id(const struct tw__heap *heap, uint32_t first,
						  unsigned shape)
{
	uint32_t best = first, end = heap->count - first < TW__HEAP_ARITY(shape)
					 ? heap->count
					 : first + TW__HEAP_ARITY(shape);
	for (uint32_t child = first + 1; child < end; child++) {
		bool before = tw__heap_before(heap->nodes[child], heap->nodes[best], shape);
		best ^= (best ^ child) & -(uint32_t)before;
	}
	return best;
}

static inline void tw__heap_sift_down(struct tw__heap *heap, uint32_t hole,
				      struct tw__heap_node node, unsigned shape)
{
	for (uint32_t first; (first = TW__HEAP_ARITY(shape) * hole + 1) < heap->count;) {
		uint32_t child = TW__HEAP_BY_ID(shape)
				     ? tw__heap_least_child_by_id(heap, first, shape)
				     : tw__heap_least_child(heap, first, shape);
		if (!tw__heap_before(heap->nodes[child], node, shape))
			break;
		tw__heap_put(heap, hole, heap->nodes[child], shape);
		hole = child;
	}
	tw__heap_put(heap, hole, node, shape);
}

static inline void tw__heap_sift(struct tw__heap *heap, uint32_t hole, struct tw__heap_node node,
				 unsigned shape)
{
	if (hole > 0 &&
	    tw__heap_before(node, heap->nodes[(hole - 1) / TW__HEAP_ARITY(shape)], shape))
		tw__heap_sift_up(heap, hole, node, shape);
	else
		tw__heap_sift_down(heap, hole, node, shape);
}

/* ------------------------------------------------------------- of any shape */

/* There is room: reserved, and not used up. */
static inline void tw__heap_push_reserved_as(struct tw__heap *heap, struct tw__heap_entry *entry,
					     int64_t key, unsigned shape)
{
	TW_ASSERT(heap->count < heap->capacity);
	struct tw__heap_node node = {.key = key, .entry = entry};
	if (TW__HEAP_IS_LOOSE(shape))
		entry->index = 0;
	tw__heap_sift_up(heap, heap->count++, node, shape);
}

/* The entry is in the heap, which is not loose. */
static inline void tw__heap_remove_as(struct tw__heap *heap, struct tw__heap_entry *entry,
				      unsigned shape)
{
	TW_ASSERT(entry->index < heap->count && heap->nodes[entry->index].entry == entry);
	uint32_t hole = entry->index;
	entry->index = TW__HEAP_NOWHERE;
	struct tw__heap_node last = heap->nodes[--heap->count];
	if (hole != heap->count)
		tw__heap_sift(heap, hole, last, shape);
}

/* The entry is in the heap, which is not loose. From now on it has another key. */
static inline void tw__heap_rekey_as(struct tw__heap *heap, struct tw__heap_entry *entry,
				     int64_t key, unsigned shape)
{
	TW_ASSERT(entry->index < heap->count && heap->nodes[entry->index].entry == entry);
	struct tw__heap_node node = {.key = key, .entry = entry};
	tw__heap_sift(heap, entry->index, node, shape);
}

/* -------------------------------------------------------- by key, then by id */

static inline void tw__heap_item_init(struct tw__heap_item *item, uint64_t id)
{
	item->entry.index = TW__HEAP_NOWHERE;
	item->id = id;
}

static inline bool tw__heap_has(const struct tw__heap_item *item)
{
	return item->entry.index != TW__HEAP_NOWHERE;
}

/* The key of the first to leave, in a heap that is not empty. */
static inline int64_t tw__heap_first_key(const struct tw__heap *heap)
{
	TW_ASSERT(heap->count > 0);
	return heap->nodes[0].key;
}

/* The first to leave, which stays; NULL: empty. */
static inline struct tw__heap_item *tw__heap_peek(const struct tw__heap *heap)
{
	return heap->count ? (struct tw__heap_item *)(void *)heap->nodes[0].entry : NULL;
}

static inline int tw__heap_reserve(struct tw__heap *heap, uint32_t capacity)
{
	return capacity <= heap->capacity ? 0 : tw__heap_reserve_as(heap, capacity, TW__HEAP_USUAL);
}

static inline void tw__heap_push_reserved(struct tw__heap *heap, struct tw__heap_item *item,
					  int64_t key)
{
	tw__heap_push_reserved_as(heap, &item->entry, key, TW__HEAP_USUAL);
}

static inline void tw__heap_remove(struct tw__heap *heap, struct tw__heap_item *item)
{
	tw__heap_remove_as(heap, &item->entry, TW__HEAP_USUAL);
}

static inline void tw__heap_rekey(struct tw__heap *heap, struct tw__heap_item *item, int64_t key)
{
	tw__heap_rekey_as(heap, &item->entry, key, TW__HEAP_USUAL);
}

/* NULL: empty. */
static inline struct tw__heap_item *tw__heap_pop(struct tw__heap *heap)
{
	struct tw__heap_item *first = tw__heap_peek(heap);
	if (first)
		tw__heap_remove(heap, first);
	return first;
}

/*
 * Any item whose removal costs nothing, for owners that empty a heap which is not loose. NULL:
 * empty.
 */
static inline struct tw__heap_item *tw__heap_pop_any(struct tw__heap *heap)
{
	enum { AHEAD = 8 };
	if (!heap->count)
		return NULL;
	struct tw__heap_entry *last = heap->nodes[--heap->count].entry;
	if (heap->count >= AHEAD)
		__builtin_prefetch(heap->nodes[heap->count - AHEAD].entry, 1);
	last->index = TW__HEAP_NOWHERE;
	return (struct tw__heap_item *)(void *)last;
}

/* ---------------------------------------------------------------- the same, loose */

static inline void tw__heap_push_loose(struct tw__heap *heap, struct tw__heap_item *item,
				       int64_t key)
{
	tw__heap_push_reserved_as(heap, &item->entry, key, TW__HEAP_LOOSE);
}

/* NULL: empty. */
static inline struct tw__heap_item *tw__heap_pop_loose(struct tw__heap *heap)
{
	struct tw__heap_item *first = tw__heap_peek(heap);
	if (!first)
		return NULL;
	first->entry.index = TW__HEAP_NOWHERE;
	struct tw__heap_node last = heap->nodes[--heap->count];
	if (heap->count)
		tw__heap_sift_down(heap, 0, last, TW__HEAP_LOOSE);
	return first;
}

/*
 * Takes out all entries that keep(item, arg) refuses, in O(n), from a heap of either kind. It is
 * called once for each, in any order; the place of a refused entry is NOWHERE.
 */
void tw__heap_sweep(struct tw__heap *heap, bool keep(struct tw__heap_item *item, void *arg),
		    void *arg);

#endif
