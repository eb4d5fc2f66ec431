#include "wheel/wheel.h"

#include <string.h>

#include "mpsc/base/assert.h"

enum {
	STEPS_A_CALL = 64, /* of a turn: ticks with entries, or jumps */
	CHUNKS_KEPT = 1024 /* whose memory stays after a storm */
};

/* ------------------------------------------------------------------- chunks */

struct tw__chunk *tw__chunk_get(struct tw__wheel *wheel)
{
	uint32_t index;
	/* the owner keeps chunks left (tw__wheel_chunks_left) */
	if (!tw__depot_take(&wheel->chunks, 1, wheel->arena_chunks, &index))
		__builtin_trap();
	struct tw__chunk *chunk = &wheel->arena[index];
	chunk->next = NULL;
	chunk->count = 0;
	return chunk;
}

void tw__chunk_put(struct tw__wheel *wheel, struct tw__chunk *chunk)
{
	TW_ASSERT(chunk >= wheel->arena && chunk != wheel->sweep_at);
	uint32_t index = (uint32_t)(chunk - wheel->arena);
	tw__depot_put(&wheel->chunks, &index, 1);
}

struct tw__chunk *tw__bucket_pop(struct tw__wheel *wheel, struct tw__bucket *bucket)
{
	struct tw__chunk *chunk = tw__chunk_pop(&bucket->list);
	wheel->filed -= chunk != NULL;
	if (chunk && chunk == wheel->sweep_at)
		wheel->sweep_at = NULL;
	return chunk;
}

static inline __attribute__((always_inline)) void
bucket_add(struct tw__wheel *wheel, struct tw__bucket *bucket, tw__wheel_entry entry)
{
	struct tw__chunk *chunk = bucket->list.last;
	if (!chunk || chunk->count == TW__CHUNK_ENTRIES) {
		chunk = tw__chunk_get(wheel);
		tw__chunk_append(&bucket->list, chunk);
		wheel->filed++;
	}
	TW_ASSERT(chunk->count < TW__CHUNK_ENTRIES);
	chunk->entries[chunk->count++] = entry;
	bucket->count++;
	wheel->entries++;
}

/* ------------------------------------------------------------------- levels */

static unsigned log2_of(uint64_t power_of_two)
{
	return (unsigned)__builtin_ctzll(power_of_two);
}

/* The buckets of each level above the first, and of one of its windows. */
enum { UPPER_BUCKETS = 64, WINDOW_LOG2 = 5 };

static unsigned level_count(struct tw__wheel_size size)
{
	unsigned first = log2_of(size.buckets0 / 2);
	unsigned rest = size.range_log2 > first ? size.range_log2 - first : 0;
	return 1 + (rest + WINDOW_LOG2 - 1) / WINDOW_LOG2;
}

static size_t all_buckets(struct tw__wheel_size size)
{
	return size.buckets0 + (level_count(size) - 1) * (size_t)UPPER_BUCKETS;
}

size_t tw__wheel_table_bytes(struct tw__wheel_size size)
{
	size_t buckets = all_buckets(size);
	return buckets * sizeof(struct tw__bucket) + buckets / 64 * sizeof(uint64_t);
}

size_t tw__wheel_slack(struct tw__wheel_size size)
{
	/*
	 * Of a bucket, the first chunk (pruned), one within (swept) and the last may be partly
	 * empty.
	 */
	return 3 * (all_buckets(size) + 1);
}

size_t tw__wheel_chunks_for(struct tw__wheel_size size, uint64_t entries)
{
	return tw__wheel_slack(size) + entries / TW__CHUNK_ENTRIES + 1;
}

