#include "wheel/wheel.h"

#include "mpsc/base/assert.h"

/*
 * What one call moves on each level. A driver that sleeps wakes with a tick left for each WAKE_STEP
 * entries: it moves three quarters of them, sleeps for three quarters of the time left, and so on.
 * So wake-ups are few (G9).
 */
enum { LEAST_STEP = 64, MOST_STEP = 4096, WAKE_STEP = 4 * MOST_STEP };

static uint64_t window_width(const struct tw__level *level)
{
	return UINT64_C(1) << level->window_shift;
}

/*
 * `window` of level i must have been moved down before: two ticks ahead of it at level 0; on higher
 * levels before the last bucket in front of it is begun.
 */
static uint64_t move_deadline(const struct tw__wheel *wheel, unsigned i, uint64_t window)
{
	uint64_t margin = 2;
	for (unsigned below = 0; below < i; below++)
		margin += window_width(&wheel->levels[below]);
	return (window << wheel->levels[i].window_shift) - margin;
}

bool tw__wheel_move_nearer(struct tw__wheel *wheel)
{
	bool behind = false;
	for (unsigned i = wheel->level_count - 1; i-- > 0;) {
		struct tw__level *level = &wheel->levels[i];
		uint64_t window = (wheel->next >> level->window_shift) + 1;
		if (level->open >= window || !tw__level_complete_above(level, window))
			continue;
		const struct tw__bucket *above = &level[1].buckets[window & level[1].mask];
		uint64_t deadline = move_deadline(wheel, i, window);
		uint64_t left = deadline > wheel->next ? deadline - wheel->next : 0;
		uint64_t part = above->count / (left + 1) + LEAST_STEP;
		tw__wheel_move(wheel, level, window, part < MOST_STEP ? part : MOST_STEP);
		behind |= above->count > left * MOST_STEP;
	}
	tw__wheel_open_windows(wheel);
	return behind;
}

/* ------------------------------------------------------------------ packing */

bool tw__wheel_pack(struct tw__wheel *wheel, struct tw__chunk_list *list, struct tw__chunk **at,
		    tw__resolve_fn *resolve, const struct tw__place *place, uint64_t *budget,
		    uint64_t *gone)
{
	uint64_t due_ticks[TW__CHUNK_ENTRIES];
	struct tw__chunk *out = *at, *chunk = out ? out->next : list->first, *next;
	for (; chunk && *budget > 0; chunk = next) {
		unsigned n = chunk->count;
		next = chunk->next;
		*budget -= *budget < n ? *budget : n;
		*gone += n;
		*gone -=
		    tw__wheel_split(wheel, resolve, chunk, TW__RESOLVE_PRUNE, place, due_ticks);
		if (out)
			tw__chunk_fill(out, chunk);
		if (chunk->count > 0) {
			out = chunk;
			continue;
		}
		if (out)
			out->next = next;
		else
			list->first = next;
		tw__chunk_put(wheel, chunk);
	}
	*at = chunk ? out : NULL;
	if (!chunk) /* planted: bucket_end */
		list->last = out;
	TW_ASSERT(!out || out->count > 0);
	return chunk != NULL;
}

/* Packs a part of a bucket, as above. `pass`: of a sweep, or 0. */
static bool pack_bucket(struct tw__wheel *wheel, struct tw__level *level, uint64_t number,
			struct tw__chunk **at, uint64_t pass, uint64_t *budget)
{
	struct tw__bucket *bucket = &level->buckets[number & level->mask];
	struct tw__place place = tw__place_of(wheel, level, number);
	uint64_t gone = 0, elsewhere = tw__depot_used(&wheel->chunks) - wheel->filed;
	place.pass = pass;
	bool more = tw__wheel_pack(wheel, &bucket->list, at, wheel->resolve, &place, budget, &gone);
	wheel->filed = tw__depot_used(&wheel->chunks) - elsewhere;
	tw__level_remove(wheel, level, bucket, gone);
	return more;
}

/* Packs a bucket's front up to a chunk that stays. False: it is empty, or *budget is 0. */
static bool prune_front(struct tw__wheel *wheel, struct tw__level *level, uint64_t number,
			unsigned *budget)
{
	struct tw__bucket *bucket = &level->buckets[number & level->mask];
	struct tw__chunk *stays = NULL;
	bool more = true;
	while (more && !stays && *budget > 0) {
		uint64_t one = 1; /* chunk */
		*budget -= *budget < TW__CHUNK_ENTRIES ? *budget : TW__CHUNK_ENTRIES;
		if (wheel->sweep_at == bucket->list.first)
			wheel->sweep_at = NULL;
		more = pack_bucket(wheel, level, number, &stays, 0, &one);
	}
	return stays || (!more && bucket->count > 0);
}

/* --------------------------------------------------------------------- plan */

/* The latest tick in which bucket `number` of level i (>= 1) is begun. */
static uint64_t move_tick(const struct tw__wheel *wheel, unsigned i, uint64_t number)
{
	TW_ASSERT(number > 0);
	const struct tw__level *level = &wheel->levels[i];
	uint64_t deadline = move_deadline(wheel, i - 1, number),
		 ahead = level->buckets[number & level->mask].count / WAKE_STEP,
		 longest = deadline - ((number - 1) << level->shift);
	return deadline - (ahead < longest ? ahead : longest);
}

