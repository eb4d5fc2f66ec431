/*
 * What has become of an entry: the wheel asks, the control word answers.
 *
 * A timer has one entry at a time, in a lane, in the wheel or in a batch, unless it is RELOCATED:
 * then a reset to earlier has pushed another one, and the driver keeps a **note**
 * {generation, tick, level}: the bucket of the wheel, and the tick within it, for which the entry
 * that counts stands there; or that it is handed over. Refile rule for RELOCATED words:
 *   - an entry that a reset has brought is dropped if the timer is handed over: the worker that
 *     claims it reads the word, and gives it back if it is not due; one that comes back, from a
 *     worker or a refusal, ends that;
 *   - an entry from a lane is dropped if there is a note not later than what it asks for; or the
 *     noted bucket has that tick too, then the note moves; else it is filed, and noted;
 *   - an entry met in a bucket that is not the noted one is dropped: the noted one, or an entry
 *     still in a lane, covers it; so is one whose timer has been handed over already;
 *   - in the noted bucket, or without a note, it counts: handed over (the note says so), or filed
 *     again (the note moves). If the timer is not armed, a worker has it by another entry: the note
 *     says handed over.
 * Invariant: an armed RELOCATED timer has an entry in the noted bucket, or in a lane, or in a
 * batch, that will be met no later than its deadline. Without the rule, a timer toggled between 5 s
 * and 60 s would collect entries without limit; so would one that is moved to earlier a tick at a
 * time, in a coarse bucket. An entry that is left behind may come to stand in the noted bucket
 * again (a series that is called early time and again, and armed for the same bucket each time): a
 * sweep leaves one there.
 *
 * Each entry is in the wheel for its whole tick, however far. A BEYOND_RANGE word is read with
 * its deadline in far_ticks (slots.h), and becomes near when it is handed over. A move to a later
 * deadline, far or near, needs no entry: the old one is met before, and is filed again.
 *
 * A FILED timer (disarmed) is treated as an armed one, except that it is not handed over: when its
 * tick has come the promise is taken back, and the entry dropped. The next arming brings another.
 *
 * A due word whose deadline lies so far back that it could soon be read as the future (the driver
 * stood still for hours, or the clock leapt) is **refreshed** when it is handed over: its deadline
 * becomes the tick that is being turned to.
 *
 * Rejected: looking for the old entry to remove it (a search in a bucket for each reset).
 */
#include "wheel/core/service.h"
#include "wheel/base/probes.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/resolve.h"

static uint64_t at_least(uint64_t tick, uint64_t low)
{
	return tick > low ? tick : low;
}

static enum tw__note_state note_state(const struct tw__note *note, uint32_t generation)
{
	return note->generation == generation ? note->state : TW__NOWHERE;
}

/* The level of an entry after the wheel has got this due tick for it. */
static unsigned level_after(const tw_service *service, enum tw__resolve_for what_for,
			    const struct tw__place *place, uint64_t due_tick)
{
	if (due_tick >= place->high)
		return tw__wheel_level_for(&service->driver->wheel, due_tick);
	/* planted: level_not_noted */
	return what_for == TW__RESOLVE_MOVE ? place->level - 1 : place->level;
}

static bool is_noted_at(const struct tw__note *note, const struct tw__place *place)
{
	return note->level == place->level && note->tick >= place->low && note->tick < place->high;
}

/*
 * Whether this pass of a sweep has met an entry of the timer in the noted bucket before: one is
 * enough. Whoever files the timer anew, or takes the entry out, writes the note, and so begins
 * again: an entry that was met is still there.
 */
static bool is_met_again(struct tw__note *note, const struct tw__place *place)
{
	bool again = note->pass == place->pass;
	note->pass = place->pass;
	return again;
}

/*
 * The noted entry is dropped, though its generation is not over: the timer is with a worker by
 * another entry. If it is armed again, that comes through a lane, and must not find a note of an
 * entry that is gone.
 */
static void resolve_forget(tw_service *service, uint32_t slot, uint32_t generation,
			   const struct tw__place *place)
{
	struct tw__note *note = &service->slots.notes[slot];
	if (note_state(note, generation) == TW__IN_BUCKET && is_noted_at(note, place))
		note->state = TW__IN_BATCH;
}

static void note_down(struct tw__note *note, uint32_t generation, enum tw__note_state state,
		      unsigned level, uint64_t tick)
{
	note->generation = generation;
	note->state = (uint16_t)state;
	note->level = (uint16_t)level;
	note->tick = tick;
	note->pass = 0;
}

/* An entry is not the one that counts: that is handed over, or in another bucket. */
static bool is_left_behind(const struct tw__note *note, uint32_t generation,
			   const struct tw__place *place)
{
	enum tw__note_state state = note_state(note, generation);
	return state == TW__IN_BATCH || (state == TW__IN_BUCKET && !is_noted_at(note, place));
}

/*
 * The due tick of a word in this place; what is handed over gets a near word, of a recent tick.
 * False: the word has changed; *word is what it is now.
 */