void tw__wheel_init(struct tw__wheel *wheel, struct tw__wheel_size size, void *table, void *depot,
		    struct tw__chunk *arena, uint32_t arena_chunks, tw__resolve_fn *resolve,
		    void *resolve_context)
{
	uint64_t n = size.buckets0;
	TW_ASSERT(n >= 64 && !(n & (n - 1)) && resolve);
	*wheel = (struct tw__wheel){.arena = arena,
				    .arena_chunks = arena_chunks,
				    .resolve = resolve,
				    .resolve_context = resolve_context};
	wheel->slack = tw__wheel_slack(size);
	tw__depot_init(&wheel->chunks, arena_chunks, TW__CHUNK_BLOCK_SHIFT, 0, depot);
	wheel->chunks.arrays[0] = (struct tw__depot_array){arena, sizeof *arena};
	wheel->chunks.kept = CHUNKS_KEPT;
	struct tw__bucket *buckets = table;
	uint64_t *bits = (uint64_t *)(buckets + all_buckets(size));
	unsigned shift = 0;
	wheel->level_count = level_count(size);
	TW_ASSERT(wheel->level_count <= TW__WHEEL_LEVELS);
	for (unsigned i = 0; i < wheel->level_count; i++) {
		struct tw__level *level = &wheel->levels[i];
		level->buckets = buckets;
		level->occupied = bits;
		level->mask = n - 1;
		level->shift = shift;
		level->window_shift = shift + log2_of(n / 2);
		level->open = 1;
		buckets += n;
		bits += n / 64;
		shift = level->window_shift;
		n = UPPER_BUCKETS;
	}
	TW_ASSERT(shift >= size.range_log2);
	wheel->sweep_level = wheel->level_count;
}

static inline __attribute__((always_inline)) void
level_add(struct tw__wheel *wheel, struct tw__level *level, uint64_t tick, tw__wheel_entry entry)
{
	TW_ASSERT(tick >= wheel->next);
	uint64_t index = tick >> level->shift & level->mask;
	bucket_add(wheel, &level->buckets[index], entry);
	level->occupied[index / 64] |= UINT64_C(1) << index % 64;
	level->entries++;
}

static inline struct tw__level *level_for(struct tw__wheel *wheel, uint64_t tick)
{
	struct tw__level *level = wheel->levels;
	while (tick >> level->window_shift > level->open) /* planted: finer_level */
		level++;
	TW_ASSERT(level < wheel->levels + wheel->level_count);
	return level;
}

unsigned tw__wheel_level_for(const struct tw__wheel *wheel, uint64_t tick)
{
	if (tick < wheel->next)
		return TW__LEVEL_LATE;
	return (unsigned)(level_for((struct tw__wheel *)(uintptr_t)wheel, tick) - wheel->levels);
}

bool tw__wheel_is_one_bucket(const struct tw__wheel *wheel, unsigned level, uint64_t tick,
			     uint64_t other)
{
	if (level == TW__LEVEL_LATE)
		return tick < wheel->next && other < wheel->next;
	return (tick ^ other) >> wheel->levels[level].shift == 0;
}

void tw__wheel_add(struct tw__wheel *wheel, uint64_t tick, tw__wheel_entry entry)
{
	if (tick < wheel->next) {
		bucket_add(wheel, &wheel->late, entry);
		return;
	}
	struct tw__level *level = level_for(wheel, tick);
	level_add(wheel, level, tick, entry);
}

/* Without a branch on what is dead, which nobody could predict: high <= later < TW__TICK_DEAD. */
unsigned tw__wheel_split(struct tw__wheel *wheel, tw__resolve_fn *resolve, struct tw__chunk *chunk,
			 enum tw__resolve_for what_for, const struct tw__place *place,
			 uint64_t *due_ticks)
{
	unsigned n = chunk->count, kept = 0;
	resolve(wheel->resolve_context, what_for, place, chunk->entries, n, due_ticks);
	for (unsigned i = 0; i < n; i++) {
		uint64_t due_tick = due_ticks[i];
		tw__wheel_entry entry = chunk->entries[i];
		chunk->entries[kept] = entry;
		due_ticks[kept] = due_tick;
		kept += due_tick < place->high;
		/* planted: pruned_lost */
		if (tw_unlikely(due_tick - place->high < TW__TICK_DEAD - place->high))
			tw__wheel_add(wheel, due_tick, entry);
	}
	return chunk->count = kept;
}

void tw__chunk_fill(struct tw__chunk *to, struct tw__chunk *from)
{
	TW_ASSERT(to->count <= TW__CHUNK_ENTRIES && to != from);
	unsigned room = TW__CHUNK_ENTRIES - to->count, n = from->count < room ? from->count : room;
	if (n == 0)
		return;
	memcpy(to->entries + to->count, from->entries, n * sizeof *to->entries);
	to->count += n;
	from->count -= n;
	/* planted: filled_twice */
	memmove(from->entries, from->entries + n, from->count * sizeof *from->entries);
}

