#include "mpsc/lane.h"

#include <errno.h>
#include <string.h>

#include "mpsc/base/assert.h"

/*
 * Segments beyond the backlog that a lane keeps: 2 MiB, about what a busy thread pushes between two
 * drains.
 */
enum { KEEP_SEGMENTS = 512, SPARE_SEGMENTS = 16, LOCK_SPINS = 4096 };

/* How often a take tries the lock: longer than packing takes, shorter than most compactions. */
enum { TAKE_SPINS = 256 };

/* Entries that packing looks at first, and unread ones that the last segment must have (pack). */
enum { PACK_SAMPLE = 16, PACK_LEAST = TW__SEGMENT_ENTRIES / 2 };

/*
 * From here on entries go into this segment; entry `index` of it has this position. Nothing is
 * unpublished but what lies before.
 */
static void write_to(struct tw__lane *lane, struct tw__segment *segment, unsigned index,
		     uint64_t position)
{
	lane->last = segment;
	lane->origin = (uintptr_t)segment->entries - (position - index) * sizeof(struct tw__entry);
	lane->end = position - index + TW__SEGMENT_ENTRIES;
}

bool tw__lane_init(struct tw__lane *lane, uint32_t bound, tw__entry_use_fn *use, void *use_context)
{
	TW_ASSERT(bound > 0 && use);
	memset(lane, 0, sizeof *lane);
	lane->first = tw__segment_new(&lane->slab);
	lane->reserve = tw__segment_new(&lane->slab);
	if (!lane->first || !lane->reserve) {
		tw__segment_free(lane->first);
		tw__segment_free(lane->reserve);
		tw__slab_leave(lane->slab);
		return false;
	}
	tw_store_relaxed(&lane->segments, 1);
	lane->bound = bound;
	lane->use = use;
	lane->use_context = use_context;
	write_to(lane, lane->first, 0, 0);
	tw_store_relaxed(&lane->head_segment, lane->first);
	return true;
}

void tw__lane_fini(struct tw__lane *lane)
{
	for (struct tw__segment *s = lane->first, *next; s; s = next) {
		next = s->next;
		tw__segment_free(s);
	}
	tw__segment_free(lane->reserve);
	tw__slab_leave(lane->slab);
}

static bool try_lock(struct tw__lane *lane)
{
	/* LANE3 */
	return tw_load_relaxed(&lane->lock) == 0 && tw_exchange_acquire(&lane->lock, 1) == 0;
}

static void unlock(struct tw__lane *lane)
{
	TW_ASSERT(tw_load_relaxed(&lane->lock) == 1);
	tw_store_release(&lane->lock, 0); /* LANE3: pairs with try_lock */
}

static uint64_t backlog(const struct tw__lane *lane)
{
	return tw__lane_written(lane) - tw_load_acquire(&lane->head); /* LANE4: pairs with take */
}

static void count_segments(struct tw__lane *lane, int by)
{
	tw_store_relaxed(&lane->segments, tw_load_relaxed(&lane->segments) + (uint32_t)by);
}

/*
 * Takes the oldest segment off the chain, if the driver has left it. NULL: none, or the other side
 * is at it.
 */
static struct tw__segment *take_spare(struct tw__lane *lane)
{
	/* LANE5 */
	if (tw_load_relaxed(&lane->spare_lock) || tw_exchange_acquire(&lane->spare_lock, 1))
		return NULL;
	struct tw__segment *segment = lane->first;
	/* planted: segments_lost */
	if (segment == tw_load_acquire(&lane->head_segment)) /* LANE2: pairs with take */
		segment = NULL;
	else
		lane->first = segment->next;
	tw_store_release(&lane->spare_lock, 0); /* LANE5 */
	return segment;
}

static struct tw__segment *reclaim(struct tw__lane *lane)
{
	struct tw__segment *segment = take_spare(lane);
	if (segment) {
		count_segments(lane, -1);
		segment->next = NULL;
	}
	return segment;
}

static struct tw__segment *obtain(struct tw__lane *lane)
{
	struct tw__segment *segment = reclaim(lane);
	if (!segment)
		return tw__segment_new(&lane->slab);
	if (tw__lane_segments(lane) > backlog(lane) / TW__SEGMENT_ENTRIES + KEEP_SEGMENTS)
		/* after a storm: one goes back for each one used */
		tw__segment_free(reclaim(lane));
	return segment;
}

/*
 * Positions are counted through segments, so what is left of the last one is filled with padding.
 */
