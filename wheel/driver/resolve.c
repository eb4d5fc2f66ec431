/*
 * What has become of an entry: the wheel asks, the control word answers.
 *
 * A timer has one entry at a time, in a lane, in the wheel or in a batch, unless it is RELOCATED:
 * then a reset to earlier, or far, has pushed another one, and the driver keeps a **note**
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
 * A BEYOND_RANGE word holds only a hash of its deadline T; the note holds all of it once the lane
 * entry that brought it is drained. Far entries stand in the wheel at way points T - k *
 * (TW__WHEEL_REACH - 1). Of these just one lies in the reach of the wheel at any time, whenever a
 * timer for T is filed: so all timers for T go from one way point to the next together, in the
 * order in which they came (G6).
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

/* What a note is to say: where the entry that counts stands. */
struct standing {
	bool is_known;
	enum tw__note_state state;
	unsigned level;
	uint64_t tick;
};

/* The note knows the whole of this BEYOND_RANGE word's deadline. */
static bool far_known(const struct tw__note *note, uint64_t word)
{
	return note->generation == tw__word_generation(word) &&
	       tw__far_bits(tw_load_relaxed(&note->far_tick)) == (word & TW__DEADLINE_MASK);
}

/*
 * The last tick that an entry may be filed for when `first` is the first tick not yet handed over.
 */
static uint64_t reach(uint64_t first)
{
	return first + TW__WHEEL_REACH - 2;
}

/* Where a far entry stands meanwhile. */
static uint64_t way_point(uint64_t far_tick, uint64_t first)
{
	uint64_t beyond = far_tick - reach(first), step = TW__WHEEL_REACH - 1;
	return far_tick - (beyond + step - 1) / step * step;
}

/*
 * Clears BEYOND_RANGE if the deadline has come near; *word is what it has become. False: the entry
 * that brings the deadline is still in a lane, and will be filed; or the timer is gone.
 */
static bool approach(tw_service *service, struct tw__note *note, uint32_t slot, uint64_t *word,
		     uint64_t first)
{
	uint32_t generation = tw__word_generation(*word);
	while (*word & TW__BEYOND_RANGE) {
		if (!far_known(note, *word)) {
			note->state = TW__NOWHERE;
			return false;
		}
		uint64_t far_tick = tw_load_relaxed(&note->far_tick);
		if (far_tick > reach(first))
			return true;
		/*
		 * Long past: as good as the last tick turned through, and cannot be taken for the
		 * future.
		 */
		uint64_t next = service->driver->wheel.next,
			 near = far_tick + TW__WHEEL_REACH < next ? next - 1 : far_tick;
		uint64_t cleared = tw__word_move(*word, TW__BEYOND_RANGE, 0, near);
		if (tw__word_cas_acq_rel(&service->slots.words[slot], word, cleared))
			*word = cleared;
		else if (tw__word_generation(*word) != generation || !tw__word_armed(*word))
			return false;
	}
	return true;
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

/*
 * The due tick for a BEYOND_RANGE or RELOCATED word in this place; *after: what the note is to say
 * by then.
 */
static uint64_t resolve_noted(tw_service *service, enum tw__resolve_for what_for,
			      const struct tw__place *place, uint32_t slot, uint64_t *word,
			      struct standing *after)
{
	struct tw__note *note = &service->slots.notes[slot];
	uint32_t generation = tw__word_generation(*word);
	bool is_noted = note_state(note, generation) == TW__IN_BUCKET;
	if (note_state(note, generation) == TW__IN_BATCH || (is_noted && !is_noted_at(note, place)))
		return TW__TICK_DEAD;
	if (what_for == TW__RESOLVE_SWEEP)
		return is_noted && is_met_again(note, place) ? TW__TICK_DEAD : place->low;
	bool expires = what_for == TW__RESOLVE_EXPIRE;
	if (!approach(service, note, slot, word,
		      expires ? place->high : service->driver->wheel.next)) {
		resolve_forget(service, slot, generation, place);
		return TW__TICK_DEAD;
	}
	uint64_t tick, far_tick = tw_load_relaxed(&note->far_tick);
	if (!(*word & TW__BEYOND_RANGE))
		tick = tw__word_deadline(*word, service->driver->wheel.next);
	else if (expires)
		tick = way_point(far_tick, place->high);
	else
		tick = is_noted ? note->tick : place->low;
	if (!expires)
		tick = at_least(tick, place->low);
	/* a word that was BEYOND_RANGE alone is plain from here on */
	bool keeps_note = *word & (TW__BEYOND_RANGE | TW__RELOCATED);
	bool handed = expires && tick < place->high;
	enum tw__note_state state = !keeps_note ? TW__NOWHERE
				    : handed    ? TW__IN_BATCH
						: TW__IN_BUCKET;
	*after = (struct standing){true, state, level_after(service, what_for, place, tick), tick};
	return tick;
}

static void note_down(struct tw__note *note, uint32_t generation, const struct standing *standing)
{
	note->generation = generation;
	note->state = (uint16_t)standing->state;
	note->level = (uint16_t)standing->level;
	note->tick = standing->tick;
	note->pass = 0;
}

/*
 * The due tick for one entry. One that comes late by hours is refreshed first, if it is not moved
 * meanwhile.
 */
static uint64_t resolve_entry(tw_service *service, enum tw__resolve_for what_for,
			      const struct tw__place *place, tw__wheel_entry entry)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]), due_tick,
		 target = service->driver->turning_to;
	struct standing after;
	do {
		after = (struct standing){0};
		if ((word ^ entry) >> TW__GENERATION_SHIFT)
			return TW__TICK_DEAD;
		if (tw_unlikely(!tw__word_armed(word))) {
			resolve_forget(service, slot, tw__word_generation(word), place);
			return TW__TICK_DEAD;
		}
		if (tw_unlikely(word & (TW__BEYOND_RANGE | TW__RELOCATED)))
			due_tick = resolve_noted(service, what_for, place, slot, &word, &after);
		else
			due_tick = tw__word_deadline(word, service->driver->wheel.next);
		if (tw_likely(what_for != TW__RESOLVE_EXPIRE || due_tick >= place->high ||
			      due_tick + TW__WHEEL_REACH > target))
			break;
	} while (!tw__word_cas_acq_rel(&service->slots.words[slot], &word,
				       tw__word_move(word, 0, 0, target)));
	/*
	 * Only now: before, a note that says "handed over" would have the next look drop the entry.
	 */
	if (tw_unlikely(after.is_known))
		note_down(&service->slots.notes[slot], (uint32_t)(entry >> TW__GENERATION_SHIFT),
			  &after);
	return at_least(due_tick, place->low);
}