static bool due_tick_of(tw_service *service, enum tw__resolve_for what_for,
			const struct tw__place *place, uint32_t slot, uint64_t *word,
			uint64_t *due_tick)
{
	uint64_t target = service->driver->turning_to, tick;
	if (!tw__deadline_read(&service->slots, slot, word, service->driver->wheel.next, &tick))
		return false;
	*due_tick = at_least(tick, place->low);
	if (tw_likely(what_for != TW__RESOLVE_EXPIRE || tick >= place->high))
		return true;
	bool is_long_past = tick + TW__NEAR_TICKS <= target;
	if (tw_likely(!is_long_past && !tw__word_is_far(*word))) /* planted: stays_far */
		return true;
	uint64_t recent = is_long_past ? target : tick;
	return tw__deadline_move(&service->slots, slot, word, tick,
				 tw__word_move(*word, recent & TW__DEADLINE_MASK), recent);
}

/* The due tick for an entry of a RELOCATED timer, by the rule above. Returns as due_tick_of. */
static __attribute__((noinline)) bool
resolve_relocated(tw_service *service, enum tw__resolve_for what_for, const struct tw__place *place,
		  uint32_t slot, uint64_t *word, uint64_t *due_tick)
{
	struct tw__note *note = &service->slots.notes[slot];
	uint32_t generation = tw__word_generation(*word);
	*due_tick = TW__TICK_DEAD;
	if (is_left_behind(note, generation, place))
		return true;
	if (what_for == TW__RESOLVE_SWEEP) {
		bool is_noted = note_state(note, generation) == TW__IN_BUCKET;
		if (!is_noted || !is_met_again(note, place))
			*due_tick = place->low;
		return true;
	}
	if (!due_tick_of(service, what_for, place, slot, word, due_tick))
		return false;
	/*
	 * Only now: before, a note that says "handed over" would have the next look drop the entry.
	 */
	bool handed = what_for == TW__RESOLVE_EXPIRE && *due_tick < place->high;
	note_down(note, generation, handed ? TW__IN_BATCH : TW__IN_BUCKET,
		  level_after(service, what_for, place, *due_tick), *due_tick);
	return true;
}

/*
 * Whether an entry of a timer that is not armed stays: one that is promised to a disarmed timer
 * does, for the tick in the word, until that has come. True also if the timer is armed meanwhile.
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
			      tick + TW__NEAR_TICKS > service->driver->turning_to))
			return at_least(tick, place->low);
	}
	return resolve_slowly(service, what_for, place, entry, word);
}

/*
 * In such a sweep words are not read: what is written down of slots, and the notes, are the
 * driver's own, and say enough. A timer whose note is of this generation is RELOCATED.
 */
static bool is_superfluous(const tw_service *service, const struct tw__place *place,
			   tw__wheel_entry entry)
{
	uint32_t generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	struct tw__note *note = &service->slots.notes[tw__entry_slot(entry)];
	return is_left_behind(note, generation, place) ||
	       (note_state(note, generation) == TW__IN_BUCKET && is_met_again(note, place));
}

static void resolve_sweep(const tw_service *service, const struct tw__place *place,
			  const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks)
{
	const uint32_t *reached = service->slots.reached;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(&reached[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++) {
		bool dead = (uint32_t)(entries[i] >> TW__GENERATION_SHIFT) <
			    reached[tw__entry_slot(entries[i])];
		due_ticks[i] = dead ? TW__TICK_DEAD : place->low;
	}
	if (tw_unlikely(tw_load_relaxed(&service->slots.written.notes)))
		for (unsigned i = 0; i < n; i++)
			if (due_ticks[i] != TW__TICK_DEAD &&
			    is_superfluous(service, place, entries[i]))
				due_ticks[i] = TW__TICK_DEAD;
}

void tw__resolve(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
		 const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks)
{
	tw_service *service = context;
	if (what_for == TW__RESOLVE_SWEEP && service->driver->sweep.by != TW__SWEEP_BY_WORDS) {
		resolve_sweep(service, place, entries, n, due_ticks);
		return;
	}
	const _Atomic uint64_t *words = service->slots.words;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch((const void *)&words[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++)
		due_ticks[i] = resolve_entry(service, what_for, place, entries[i]);
}

void tw__location_in_batch(tw_service *service, tw__wheel_entry entry)
{
	TW_ASSERT_DRIVER(service);
	uint32_t slot = tw__entry_slot(entry),
		 generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	/* Whatever the word says: who arms the timer after this brings an entry that ends it. */
	if (note_state(&service->slots.notes[slot], generation) != TW__NOWHERE)
		service->slots.notes[slot].state = TW__IN_BATCH;
}

void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back)
{
	TW_ASSERT_DRIVER(service);
	if (tw_unlikely(word & TW__RELOCATED)) {
		struct tw__note *note = &service->slots.notes[slot];
		uint32_t generation = tw__word_generation(word);
		if (back && note_state(note, generation) == TW__IN_BATCH)
			note->state = TW__NOWHERE;
		bool is_noted = note_state(note, generation) == TW__IN_BUCKET;
		/* planted: covered_by_later */
		if ((is_noted && note->tick <= tick) ||
		    note_state(note, generation) == TW__IN_BATCH)
			return;
		if (is_noted && tw__wheel_is_one_bucket(&service->driver->wheel, note->level,
							note->tick, tick)) {
			note->tick = tick;
			return;
		}
		unsigned level = tw__wheel_level_for(&service->driver->wheel, tick);
		note_down(note, generation, TW__IN_BUCKET, level, tick);
		tw_store_relaxed(&service->slots.written.notes, true);
	}
	tw__wheel_add(&service->driver->wheel, tick,
		      tw__entry_make(slot, tw__word_generation(word)));
	TW_PROBE4(file, service, slot, tw__word_generation(word), tick);
}