void tw__wheel_fetch(const struct tw__wheel *wheel, uint64_t tick)
{
	if (tick < wheel->next)
		return;
	const struct tw__level *level = level_for((struct tw__wheel *)(uintptr_t)wheel, tick);
	__builtin_prefetch(level->buckets[tick >> level->shift & level->mask].list.last, 1);
}

void tw__level_remove(struct tw__wheel *wheel, struct tw__level *level, struct tw__bucket *bucket,
		      uint64_t n)
{
	TW_ASSERT(bucket >= level->buckets && bucket <= level->buckets + level->mask);
	TW_ASSERT(n <= bucket->count && n <= level->entries && n <= wheel->entries);
	bucket->count -= n;
	level->entries -= n;
	wheel->entries -= n;
	if (bucket->count == 0) {
		uint64_t index = (uint64_t)(bucket - level->buckets);
		level->occupied[index / 64] &= ~(UINT64_C(1) << index % 64);
	}
}

bool tw__level_next(const struct tw__level *level, uint64_t from, uint64_t end, uint64_t *found)
{
	while (from < end) {
		uint64_t index = from & level->mask;
		uint64_t bits = level->occupied[index / 64] >> index % 64;
		if (bits) {
			from += (uint64_t)__builtin_ctzll(bits);
			*found = from;
			return from < end;
		}
		from += 64 - index % 64;
	}
	return false;
}

/* ------------------------------------------------------------- going forward */

void tw__wheel_move(struct tw__wheel *wheel, struct tw__level *lower, uint64_t window,
		    uint64_t quota)
{
	TW_ASSERT(lower + 1 < wheel->levels + wheel->level_count && lower->open < window);
	struct tw__level *upper = lower + 1;
	struct tw__bucket *bucket = &upper->buckets[window & upper->mask];
	struct tw__place place = tw__place_of(wheel, upper, window);
	uint64_t due_ticks[TW__CHUNK_ENTRIES];
	while (bucket->count > 0 && quota > 0) {
		struct tw__chunk *chunk = tw__bucket_pop(wheel, bucket);
		unsigned n = chunk->count;
		tw__level_remove(wheel, upper, bucket, n);
		quota -= quota < n ? quota : n;
		/* the window is not open to others yet */
		unsigned kept = tw__wheel_split(wheel, wheel->resolve, chunk, TW__RESOLVE_MOVE,
						&place, due_ticks);
		for (unsigned i = 0; i < kept; i++) /* planted: last_tick_lost */
			level_add(wheel, lower, due_ticks[i] < place.low ? place.low : due_ticks[i],
				  chunk->entries[i]);
		tw__chunk_put(wheel, chunk);
	}
}

/* The bucket above `window` gets nothing more from higher ones. */
bool tw__level_complete_above(const struct tw__level *level, uint64_t window)
{
	const struct tw__level *upper = level + 1;
	/* planted: moved_early */
	return window >> (upper->window_shift - upper->shift) <= upper->open;
}

void tw__wheel_open_windows(struct tw__wheel *wheel)
{
	struct tw__level *top = &wheel->levels[wheel->level_count - 1];
	top->open = (wheel->next >> top->window_shift) + 1;
	for (unsigned i = wheel->level_count - 1; i-- > 0;) {
		struct tw__level *level = &wheel->levels[i];
		uint64_t window = (wheel->next >> level->window_shift) + 1;
		if (level->open < window && level[1].buckets[window & level[1].mask].count == 0 &&
		    tw__level_complete_above(level, window))
			level->open = window;
	}
}

/*
 * Enters the window of level 0 that begins at `tick`; what was not moved down yet is moved now,
 * from the top. Between `next` and `tick` there is nothing.
 */
static void enter_window(struct tw__wheel *wheel, uint64_t tick)
{
	TW_ASSERT(tick >= wheel->next &&
		  !(tick & ((UINT64_C(1) << wheel->levels[0].window_shift) - 1)));
	for (unsigned i = wheel->level_count - 1; i-- > 0;) {
		struct tw__level *level = &wheel->levels[i];
		uint64_t window = tick >> level->window_shift;
		if (level->open < window) {
			tw__wheel_move(wheel, level, window, UINT64_MAX);
			level->open = window;
		}
	}
	wheel->next = tick;
	tw__wheel_open_windows(wheel);
}