static uint64_t plan_tick(const struct tw__wheel *wheel, unsigned i, uint64_t number)
{
	return i == 0 ? number : move_tick(wheel, i, number); /* planted: late_plan */
}

uint64_t tw__wheel_plan(struct tw__wheel *wheel, unsigned budget)
{
	uint64_t plan = UINT64_MAX;
	if (wheel->late.count)
		return wheel->next;
	for (unsigned i = 0; i < wheel->level_count; i++) {
		struct tw__level *level = &wheel->levels[i];
		uint64_t from = wheel->next >> level->shift, number = from;
		while (level->entries > 0 &&
		       tw__level_next(level, number, from + level->mask + 1, &number)) {
			/* nothing from there on is earlier */
			if (plan_tick(wheel, i, number) >= plan)
				break;
			if (prune_front(wheel, level, number, &budget)) {
				uint64_t tick = plan_tick(wheel, i, number);
				plan = tick < plan ? tick : plan;
				break;
			}
			if (budget == 0)
				return wheel->next;
		}
	}
	return plan;
}

/* -------------------------------------------------------------------- sweep */

void tw__wheel_sweep_start(struct tw__wheel *wheel)
{
	if (tw__wheel_sweeping(wheel))
		return;
	TW_ASSERT(!wheel->sweep_at);
	wheel->sweep_level = 0;
	wheel->sweep_bucket = 0;
	wheel->sweep_at = NULL;
}

/* Sweeps a part of the bucket that is being swept. False: it has reached the bucket's end. */
static bool sweep_bucket(struct tw__wheel *wheel, uint64_t *budget)
{
	struct tw__level *level = &wheel->levels[wheel->sweep_level];
	uint64_t first = wheel->next >> level->shift,
		 number = first + ((wheel->sweep_bucket - first) & level->mask);
	wheel->sweep_pass += !wheel->sweep_at;
	return pack_bucket(wheel, level, number, &wheel->sweep_at, wheel->sweep_pass, budget);
}

bool tw__wheel_sweep(struct tw__wheel *wheel, uint64_t budget)
{
	while (budget > 0 && tw__wheel_sweeping(wheel)) {
		struct tw__level *level = &wheel->levels[wheel->sweep_level];
		if (!wheel->sweep_at && !tw__level_next(level, wheel->sweep_bucket, level->mask + 1,
							&wheel->sweep_bucket)) {
			wheel->sweep_level++;
			wheel->sweep_bucket = 0;
			continue;
		}
		TW_ASSERT(wheel->sweep_bucket <= level->mask);
		if (!sweep_bucket(wheel, &budget))
			wheel->sweep_bucket++;
	}
	return tw__wheel_sweeping(wheel);
}

/* -------------------------------------------------------------------- check */

static const char *check_bucket(const struct tw__wheel *wheel, const struct tw__level *level,
				uint64_t index, uint64_t *chunks)
{
	const struct tw__bucket *bucket = &level->buckets[index];
	bool marked = level->occupied[index / 64] >> index % 64 & 1;
	if (marked != (bucket->count > 0))
		return "a bucket's bit disagrees with its count";
	uint64_t count = 0;
	const struct tw__chunk *last = NULL;
	for (const struct tw__chunk *chunk = bucket->list.first; chunk; chunk = chunk->next) {
		if (chunk->count == 0 || chunk->count > TW__CHUNK_ENTRIES)
			return "a chunk in a bucket is empty or overfull";
		count += chunk->count;
		last = chunk;
		++*chunks;
	}
	if (last != bucket->list.last)
		return "a bucket's last chunk is not its last";
	if (count != bucket->count)
		return "a bucket's count is wrong";
	if (level != wheel->levels && index == (wheel->next >> level->shift & level->mask) &&
	    count > 0)
		return "a coarse bucket holds entries of a window that has begun";
	return NULL;
}

const char *tw__wheel_check(const struct tw__wheel *wheel)
{
	uint64_t total = wheel->late.count, chunks = 0;
	for (const struct tw__chunk *chunk = wheel->late.list.first; chunk; chunk = chunk->next)
		chunks++;
	for (unsigned i = 0; i < wheel->level_count; i++) {
		const struct tw__level *level = &wheel->levels[i];
		uint64_t window = wheel->next >> level->window_shift, sum = 0;
		if (level->open != window && level->open != window + 1)
			return "a level's open window is neither the current nor the next one";
		for (uint64_t index = 0; index <= level->mask; index++) {
			const char *wrong = check_bucket(wheel, level, index, &chunks);
			if (wrong)
				return wrong;
			sum += level->buckets[index].count;
		}
		if (sum != level->entries)
			return "a level's count is wrong";
		total += sum;
	}
	if (chunks != wheel->filed)
		return "the count of chunks is wrong";
	return total == wheel->entries ? NULL : "the wheel's count is wrong";
}
