#include "mpsc/lane.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/reserve.h"

/*
 * Segments that a lane keeps beyond those of its unread entries: when there is no traffic, and
 * while there is (2 MiB).
 */
enum { SPARE_SEGMENTS = 16, KEEP_SEGMENTS = 512 };

/* Entries that a look samples; unread ones that are worth a packing. */
enum { PACK_SAMPLE = 32, SCATTER = 7919, PACK_LEAST = 14 * TW__SEGMENT_ENTRIES };

/* ---------------------------------------------------------------------- segments */

enum { SLAB_SEGMENTS = 16 };

/*
 * The system's own pages. A slab is freed as a whole when the last of its segments is. Segments are
 * used and freed first in first out, so slabs come free one after the other; a general allocator
 * gives back only the end of its heap.
 */
struct tw__slab {
	_Atomic uint32_t holders; /* segments in use, and the lane that takes from it */
	uint32_t used;            /* by that lane */
	alignas(4096) struct tw__segment segments[SLAB_SEGMENTS];
};

/* acq_rel on both sides: all that others did with their segments comes before the unmapping. */
static void slab_leave(struct tw__slab *slab)
{
	TW_ASSERT(!slab || tw_load_relaxed(&slab->holders) > 0);
	if (slab && tw_add_acq_rel(&slab->holders, (uint32_t)-1) == 1)
		munmap(slab, sizeof *slab);
}

/* NULL: out of memory. */
static struct tw__segment *new_segment(struct tw__lane *lane)
{
	struct tw__slab *slab = lane->slab;
	if (!slab || slab->used == SLAB_SEGMENTS) {
		struct tw__slab *fresh = tw__map(sizeof *fresh);
		if (!fresh)
			return NULL;
		slab_leave(slab);
		tw_store_relaxed(&fresh->holders, 1); /* nobody else knows it */
		lane->slab = slab = fresh;
	}
	TW_ASSERT(slab->used < SLAB_SEGMENTS && tw_load_relaxed(&slab->holders) > 0);
	struct tw__segment *segment = &slab->segments[slab->used++];
	tw_add_relaxed(&slab->holders, 1); /* its own hold keeps the slab there meanwhile */
	tw_add_relaxed(&lane->segments, 1);
	segment->slab = slab;
	segment->next = NULL;
	return segment;
}

/* ------------------------------------------------------------------------- lane */

/* Entry `index` of the segment has this position. */
static void write_to(struct tw__lane *lane, struct tw__segment *segment, unsigned index,
		     uint64_t position)
{
	lane->last = segment;
	lane->origin = (uintptr_t)segment->entries - (position - index) * sizeof(struct tw__entry);
	lane->end = position - index + TW__SEGMENT_ENTRIES;
}

tw_cold bool tw__lane_init(struct tw__lane *lane, uint32_t bound, tw__entry_pack_fn *pack,
			   void *pack_context)
{
	TW_ASSERT(bound > 0 && pack);
	memset(lane, 0, sizeof *lane);
	lane->first = new_segment(lane);
	lane->reserve = new_segment(lane);
	if (!lane->first || !lane->reserve) {
		tw__lane_fini(lane);
		return false;
	}
	lane->bound = bound;
	lane->pack_at = PACK_LEAST;
	lane->soonest_new = UINT64_MAX;
	tw_store_relaxed(&lane->soonest, UINT64_MAX);
	lane->pack = pack;
	lane->pack_context = pack_context;
	write_to(lane, lane->first, 0, 0);
	tw_store_relaxed(&lane->fronts[0].segment, lane->first);
	return true;
}

void tw__lane_fini(struct tw__lane *lane)
{
	for (struct tw__segment *s = lane->first, *next; s; s = next) {
		next = s->next;
		slab_leave(s->slab);
	}
	if (lane->reserve)
		slab_leave(lane->reserve->slab);
	slab_leave(lane->slab);
}

static bool try_spares(struct tw__lane *lane)
{
	/* LANE5 */
	return tw_load_relaxed(&lane->spare_lock) == 0 &&
	       tw_exchange_acquire(&lane->spare_lock, 1) == 0;
}