/* Appends what is due, packed; the rest is filed again. */
static void wheel_hand_over(struct tw__wheel *wheel, struct tw__bucket *bucket,
			    const struct tw__place *place, struct tw__chunk_list *due)
{
	uint64_t due_ticks[TW__CHUNK_ENTRIES];
	struct tw__chunk *last = NULL, *chunk;
	while ((chunk = tw__bucket_pop(wheel, bucket))) {
		tw__wheel_split(wheel, wheel->resolve, chunk, TW__RESOLVE_EXPIRE, place, due_ticks);
		if (last)
			tw__chunk_fill(last, chunk);
		if (chunk->count == 0) {
			tw__chunk_put(wheel, chunk);
			continue;
		}
		chunk->tick = place->high - 1;
		tw__chunk_append(due, chunk);
		last = chunk;
	}
}

static void hand_over_late(struct tw__wheel *wheel, struct tw__chunk_list *due)
{
	if (wheel->late.count == 0)
		return;
	struct tw__bucket bucket = wheel->late;
	wheel->late = (struct tw__bucket){0};
	TW_ASSERT(bucket.count <= wheel->entries);
	wheel->entries -= bucket.count;
	wheel_hand_over(wheel, &bucket,
			&(struct tw__place){.level = TW__LEVEL_LATE, .high = wheel->next}, due);
}

static void wheel_expire(struct tw__wheel *wheel, uint64_t tick, struct tw__chunk_list *due)
{
	TW_ASSERT(tick >= wheel->next && tick >> wheel->levels->window_shift ==
					     wheel->next >> wheel->levels->window_shift);
	struct tw__level *level = wheel->levels;
	struct tw__bucket *at = &level->buckets[tick & level->mask];
	struct tw__bucket bucket = *at;
	at->list = (struct tw__chunk_list){0};
	tw__level_remove(wheel, level, at, bucket.count);
	wheel->next = tick;
	wheel_hand_over(wheel, &bucket, &(struct tw__place){.low = tick, .high = tick + 1}, due);
}

struct tw__chunk *tw__wheel_pop(struct tw__wheel *wheel)
{
	struct tw__chunk *chunk = tw__bucket_pop(wheel, &wheel->late);
	if (chunk) {
		wheel->late.count -= chunk->count;
		wheel->entries -= chunk->count;
		return chunk;
	}
	for (unsigned i = 0; i < wheel->level_count; i++) {
		struct tw__level *level = &wheel->levels[i];
		uint64_t at = wheel->next >> level->shift;
		if (!level->entries || !tw__level_next(level, at, at + level->mask + 1, &at))
			continue;
		struct tw__bucket *bucket = &level->buckets[at & level->mask];
		chunk = tw__bucket_pop(wheel, bucket);
		tw__level_remove(wheel, level, bucket, chunk->count);
		return chunk;
	}
	return NULL;
}

/* The start of the first occupied bucket above level 0, at most `limit`. */
static uint64_t first_above(const struct tw__wheel *wheel, uint64_t limit)
{
	for (unsigned i = 1; i < wheel->level_count; i++) {
		const struct tw__level *level = &wheel->levels[i];
		uint64_t from = wheel->next >> level->shift, bucket;
		if (level->entries &&
		    tw__level_next(level, from, from + level->mask + 1, &bucket) &&
		    bucket << level->shift < limit)
			limit = bucket << level->shift;
	}
	return limit;
}

bool tw__wheel_turn(struct tw__wheel *wheel, uint64_t to, struct tw__chunk_list *due)
{
	const struct tw__level *level = wheel->levels;
	uint64_t width = UINT64_C(1) << level->window_shift;
	unsigned steps = 0;
	while (hand_over_late(wheel, due), wheel->next <= to) {
		if (steps++ == STEPS_A_CALL)
			return true;
		uint64_t boundary = (wheel->next | (width - 1)) + 1, tick;
		if (tw__level_next(level, wheel->next, to < boundary ? to + 1 : boundary, &tick)) {
			wheel_expire(wheel, tick, due);
			if (tick + 1 < boundary) {
				wheel->next = tick + 1;
				continue;
			}
		} else if (to + 1 < boundary) {
			wheel->next = to + 1;
			continue;
		}
		uint64_t target = (to + 1) & ~(width - 1);
		if (target <= boundary || level->entries)
			target = boundary;
		else
			target = first_above(wheel, target);
		TW_ASSERT(target > wheel->next);
		enter_window(wheel, target);
	}
	return false;
}