static void begin_segment(struct tw__lane *lane, struct tw__segment *segment)
{
	TW_ASSERT(!segment->next && !lane->last->next);
	while (tw__lane_has_room(lane, 1))
		tw__lane_put(lane, 0, 0);
	TW_ASSERT(lane->end % TW__SEGMENT_ENTRIES == 0);
	lane->last->next = segment;
	count_segments(lane, 1);
	write_to(lane, segment, 0, lane->end);
}

/* Reading and writing cursors of a compaction. */
struct cursor {
	struct tw__segment *segment;
	unsigned index;
};

/* Writes an entry, once. */
static unsigned lane_keep(struct cursor *to, struct tw__entry *entry)
{
	if (!entry->what)
		return 0;
	if (to->index == TW__SEGMENT_ENTRIES)
		*to = (struct cursor){to->segment->next, 0};
	to->segment->entries[to->index++] = *entry;
	entry->what = 0;
	return 1;
}

/*
 * Keeps what is to be kept of n entries that are at or behind `to`. *base: the last base, if it has
 * not been kept. How many were kept.
 */
static unsigned keep_some(const struct tw__lane *lane, struct cursor *to,
			  const struct tw__entry *entries, unsigned n, struct tw__entry *base)
{
	unsigned char uses[TW__SEGMENT_ENTRIES];
	unsigned kept = 0;
	lane->use(lane->use_context, entries, n, uses);
	for (unsigned i = 0; i < n; i++) {
		if (uses[i] == TW__ENTRY_DEAD || !entries[i].what)
			continue;
		struct tw__entry entry = entries[i];
		if (uses[i] == TW__ENTRY_BASE) {
			*base = entry;
			continue;
		}
		kept += lane_keep(to, base);
		kept += lane_keep(to, &entry);
	}
	return kept;
}

static void free_segments_behind(struct tw__lane *lane, struct tw__segment *segment)
{
	for (struct tw__segment *s = segment->next, *next; s; s = next) {
		next = s->next;
		tw__segment_free(s);
		count_segments(lane, -1);
	}
	segment->next = NULL;
}

/*
 * Drops the dead among the entries from a position on, in place and in order. `to` is where the
 * first of them is. Both ends of the lane are this thread's while it holds the lock, so this is
 * sequential code. Segments that fall empty stay in the chain, behind the one written to; they are
 * freed.
 */
static void drop_dead_from(struct tw__lane *lane, struct cursor to, uint64_t position)
{
	TW_ASSERT(tw_load_relaxed(&lane->lock) == 1 && !lane->unpublished);
	struct cursor from = to;
	struct tw__entry base = {0, 0};
	uint64_t left = tw_load_relaxed(&lane->tail) - position;
	while (left > 0) {
		if (from.index == TW__SEGMENT_ENTRIES)
			from = (struct cursor){from.segment->next, 0};
		unsigned room = TW__SEGMENT_ENTRIES - from.index,
			 n = left < room ? (unsigned)left : room;
		position += keep_some(lane, &to, &from.segment->entries[from.index], n, &base);
		from.index += n;
		left -= n;
	}
	position += lane_keep(&to, &base);
	TW_ASSERT(position <= tw_load_relaxed(&lane->tail));
	free_segments_behind(lane, to.segment);
	write_to(lane, to.segment, to.index, position);
	tw_store_release(&lane->tail, position); /* LANE1 */
}

/* All unread ones. */
static void drop_dead(struct tw__lane *lane)
{
	uint64_t head = tw_load_relaxed(&lane->head);
	struct cursor at = {tw_load_relaxed(&lane->head_segment),
			    (unsigned)(head % TW__SEGMENT_ENTRIES)};
	if (at.index == 0 && head != 0)
		at.index = TW__SEGMENT_ENTRIES; /* LANE8 */
	drop_dead_from(lane, at, head);
}

static bool compact(struct tw__lane *lane)
{
	for (int spin = 0; spin < LOCK_SPINS; spin++, tw_cpu_relax()) {
		if (tw_load_relaxed(&lane->wanted) || !try_lock(lane))
			continue;
		drop_dead(lane);
		unlock(lane);
		return true;
	}
	return false;
}

/*
 * Whether half of a sample of the n entries from this one on is dead. The sample is spread, so that
 * packing frees about half of them.
 */
static bool lane_many_are_dead(const struct tw__lane *lane, const struct tw__entry *entries,
			       uint64_t n)
{
	unsigned dead = 0;
	for (unsigned i = 0; i < PACK_SAMPLE; i++) {
		const struct tw__entry *entry = &entries[i * (n / PACK_SAMPLE)];
		unsigned char use;
		lane->use(lane->use_context, entry, 1, &use);
		dead += entry->what && use == TW__ENTRY_DEAD;
	}
	return dead >= PACK_SAMPLE / 2;
}

