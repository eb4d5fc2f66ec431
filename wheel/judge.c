/*
 * What has become of an entry: the wheel asks, the control word answers.
 *
 * A timer has one entry at a time, in a lane, in the wheel or in a batch, unless it is MULTI: then a reset to earlier, or far, has
 * pushed another one, and the driver keeps a **note** {generation, tick}: the tick for which the entry that counts stands in
 * the wheel. Refile rule for MULTI words:
 *   - an entry from a lane is dropped if there is a note not later than what it asks for, else filed, and noted;
 *   - an entry met in a bucket that is not the noted one is dropped: the noted one, or an entry still in a lane, covers it; so is
 *     one whose timer has been handed over already;
 *   - in the noted bucket, or without a note, it counts: handed over (the note says so), or filed again (the note moves).
 * Invariant: an armed MULTI timer has an entry in the noted bucket, or in a lane, or in a batch, that will be met no later
 * than its deadline. Without the rule, a timer toggled between 5 s and 60 s would collect entries for ever.
 *
 * A FAR word holds only a hash of its deadline T; the note holds all of it once the lane entry that brought it is drained.
 * Far entries stand in the wheel at way points T - k * (TW__WHEEL_REACH - 1). Of these just one lies in the reach of the wheel
 * at any time, whenever a timer for T is filed: so all timers for T go from one way point to the next together, in the
 * order in which they came (G6).
 *
 * A due word whose deadline lies so far back that it could soon be read as the future (the driver stood still for hours, or the
 * clock leapt) is **refreshed** when it is handed over: its deadline becomes the tick that is being turned to.
 *
 * Rejected: looking for the old entry to remove it (a search in a bucket for each reset).
 */
#include "wheel/core.h"
#include "wheel/probes.h"

static uint64_t at_least(uint64_t tick, uint64_t low)
{
	return tick > low ? tick : low;
}

static enum tw__note_state note_state(const struct tw__note *note, uint32_t generation)
{
	return note->generation == generation ? note->state : TW__NOTE_NONE;
}

/* The note knows the whole of this FAR word's deadline. */
static bool far_known(const struct tw__note *note, uint64_t word)
{
	return note->generation == tw__word_generation(word) &&
	       tw__far_bits(tw_load_relaxed(&note->far_tick)) == (word & TW__DEADLINE_MASK);
}

/* The last tick that an entry may be filed for when `first` is the first tick not yet handed over. */
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
 * Clears FAR if the deadline has come near; *word is what it has become. False: the entry that brings the deadline is still in a
 * lane, and will be filed; or the timer is gone.
 */
static bool approach(tw_service *service, struct tw__note *note, uint32_t slot, uint64_t *word, uint64_t first)
{
	uint32_t generation = tw__word_generation(*word);
	while (*word & TW__FAR) {
		if (!far_known(note, *word)) {
			note->state = TW__NOTE_NONE;
			return false;
		}
		uint64_t far_tick = tw_load_relaxed(&note->far_tick);
		if (far_tick > reach(first))
			return true;
		/* Long past: as good as the last tick turned through, and cannot be taken for the future. */
		uint64_t next = service->wheel.next, near = far_tick + TW__WHEEL_REACH < next ? next - 1 : far_tick;
		uint64_t cleared = tw__word_move(*word, TW__FAR, 0, near);
		if (tw_cas_acq_rel(&service->slots.words[slot], word, cleared))
			*word = cleared;
		else if (tw__word_generation(*word) != generation || !tw__word_armed(*word))
			return false;
	}
	return true;
}

/* The verdict for a FAR or MULTI word in the bucket [low, high). */
static uint64_t judge_noted(tw_service *service, enum tw__judge_for what_for, uint64_t low, uint64_t high,
			    uint32_t slot, uint64_t *word)
{
	struct tw__note *note = &service->slots.notes[slot];
	uint32_t generation = tw__word_generation(*word);
	bool is_noted = note_state(note, generation) == TW__NOTE_FILED;
	if (note_state(note, generation) == TW__NOTE_HANDED || (is_noted && (note->tick < low || note->tick >= high)))
		return TW__VERDICT_DEAD;
	if (what_for == TW__JUDGE_SWEEP)
		return low;
	if (!approach(service, note, slot, word, what_for == TW__JUDGE_EXPIRE ? high : service->wheel.next))
		return TW__VERDICT_DEAD;
	uint64_t tick, far_tick = tw_load_relaxed(&note->far_tick);
	if (!(*word & TW__FAR))
		tick = tw__word_deadline(*word, service->wheel.next);
	else if (what_for == TW__JUDGE_EXPIRE)
		tick = way_point(far_tick, high);
	else
		tick = is_noted ? note->tick : low;
	if (what_for == TW__JUDGE_MOVE)
		tick = at_least(tick, low);
	note->generation = generation;
	bool keeps_note = *word & (TW__FAR | TW__MULTI); /* a word that was FAR alone is plain from here on */
	bool handed = what_for == TW__JUDGE_EXPIRE && tick < high;
	note->state = !keeps_note ? TW__NOTE_NONE : handed ? TW__NOTE_HANDED : TW__NOTE_FILED;
	note->tick = tick;
	return tick;
}

