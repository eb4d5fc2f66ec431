/*
 * What has become of an entry: the wheel asks, the control word answers.
 *
 * A timer has one entry at a time, in a lane, in the wheel or in a batch, unless it is RELOCATED.
 * Then a reset to earlier has pushed another one, and the driver keeps a **location**: the timer is
 * in a batch, or the entry that counts is in the bucket of that level which has that tick. Rules
 * for the entries of a RELOCATED timer:
 *   - In a batch, and a reset brings an entry: the entry is dropped. The worker that claims the run
 *     gives the timer back if it is not due. An entry that comes back ends the state; the thread
 *     that brings it looks at the word again (tw__wake_for_back), since the driver may sleep past a
 *     deadline whose entry it has dropped.
 *   - From a lane: the entry is dropped if there is a location that is not later. If the bucket of
 *     the location has the entry's tick too, the location moves. Else the entry is filed, and its
 *     location is written.
 *   - Met in another bucket than the location's, or while in a batch: the entry is dropped.
 *   - Met in the location's bucket, or without a location: the entry counts. It is handed over, or
 *     filed again, and the location says which. If the timer is not armed, a worker has it by
 *     another entry, and the location says that it is in a batch.
 * Invariant: an armed RELOCATED timer has an entry in its location's bucket, or in a lane, or in a
 * batch, that will be met no later than its deadline. Without the rule, a timer toggled between 5 s
 * and 60 s would collect entries without limit. A left entry may come to be in the location's
 * bucket again; a sweep leaves one there.
 *
 * A FILED timer (disarmed) is treated as an armed one, but when its tick has come the promise is
 * taken back, and the entry dropped.
 *
 * A due word whose bits could soon be read as the future becomes BEYOND_RANGE when it is handed
 * over: the driver stood still for hours, or the clock leapt.
 *
 * Rejected: looking for the old entry to remove it (a search in a bucket for each reset).
 */
#include "wheel/core/service.h"
#include "mpsc/base/probes.h"
#include "wheel/driver/driver.h"

static uint64_t at_least(uint64_t tick, uint64_t low)
{
	return tick > low ? tick : low;
}

static enum tw__location_state location_state(const struct tw__location *location,
					      uint32_t generation)
{
	return location->generation == generation ? location->state : TW__NOWHERE;
}

/* The level of an entry after the wheel has got this due tick for it. */
static unsigned level_after(const tw_service *service, enum tw__resolve_for what_for,
			    const struct tw__place *place, uint64_t due_tick)
{
	if (due_tick >= place->high)
		return tw__wheel_level_for(&service->driver->wheel, due_tick);
	/* planted: level_not_located */
	return what_for == TW__RESOLVE_MOVE ? place->level - 1 : place->level;
}

static bool location_is_in(const struct tw__location *location, const struct tw__place *place)
{
	return location->level == place->level && location->tick >= place->low &&
	       location->tick < place->high;
}

/*
 * The entry at the location is dropped. If the timer is armed again, its new entry must not find
 * that location.
 */
static void resolve_forget(tw_service *service, uint32_t slot, uint32_t generation,
			   const struct tw__place *place)
{
	struct tw__location *location = &service->slots.locations[slot];
	if (location_state(location, generation) == TW__IN_BUCKET &&
	    location_is_in(location, place))
		location->state = TW__IN_BATCH;
}

static void location_write(struct tw__location *location, uint32_t generation,
			   enum tw__location_state state, unsigned level, uint64_t tick)
{
	location->generation = generation;
	location->state = (uint16_t)state;
	location->level = (uint16_t)level;
	location->tick = tick;
	location->pass = 0;
}

/* An entry is not the one that counts: that is handed over, or in another bucket. */
static bool is_left_behind(const struct tw__location *location, uint32_t generation,
			   const struct tw__place *place)
{
	enum tw__location_state state = location_state(location, generation);
	return state == TW__IN_BATCH ||
	       (state == TW__IN_BUCKET && !location_is_in(location, place));
}

