/*
 * What has become of an entry: the wheel asks, the control word answers.
 *
 * A timer has one entry at a time, in a lane, in the wheel or in a batch, unless it is MULTI: then a reset to earlier, or far, has
 * pushed another one, and the driver keeps a **note** {generation, tick}: the tick for which the entry that counts stands in
 * the wheel. Refile rule for MULTI words:
 *   - an entry from a lane is dropped if there is a note not later than what it asks for, else filed, and noted;
 *   - an entry met in a bucket that is not the noted one is dropped: the noted one, or an entry still in a lane, covers it;
 *   - in the noted bucket, or without a note, it counts: handed over (the note goes), or filed again (the note moves).
 * Invariant: an armed MULTI timer has an entry in the noted bucket, or in a lane, or in a batch, that will be met no later
 * than its deadline. Without the rule, a timer toggled between 5 s and 60 s would collect entries for ever.
 *
 * A FAR word holds only the low bits of its deadline; the note holds all of it once the lane entry that brought it is drained.
 * Far entries stand in the wheel at way points, less than TW__WHEEL_REACH ahead.
 *
 * Rejected: looking for the old entry to remove it (a search in a bucket for each reset).
 */
#include "wheel/core.h"

static uint64_t at_least(uint64_t tick, uint64_t low)
{
	return tick > low ? tick : low;
}

static bool noted(const struct tw__note *note, uint32_t generation)
{
	return note->filed && note->generation == generation;
}

/* The note knows the whole of this FAR word's deadline. */
static bool far_known(const struct tw__note *note, uint64_t word)
{
	return note->generation == tw__word_generation(word) &&
	       ((tw_load_relaxed(&note->far_tick) ^ word) & TW__DEADLINE_MASK) == 0;
}

/* Where a far entry stands meanwhile. */
static uint64_t way_point(const tw_service *service, uint64_t far_tick)
{
	uint64_t tick = service->wheel.next + TW__WHEEL_REACH / 2;
	return tick < far_tick ? tick : far_tick;
}

/*
 * Clears FAR if the deadline has come near. False: the entry that brings the deadline is still in a lane, and will be filed; or the
 * timer is gone.
 */
static bool approach(tw_service *service, struct tw__note *note, uint32_t slot, uint64_t *word)
{
	uint32_t generation = tw__word_generation(*word);
	while (*word & TW__FAR) {
		if (!far_known(note, *word)) {
			note->filed = 0;
			return false;
		}
		if (tw_load_relaxed(&note->far_tick) >= service->wheel.next + TW__WHEEL_REACH - 1)
			return true;
		if (tw_cas_acq_rel(&service->slots.words[slot], word, *word & ~TW__FAR))
			*word &= ~TW__FAR;
		if (tw__word_generation(*word) != generation || !tw__word_armed(*word))
			return false;
	}
	return true;
}

/* The verdict for a FAR or MULTI word in the bucket [low, high). */
static uint64_t judge_noted(tw_service *service, enum tw__judge_for what_for, uint64_t low, uint64_t high,
			    uint32_t slot, uint64_t word)
{
	struct tw__note *note = &service->slots.notes[slot];
	uint32_t generation = tw__word_generation(word);
	bool is_noted = noted(note, generation);
	if (is_noted && (note->tick < low || note->tick >= high))
		return TW__VERDICT_DEAD;
	if (what_for == TW__JUDGE_SWEEP)
		return low;
	if (!approach(service, note, slot, &word))
		return TW__VERDICT_DEAD;
	uint64_t tick;
	if (!(word & TW__FAR))
		tick = tw__word_deadline(word, service->wheel.next);
	else if (what_for == TW__JUDGE_EXPIRE)
		tick = way_point(service, tw_load_relaxed(&note->far_tick));
	else
		tick = is_noted ? note->tick : low;
	if (what_for == TW__JUDGE_MOVE)
		tick = at_least(tick, low);
	note->generation = generation;
	note->filed = what_for == TW__JUDGE_MOVE || tick >= high;
	note->tick = tick;
	return tick;
}

void tw__judge(void *context, enum tw__judge_for what_for, uint64_t low, uint64_t high, const tw__wheel_entry *entries,
	       unsigned n, uint64_t *verdicts)
{
	tw_service *service = context;
	const _Atomic uint64_t *words = service->slots.words;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch((const void *)&words[tw__entry_slot(entries[i])]);
	uint64_t base = service->wheel.next;
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = tw__entry_slot(entries[i]);
		uint64_t word = tw_load_acquire(&words[slot]);
		if ((word ^ entries[i]) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			verdicts[i] = TW__VERDICT_DEAD;
		else if (tw_unlikely(word & (TW__FAR | TW__MULTI)))
			verdicts[i] = judge_noted(service, what_for, low, high, slot, word);
		else
			verdicts[i] = at_least(tw__word_deadline(word, base), low);
	}
}

void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick)
{
	if (tw_unlikely(word & (TW__FAR | TW__MULTI))) {
		struct tw__note *note = &service->slots.notes[slot];
		uint32_t generation = tw__word_generation(word);
		if (word & TW__FAR) {
			if (!far_known(note, word))
				return;
			tick = way_point(service, tw_load_relaxed(&note->far_tick));
		}
		if (noted(note, generation) && note->tick <= tick)
			return;
		note->generation = generation;
		note->filed = 1;
		note->tick = tick;
	}
	tw__wheel_add(&service->wheel, tick, tw__entry_make(slot, tw__word_generation(word)));
}