/* The verdict for one entry. One that comes late by hours is refreshed first, if it is not moved meanwhile. */
static uint64_t judge_entry(tw_service *service, enum tw__judge_for what_for, uint64_t low, uint64_t high,
			    tw__wheel_entry entry)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]), verdict, target = service->turning_to;
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return TW__VERDICT_DEAD;
		if (tw_unlikely(word & (TW__FAR | TW__MULTI)))
			verdict = judge_noted(service, what_for, low, high, slot, &word);
		else
			verdict = tw__word_deadline(word, service->wheel.next);
		if (tw_likely(what_for != TW__JUDGE_EXPIRE || verdict >= high || verdict + TW__WHEEL_REACH > target))
			break;
	} while (!tw_cas_acq_rel(&service->slots.words[slot], &word, tw__word_move(word, 0, 0, target)));
	return at_least(verdict, low);
}

/*
 * In such a sweep words are not read: what is written down of slots, and the notes, are the driver's own, and say enough. A timer whose note is of
 * this generation is FAR or MULTI.
 */
static bool is_elsewhere(const tw_service *service, uint64_t low, uint64_t high, tw__wheel_entry entry)
{
	uint32_t generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	const struct tw__note *note = &service->slots.notes[tw__entry_slot(entry)];
	enum tw__note_state state = note_state(note, generation);
	return (state == TW__NOTE_FILED && (note->tick < low || note->tick >= high)) || state == TW__NOTE_HANDED;
}

static void judge_sweep(const tw_service *service, uint64_t low, uint64_t high, const tw__wheel_entry *entries,
			unsigned n, uint64_t *verdicts)
{
	const uint32_t *reached = service->slots.reached;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(&reached[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++) {
		bool dead = (uint32_t)(entries[i] >> TW__GENERATION_SHIFT) < reached[tw__entry_slot(entries[i])];
		verdicts[i] = dead ? TW__VERDICT_DEAD : low;
	}
	if (tw_unlikely(tw_load_relaxed(&service->slots.noted)))
		for (unsigned i = 0; i < n; i++)
			if (verdicts[i] != TW__VERDICT_DEAD && is_elsewhere(service, low, high, entries[i]))
				verdicts[i] = TW__VERDICT_DEAD;
}

void tw__judge(void *context, enum tw__judge_for what_for, uint64_t low, uint64_t high, const tw__wheel_entry *entries,
	       unsigned n, uint64_t *verdicts)
{
	tw_service *service = context;
	if (what_for == TW__JUDGE_SWEEP && service->sweep_by != TW__SWEEP_BY_WORDS) {
		judge_sweep(service, low, high, entries, n, verdicts);
		return;
	}
	const _Atomic uint64_t *words = service->slots.words;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch((const void *)&words[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++)
		verdicts[i] = judge_entry(service, what_for, low, high, entries[i]);
}

void tw__note_far(tw_service *service, uint32_t slot, uint32_t generation, uint64_t far_tick)
{
	struct tw__note *note = &service->slots.notes[slot];
	if (note->generation != generation) {
		note->generation = generation;
		note->state = TW__NOTE_NONE;
	}
	tw_store_relaxed(&note->far_tick, far_tick);
	tw_store_relaxed(&service->slots.noted, true);
}

void tw__note_handed(tw_service *service, tw__wheel_entry entry)
{
	uint32_t slot = tw__entry_slot(entry), generation = (uint32_t)(entry >> TW__GENERATION_SHIFT);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	if (tw__word_armed(word) && word & (TW__FAR | TW__MULTI) &&
	    note_state(&service->slots.notes[slot], generation) != TW__NOTE_NONE)
		service->slots.notes[slot].state = TW__NOTE_HANDED;
}

void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick)
{
	if (tw_unlikely(word & (TW__FAR | TW__MULTI))) {
		struct tw__note *note = &service->slots.notes[slot];
		uint32_t generation = tw__word_generation(word);
		if (word & TW__FAR) {
			if (!far_known(note, word))
				return;
			uint64_t far_tick = tw_load_relaxed(&note->far_tick), first = service->wheel.next;
			tick = far_tick > reach(first) ? way_point(far_tick, first) : far_tick;
		}
		if (note_state(note, generation) == TW__NOTE_FILED && note->tick <= tick)
			return;
		note->generation = generation;
		note->state = TW__NOTE_FILED;
		note->tick = tick;
		tw_store_relaxed(&service->slots.noted, true);
	}
	tw__wheel_add(&service->wheel, tick, tw__entry_make(slot, tw__word_generation(word)));
	TW_PROBE4(file, service, slot, tw__word_generation(word), tick);
}