/* The due tick of a word in this place. False: *word has changed. */
static bool due_tick_of(tw_service *service, enum tw__resolve_for what_for,
			const struct tw__place *place, uint32_t slot, uint64_t *word,
			uint64_t *due_tick)
{
	uint64_t target = service->driver->turning_to, tick;
	if (!tw__deadline_read(&service->slots, slot, word, service->driver->wheel.next, &tick))
		return false;
	*due_tick = at_least(tick, place->low);
	if (what_for != TW__RESOLVE_EXPIRE || tick >= place->high || tw__word_is_far(*word) ||
	    tw_likely(tw__tick_is_near(tick, target))) /* planted: stays_near */
		return true;
	return tw__deadline_move(&service->slots, slot, word, tick,
				 tw__word_move(*word, TW__BEYOND_RANGE), tick);
}

/* The due tick for an entry of a RELOCATED timer, by the rule above. Returns as due_tick_of. */
static __attribute__((noinline)) bool
resolve_relocated(tw_service *service, enum tw__resolve_for what_for, const struct tw__place *place,
		  uint32_t slot, uint64_t *word, uint64_t *due_tick)
{
	struct tw__location *location = &service->slots.locations[slot];
	uint32_t generation = tw__word_generation(*word);
	*due_tick = TW__TICK_DEAD;
	if (is_left_behind(location, generation, place))
		return true;
	if (place->pass) { /* a sweep leaves one entry in the location's bucket */
		bool is_known = location_state(location, generation) != TW__NOWHERE;
		if (!is_known || location->pass != place->pass)
			*due_tick = place->low;
		location->pass = is_known ? place->pass : location->pass;
		return true;
	}
	if (!due_tick_of(service, what_for, place, slot, word, due_tick))
		return false;
	/*
	 * Only now: before, a location that says "handed over" would have the next look drop the
	 * entry.
	 */
	bool handed = what_for == TW__RESOLVE_EXPIRE && *due_tick < place->high;
	location_write(location, generation, handed ? TW__IN_BATCH : TW__IN_BUCKET,
		       level_after(service, what_for, place, *due_tick), *due_tick);
	return true;
}

/*
 * The timer is not armed: whether its entry stays, promised until the word's tick. True also if the
 * timer is armed meanwhile.
 */
static __attribute__((noinline)) bool resolve_keeps(tw_service *service,
						    enum tw__resolve_for what_for,
						    const struct tw__place *place,
						    tw__wheel_entry entry, uint64_t *word)
{
	bool expires = what_for == TW__RESOLVE_EXPIRE;
	uint64_t next = service->driver->wheel.next;
	if (tw__word_filed(*word) && (!expires || tw__word_deadline(*word, next) >= place->high))
		return true;
	return tw__entry_is_armed(&service->slots, entry, word);
}

static __attribute__((noinline)) uint64_t resolve_slowly(tw_service *service,
							 enum tw__resolve_for what_for,
							 const struct tw__place *place,
							 tw__wheel_entry entry, uint64_t word)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t due_tick;
	bool known;
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT)
			return TW__TICK_DEAD;
		if (tw_unlikely(!tw__word_armed(word)) &&
		    !resolve_keeps(service, what_for, place, entry, &word)) {
			resolve_forget(service, slot, tw__entry_generation(entry), place);
			return TW__TICK_DEAD;
		}
		known = tw_unlikely(word & TW__RELOCATED)
			    ? resolve_relocated(service, what_for, place, slot, &word, &due_tick)
			    : due_tick_of(service, what_for, place, slot, &word, &due_tick);
	} while (tw_unlikely(!known));
	return due_tick;
}

/* The due tick for one entry. Nearly all are dead, or near, not moved to earlier, and not late. */
static inline uint64_t resolve_entry(tw_service *service, enum tw__resolve_for what_for,
				     const struct tw__place *place, tw__wheel_entry entry)
{
	uint64_t word = tw_load_acquire(&service->slots.words[tw__entry_slot(entry)]);
	if ((word ^ entry) >> TW__GENERATION_SHIFT)
		return TW__TICK_DEAD;
	if (tw_likely((word & (TW__ARMED | TW__BEYOND_RANGE | TW__RELOCATED)) == TW__ARMED)) {
		uint64_t tick = tw__word_deadline(word, service->driver->wheel.next);
		if (tw_likely(what_for != TW__RESOLVE_EXPIRE || tick >= place->high ||
			      tw__tick_is_near(tick, service->driver->turning_to)))
			return at_least(tick, place->low);
	}
	return resolve_slowly(service, what_for, place, entry, word);
}