static void unlock_spares(struct tw__lane *lane)
{
	TW_ASSERT(tw_load_relaxed(&lane->spare_lock) == 1);
	tw_store_release(&lane->spare_lock, 0); /* LANE5: pairs with try_spares */
}

/* NULL: none before `end`. The lock is held. */
static struct tw__segment *take_spare_upto(struct tw__lane *lane, const struct tw__segment *end)
{
	struct tw__segment *segment = lane->first;
	if (segment == end) /* planted: segments_lost */
		return NULL;
	lane->first = segment->next;
	segment->next = NULL;
	return segment;
}

/* NULL: there is none, or the other side is at it. */
static struct tw__segment *take_spare(struct tw__lane *lane)
{
	if (!try_spares(lane))
		return NULL;
	/* LANE2: pairs with take */
	const struct tw__segment *end = tw_load_acquire(&tw__lane_front(lane)->segment);
	struct tw__segment *segment = take_spare_upto(lane, end);
	unlock_spares(lane);
	return segment;
}

static struct tw__segment *obtain(struct tw__lane *lane)
{
	struct tw__segment *segment = take_spare(lane);
	if (tw__lane_segments(lane) > tw__lane_needs(lane) + KEEP_SEGMENTS)
		tw__lane_purge(lane, 1); /* after a storm, for each one used */
	return segment ? segment : new_segment(lane);
}

/* What is left of the last segment is filled with padding: it is read up to its end. */
static void begin_segment(struct tw__lane *lane, struct tw__segment *segment)
{
	TW_ASSERT(!segment->next && !lane->last->next);
	while (tw__lane_has_room(lane, 1))
		tw__lane_put(lane, 0, 0);
	lane->last->next = segment;
	write_to(lane, segment, 0, lane->end);
}

/* ----------------------------------------------------------------------- packing */

struct cursor {
	struct tw__segment *segment;
	unsigned index;
};

/* The unread entries. */
struct unread {
	uint64_t turn, head, count;
	struct cursor at;
};

/* False: a take is in progress, or has changed the front meanwhile, or has left nothing. */
static bool look_at_unread(struct tw__lane *lane, struct unread *unread)
{
	uint64_t turn = tw_load_acquire(&lane->turn); /* LANE3 */
	const struct tw__front *front = &lane->fronts[(turn & TW__LANE_FRONT) != 0];
	/* LANE4 */
	uint64_t head = tw_load_acquire(&front->head), begin = tw_load_acquire(&front->begin);
	struct tw__segment *segment = tw_load_acquire(&front->segment);
	*unread = (struct unread){.turn = turn,
				  .head = head,
				  .count = tw_load_relaxed(&lane->tail) - head,
				  .at = {segment, (unsigned)(head - begin)}};
	return !(turn & TW__LANE_TAKING) && tw_load_relaxed(&lane->turn) == turn && unread->count;
}

/* Stops at the end of the last segment. */
static void move_on(struct cursor *at, uint64_t n)
{
	for (; n > TW__SEGMENT_ENTRIES - at->index; at->index = 0) {
		n -= TW__SEGMENT_ENTRIES - at->index;
		at->segment = at->segment->next;
	}
	at->index += (unsigned)n;
}

/*
 * Whether at least `many` entries of a sample are dead. It is spread, since the oldest entries
 * are dead where few others are, and scattered, since every second may be.
 */
static bool many_are_dead(const struct tw__lane *lane, const struct unread *unread, unsigned many)
{
	struct cursor at = unread->at;
	uint64_t step = unread->count / PACK_SAMPLE;
	unsigned alive = 0;
	struct tw__entry out;
	for (unsigned i = 0; i < PACK_SAMPLE; i++) {
		struct cursor entry = at;
		move_on(&entry, 1 + (step ? i * SCATTER % step : 0));
		alive += lane->pack(lane->pack_context, &entry.segment->entries[entry.index - 1], 1,
				    &out, 0);
		move_on(&at, step);
	}
	return PACK_SAMPLE - alive >= many;
}

/* A chain of copies. */
struct copies {
	struct tw__segment *first;
	struct cursor at;
	uint64_t count;
};