/*
 * In such a sweep words are not read: what is written down of slots, and the notes, are the
 * driver's own, and say enough. A timer whose note is of this generation is BEYOND_RANGE or
 * RELOCATED.
 */
static bool is_superfluous(const tw_service *service, const struct tw__place *place,
			   tw__wheel_entry entry)
{
	uint32_t generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	struct tw__note *note = &service->slots.notes[tw__entry_slot(entry)];
	enum tw__note_state state = note_state(note, generation);
	if (state == TW__IN_BUCKET)
		return !is_noted_at(note, place) || is_met_again(note, place);
	return state == TW__IN_BATCH;
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
	if (tw_unlikely(tw_load_relaxed(&service->slots.noted)))
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

void tw__note_far(tw_service *service, uint32_t slot, uint32_t generation, uint64_t far_tick)
{
	TW_ASSERT_DRIVER(service);
	struct tw__note *note = &service->slots.notes[slot];
	if (note->generation != generation) {
		note->generation = generation;
		note->state = TW__NOWHERE;
	}
	tw_store_relaxed(&note->far_tick, far_tick);
	tw_store_relaxed(&service->slots.noted, true);
}

void tw__location_in_batch(tw_service *service, tw__wheel_entry entry)
{
	TW_ASSERT_DRIVER(service);
	uint32_t slot = tw__entry_slot(entry),
		 generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	if (tw__word_armed(word) && word & (TW__BEYOND_RANGE | TW__RELOCATED) &&
	    note_state(&service->slots.notes[slot], generation) != TW__NOWHERE)
		service->slots.notes[slot].state = TW__IN_BATCH;
}

void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back)
{
	TW_ASSERT_DRIVER(service);
	if (tw_unlikely(word & (TW__BEYOND_RANGE | TW__RELOCATED))) {
		struct tw__note *note = &service->slots.notes[slot];
		uint32_t generation = tw__word_generation(word);
		if (back && note_state(note, generation) == TW__IN_BATCH)
			note->state = TW__NOWHERE;
		if (word & TW__BEYOND_RANGE) {
			if (!far_known(note, word))
				return;
			uint64_t far_tick = tw_load_relaxed(&note->far_tick),
				 first = service->driver->wheel.next;
			tick = far_tick > reach(first) ? way_point(far_tick, first) : far_tick;
		}
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
		note_down(note, generation, &(struct standing){true, TW__IN_BUCKET, level, tick});
		tw_store_relaxed(&service->slots.noted, true);
	}
	tw__wheel_add(&service->driver->wheel, tick,
		      tw__entry_make(slot, tw__word_generation(word)));
	TW_PROBE4(file, service, slot, tw__word_generation(word), tick);
}