/*
 * Drops the dead of the last segment, which is full, if most of it is unread and many are dead: so
 * timers that are soon cancelled never leave this processor's cache. Only tries the lock, but does
 * so also while the lock is wanted: packing is short, and a take waits that long. A lane that is
 * not packed grows by tens of thousands of entries in a tick. True: there is room for n entries.
 */
static bool lane_pack(struct tw__lane *lane, unsigned n)
{
	if (!try_lock(lane))
		return false;
	uint64_t begin = lane->end - TW__SEGMENT_ENTRIES, head = tw_load_relaxed(&lane->head);
	uint64_t from = head > begin ? head : begin, unread = tw_load_relaxed(&lane->tail) - from;
	if (unread >= PACK_LEAST && lane_many_are_dead(lane, tw__lane_entry(lane, from), unread))
		drop_dead_from(lane, (struct cursor){lane->last, (unsigned)(from - begin)}, from);
	unlock(lane);
	return tw__lane_has_room(lane, n);
}

static int lane_extend(struct tw__lane *lane, bool *grew)
{
	struct tw__segment *segment = obtain(lane);
	if (!segment)
		return -ENOMEM;
	begin_segment(lane, segment);
	*grew = true;
	return 0;
}

int tw__lane_grow(struct tw__lane *lane, unsigned n, bool *grew)
{
	TW_ASSERT(n <= 8 && !tw__lane_has_room(lane, n) && !lane->unpublished);
	if (backlog(lane) >= lane->bound) {
		/*
		 * Compacting pays only if it frees a good part: else each push would walk the whole
		 * lane.
		 */
		if (!compact(lane) || backlog(lane) > lane->bound - lane->bound / 8)
			return -EAGAIN;
		if (tw__lane_has_room(lane, n))
			return 0;
	}
	return lane_pack(lane, n) ? 0 : lane_extend(lane, grew);
}

void tw__lane_grow_reserved(struct tw__lane *lane, unsigned n)
{
	if (tw__lane_has_room(lane, n))
		return;
	struct tw__segment *segment = reclaim(lane);
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
	/* relaxed: how much about */
	uint64_t unread = tw_load_relaxed(&lane->tail) - tw_load_relaxed(&lane->head);
	return (uint32_t)(unread / TW__SEGMENT_ENTRIES) + SPARE_SEGMENTS;
}

unsigned tw__lane_purge(struct tw__lane *lane, unsigned most)
{
	unsigned freed = 0;
	struct tw__segment *segment;
	TW_ASSERT(tw__lane_segments(lane) >= 1);
	while (freed < most && tw__lane_segments(lane) > tw__lane_needs(lane) &&
	       (segment = take_spare(lane))) {
		tw__segment_free(segment);
		tw_store_relaxed(&lane->purged, tw_load_relaxed(&lane->purged) + 1);
		freed++;
	}
	return freed;
}

/* Takes the lock, or says that it is wanted, spins a moment, and gives up. */
static bool lock_to_take(struct tw__lane *lane)
{
	if (try_lock(lane))
		return true;
	tw_store_relaxed(&lane->wanted, 1);
	for (int spin = 0; spin < TAKE_SPINS; spin++) {
		tw_cpu_relax();
		if (try_lock(lane))
			return true;
	}
	return false;
}

int tw__lane_take(struct tw__lane *lane, struct tw__entry *out)
{
	if (!tw__lane_unread(lane))
		return 0;
	if (!lock_to_take(lane))
		return -1;
	if (tw_unlikely(tw_load_relaxed(&lane->wanted)))
		tw_store_relaxed(&lane->wanted, 0);
	/* LANE1; gate's GATE2 */
	uint64_t head = tw_load_relaxed(&lane->head), tail = tw_load_seq_cst(&lane->tail);
	struct tw__segment *segment = tw_load_relaxed(&lane->head_segment);
	unsigned index = (unsigned)(head % TW__SEGMENT_ENTRIES);
	if (index == 0 && head != 0 && head != tail)
		/* LANE8; linked before an entry behind it was published (LANE1) */
		segment = segment->next;
	uint64_t n = tail - head;
	if (n > TW__SEGMENT_ENTRIES - index)
		n = TW__SEGMENT_ENTRIES - index;
	/* n is 0 if all was dropped meanwhile */
	TW_ASSERT(segment && index + n <= TW__SEGMENT_ENTRIES);
	memcpy(out, segment->entries + index, n * sizeof *out);
	tw_store_release(&lane->head_segment, segment); /* LANE2: pairs with reclaim */
	tw_store_release(&lane->head, head + n);        /* LANE4: pairs with backlog */
	unlock(lane);
	return (int)n;
}