/* Not into segments that are yet to be read, also if the driver has left them by now. */
static bool add_segment(struct tw__lane *lane, const struct unread *unread, struct copies *copies)
{
	struct tw__segment *segment = take_spare_upto(lane, unread->at.segment);
	if (!segment && !(segment = new_segment(lane)))
		return false;
	if (copies->first)
		copies->at.segment->next = segment;
	else
		copies->first = segment;
	copies->at = (struct cursor){segment, 0};
	return true;
}

/* False: out of memory. */
static bool copy_the_living(struct tw__lane *lane, const struct unread *unread,
			    struct copies *copies)
{
	struct cursor from = unread->at;
	bool room = add_segment(lane, unread, copies);
	for (uint64_t left = unread->count; room && left > 0;) {
		if (tw_load_relaxed(&lane->turn) != unread->turn)
			return true; /* put_in_place will see it */
		if (from.index == TW__SEGMENT_ENTRIES)
			from = (struct cursor){from.segment->next, 0};
		if (copies->at.index == TW__SEGMENT_ENTRIES)
			room = add_segment(lane, unread, copies);
		unsigned index = copies->at.index, n = TW__SEGMENT_ENTRIES - from.index;
		n = n < TW__SEGMENT_ENTRIES - index ? n : TW__SEGMENT_ENTRIES - index;
		n = n < left ? n : (unsigned)left;
		copies->at.index =
		    lane->pack(lane->pack_context, &from.segment->entries[from.index], n,
			       copies->at.segment->entries, index);
		copies->count += copies->at.index;
		copies->count -= index;
		from.index += n;
		left -= n;
	}
	return room;
}

/* False: the driver has taken some meanwhile. */
static bool put_in_place(struct tw__lane *lane, const struct unread *unread,
			 const struct copies *copies)
{
	uint64_t turn = unread->turn, tail = unread->head + unread->count,
		 next = (turn + TW__LANE_TURN) ^ TW__LANE_FRONT;
	struct tw__front *front = &lane->fronts[(next & TW__LANE_FRONT) != 0];
	if (tw_load_relaxed(&lane->urgent) > unread->head)
		tw_store_relaxed(&lane->urgent, tail); /* it is among those that are kept */
	tw_store_release(&front->begin, tail - copies->count);
	tw_store_release(&front->segment, copies->first);
	tw_store_release(&front->head, tail - copies->count); /* LANE4, LANE6, LANE7 */
	if (!tw_cas_acq_rel(&lane->turn, &turn, next))        /* LANE3 */
		return false;
	lane->last->next = copies->first;
	lane->soonest_from = tail; /* LANE10 */
	lane->soonest_new = UINT64_MAX;
	write_to(lane, copies->at.segment, copies->at.index, tail);
	return true;
}

enum packed {
	PACKED,
	IN_VAIN,    /* little is dead, or there is no memory */
	DRIVER_CAME /* it reads, has read all, or gives memory back */
};

/* Drops the dead among the unread entries, if a sample shows that many are. */
static enum packed lane_pack(struct tw__lane *lane, unsigned many)
{
	struct unread unread;
	struct copies copies = {0};
	enum packed packed = DRIVER_CAME;
	TW_ASSERT(!lane->unpublished);
	if (!try_spares(lane))
		return DRIVER_CAME;
	if (look_at_unread(lane, &unread)) {
		if (!many_are_dead(lane, &unread, many) ||
		    !copy_the_living(lane, &unread, &copies) || copies.count == unread.count)
			packed = IN_VAIN;
		else if (put_in_place(lane, &unread, &copies))
			packed = PACKED;
		if (packed != PACKED && copies.first) { /* they are spares */
			copies.at.segment->next = lane->first;
			lane->first = copies.first;
		}
	}
	unlock_spares(lane);
	return packed;
}

static void raise_soonest(struct tw__lane *lane)
{
	if (tw__lane_head(lane) < lane->soonest_from)
		return;
	tw_store_relaxed(&lane->soonest, lane->soonest_new); /* LANE10 */
	lane->soonest_new = UINT64_MAX;
	lane->soonest_from = tw__lane_written(lane);
}