/* Of RELOCATED timers; without a branch. */
static void prefetch_locations(const tw_service *service, const tw__wheel_entry *entries,
			       unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = tw__entry_slot(entries[i]);
		uint64_t word = tw_load_relaxed(&service->slots.words[slot]); /* a hint */
		bool is_live = (word ^ entries[i]) >> TW__GENERATION_SHIFT == 0;
		const void *location = &service->slots.locations[slot];
		tw_prefetch_write(is_live && word & TW__RELOCATED ? location : entries);
	}
}

void tw__resolve(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
		 const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks)
{
	tw_service *service = context;
	const _Atomic uint64_t *words = service->slots.words;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch((const void *)&words[tw__entry_slot(entries[i])]);
	if (tw_unlikely(tw_load_relaxed(&service->slots.written[TW__LOCATIONS])))
		prefetch_locations(service, entries, n);
	for (unsigned i = 0; i < n; i++)
		due_ticks[i] = resolve_entry(service, what_for, place, entries[i]);
	if (place->pass) /* a sweep moves nothing: most of it moves again before it is due */
		for (unsigned i = 0; i < n; i++)
			if (due_ticks[i] != TW__TICK_DEAD)
				due_ticks[i] = place->low;
}

bool tw__location_covers(const tw_service *service, tw__wheel_entry entry, uint64_t tick)
{
	const struct tw__location *location = &service->slots.locations[tw__entry_slot(entry)];
	uint32_t generation = tw__entry_generation(entry);
	/* planted: covered_by_later */
	return location_state(location, generation) == TW__IN_BUCKET && location->tick <= tick;
}

void tw__location_in_batch(tw_service *service, tw__wheel_entry entry)
{
	TW_ASSERT_DRIVER(service);
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	/* Whatever the word says: who arms the timer after this brings an entry that ends it. */
	if (location_state(&service->slots.locations[slot], generation) != TW__NOWHERE)
		service->slots.locations[slot].state = TW__IN_BATCH;
}

void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back)
{
	TW_ASSERT_DRIVER(service);
	if (tw_unlikely(word & TW__RELOCATED)) {
		struct tw__location *location = &service->slots.locations[slot];
		uint32_t generation = tw__word_generation(word);
		if (back && location_state(location, generation) == TW__IN_BATCH)
			location->state = TW__NOWHERE;
		bool is_in_bucket = location_state(location, generation) == TW__IN_BUCKET;
		if (tw__location_covers(service, tw__entry_make(slot, generation), tick))
			return;
		if (location_state(location, generation) == TW__IN_BATCH) {
			service->driver->loop.left_to_batch = true;
			return;
		}
		if (is_in_bucket &&
		    tw__wheel_is_one_bucket(&service->driver->wheel, location->level,
					    location->tick, tick)) {
			location->tick = tick;
			return;
		}
		unsigned level = tw__wheel_level_for(&service->driver->wheel, tick);
		location_write(location, generation, TW__IN_BUCKET, level, tick);
		tw__slots_write(&service->slots, TW__LOCATIONS);
	}
	tw__wheel_add(&service->driver->wheel, tick,
		      tw__entry_make(slot, tw__word_generation(word)));
	TW_PROBE4(file, service, slot, tw__word_generation(word), tick);
}

void tw__refile(tw_service *service, uint64_t entry)
{
	TW_ASSERT_DRIVER(service);
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word, tick;
	do {
		if (!tw__entry_is_armed(&service->slots, entry, &word))
			return;
	} while (
	    !tw__deadline_read(&service->slots, slot, &word, service->driver->wheel.next, &tick));
	tw__file(service, slot, word, tick, true);
}