int tw__lane_grow(struct tw__lane *lane, unsigned n, bool *grew)
{
	TW_ASSERT(n <= 8 && !tw__lane_has_room(lane, n) && !lane->unpublished);
	uint64_t bound = lane->bound, left = tw__lane_backlog(lane);
	*grew = left > bound / 2;
	if (tw_unlikely(left >= lane->pack_at || left >= bound)) {
		/* a third is worth a copy of the rest; an eighth is better than a refusal */
		enum packed packed =
		    lane_pack(lane, left < bound ? (PACK_SAMPLE + 2) / 3 : PACK_SAMPLE / 8);
		left = tw__lane_backlog(lane);
		/* at twice what this one leaves: each push pays for two copies at most */
		uint64_t more = packed == PACKED ? left : left / 8;
		lane->pack_at = left + (more > PACK_LEAST ? more : PACK_LEAST);
		*grew = packed != PACKED || left > bound / 2;
		/* a driver that reads makes room, too */
		if (left >= (packed == DRIVER_CAME ? 2 * bound : bound))
			return -EAGAIN;
	}
	raise_soonest(lane);
	if (tw__lane_has_room(lane, n)) /* a packing has made it */
		return 0;
	struct tw__segment *segment = obtain(lane);
	if (!segment)
		return -ENOMEM;
	begin_segment(lane, segment);
	return 0;
}

void tw__lane_grow_reserved(struct tw__lane *lane, unsigned n)
{
	if (tw__lane_has_room(lane, n))
		return;
	struct tw__segment *segment = take_spare(lane);
	if (!segment) {
		segment = lane->reserve;
		lane->reserve = NULL;
	}
	/* a run within a run, out of memory: the driver frees one sooner or later */
	while (!segment) {
		tw_cpu_relax();
		segment = obtain(lane);
	}
	begin_segment(lane, segment);
}

bool tw__lane_refill_reserve(struct tw__lane *lane)
{
	if (tw_unlikely(!lane->reserve))
		lane->reserve = obtain(lane);
	return lane->reserve != NULL;
}

uint32_t tw__lane_needs(const struct tw__lane *lane)
{
	/* as much again where it is packed to */
	return (uint32_t)(2 * tw__lane_backlog(lane) / TW__SEGMENT_ENTRIES) + SPARE_SEGMENTS;
}

unsigned tw__lane_purge(struct tw__lane *lane, unsigned most)
{
	unsigned freed = 0;
	struct tw__segment *segment;
	TW_ASSERT(tw__lane_segments(lane) >= 1);
	while (freed < most && tw__lane_segments(lane) > tw__lane_needs(lane) &&
	       (segment = take_spare(lane))) {
		slab_leave(segment->slab);
		tw_add_relaxed(&lane->segments, (uint32_t)-1);
		freed++;
	}
	return freed;
}

unsigned tw__lane_take(struct tw__lane *lane, uint64_t end, struct tw__entry *out)
{
	if (tw__lane_head(lane) >= end)
		return 0;
	uint64_t turn = tw_load_relaxed(&lane->turn);
	TW_ASSERT(!(turn & TW__LANE_TAKING));
	while (!tw_cas_acq_rel(&lane->turn, &turn, turn | TW__LANE_TAKING)) /* LANE3 */
		;
	struct tw__front *front = &lane->fronts[(turn & TW__LANE_FRONT) != 0];
	struct tw__segment *segment = tw_load_relaxed(&front->segment);
	uint64_t head = tw_load_relaxed(&front->head), begin = tw_load_relaxed(&front->begin);
	if (head - begin == TW__SEGMENT_ENTRIES && head < end) {
		/* LANE8; linked before an entry behind it was published (LANE1) */
		segment = segment->next;
		begin = head;
	}
	/* a packing that came first has dropped, or moved beyond `end`, the rest */
	uint64_t n = head < end ? end - head : 0, room = begin + TW__SEGMENT_ENTRIES - head;
	n = n < room ? n : room;
	TW_ASSERT(segment && n <= TW__SEGMENT_ENTRIES);
	memcpy(out, segment->entries + (head - begin), n * sizeof *out);
	tw_store_release(&front->begin, begin);              /* LANE4: pairs with look_at_unread */
	tw_store_release(&front->segment, segment);          /* LANE2: pairs with take_spare */
	tw_store_release(&front->head, head + n);            /* LANE4 */
	tw_store_release(&lane->turn, turn + TW__LANE_TURN); /* LANE3: pairs with pack */
	return (unsigned)n;
}
