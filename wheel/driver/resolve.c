/*
 * What has become of an entry: the wheel asks, the control word answers (word.h, "Current entry").
 *
 *   not current, or its timer is not armed   dropped
 *   due in this bucket                       handed over, with the deadline in the word brought near if it is not
 *   due later, in this bucket                moves down with it
 *   due later than the bucket                filed again for the deadline; with a drawn seq, unless its seq is 0
 *
 * An entry is filed for a tick that is not after its timer's deadline, and a reset to earlier takes a new seq. So the deadline of
 * a current entry is not before its bucket. A stale entry that passes for a current one may meet a deadline before its bucket:
 * the timer has another entry, which is met in time.
 *
 * The base to read a near word by is wheel.next, the first tick that was not turned through. It is never older than the cursor of
 * the word's writer, and a leap deals with all near words before it is too new (leap.c). The bucket's own ticks are no base: a look
 * ahead, or a move down, may meet a bucket of months ahead.
 */
#include "wheel/core/service.h"
#include "wheel/base/probes.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/resolve.h"
#include "wheel/timer/reap_queue.h"
#include "wheel/timer/timing.h"

/* The verdict of a word that changed while it was looked at. */
#define LOOK_AGAIN (UINT64_MAX - 1)

static uint64_t draw_seq(tw_service *service)
{
	return tw__random_next(&service->driver->seq_random) % (TW__SEQS - 1) + 1;
}

/* Gives a current entry that is filed again its new seq. False: the word has changed; *word is what it is now. */
static bool renew(tw_service *service, uint64_t *word, tw__wheel_entry *entry)
{
	uint32_t slot = tw__entry_slot(*entry);
	if (!tw__word_seq(*word)) /* the only entry */
		return true;
	uint64_t renewed = tw__word_with_seq(*word, draw_seq(service));
	if (!tw__word_cas_acq_rel(&service->slots.words[slot], word, renewed))
		return false;
	*entry = tw__entry_of(renewed, slot); /* planted: seq_not_taken */
	return true;
}

/* For a word that is BEYOND_RANGE: its tick, under the lock that its resets take. What is due becomes near. */
static uint64_t resolve_beyond(tw_service *service, bool expires, const struct tw__place *place, uint64_t *word,
			       tw__wheel_entry *entry)
{
	struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(*entry);
	uint64_t seen = *word, target = service->driver->turning_to;
	_Atomic uint32_t *lock = tw__far_lock(slots, slot);
	uint64_t tick = tw_load_relaxed(&slots->far_ticks[slot]); /* WORD6 */
	*word = tw_load_acquire(&slots->words[slot]);
	bool same = *word == seen;
	if (same && tick >= place->high) /* planted: far_made_due */
		same = renew(service, word, entry);
	else if (same && expires)
		same = tw__word_cas_acq_rel(&slots->words[slot], word,
					    tw__word_move(*word, tick + TW__NEAR < target ? target : tick));
	tw__tiny_unlock(lock);
	return same ? tick : LOOK_AGAIN;
}

/* The same for a near word. One that was due long ago is kept within the range of the cursor that will be published. */
static uint64_t resolve_near(tw_service *service, bool expires, const struct tw__place *place, uint64_t *word,
			     tw__wheel_entry *entry)
{
	uint64_t tick = tw__word_deadline(*word, service->driver->wheel.next), target = service->driver->turning_to;
	if (tick >= place->high)
		return renew(service, word, entry) ? tick : LOOK_AGAIN;
	if (tw_likely(!expires || tick + TW__NEAR >= target))
		return tick;
	uint64_t moved = tw__word_move(*word, target);
	return tw__word_cas_acq_rel(&service->slots.words[tw__entry_slot(*entry)], word, moved) ? tick : LOOK_AGAIN;
}

static uint64_t resolve(tw_service *service, enum tw__judge_for what_for, const struct tw__place *place,
			tw__wheel_entry *entry)
{
	uint64_t word = tw_load_acquire(&service->slots.words[tw__entry_slot(*entry)]), verdict; /* WORD1 */
	bool expires = what_for == TW__JUDGE_EXPIRE;
	do {
		if (!tw__entry_is_current(*entry, word))
			return TW__VERDICT_DEAD;
		if (what_for == TW__JUDGE_SWEEP)
			return place->low;
		verdict = tw_unlikely(tw__word_beyond(word)) ? resolve_beyond(service, expires, place, &word, entry)
							     : resolve_near(service, expires, place, &word, entry);
	} while (tw_unlikely(verdict == LOOK_AGAIN));
	return verdict;
}

/* In such a sweep words are not read: what is written down of slots is the driver's own. */
static void resolve_sweep(const tw_service *service, const struct tw__place *place, const tw__wheel_entry *entries,
			  unsigned n, uint64_t *verdicts)
{
	const uint32_t *reached = service->slots.reached;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(&reached[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++) {
		bool dead = tw__entry_generation(entries[i]) < reached[tw__entry_slot(entries[i])];
		verdicts[i] = dead ? TW__VERDICT_DEAD : place->low;
	}
}

void tw__judge(void *context, enum tw__judge_for what_for, const struct tw__place *place, tw__wheel_entry *entries,
	       unsigned n, uint64_t *verdicts)
{
	tw_service *service = context;
	if (what_for == TW__JUDGE_SWEEP && service->driver->sweep.by != TW__SWEEP_BY_WORDS) {
		resolve_sweep(service, place, entries, n, verdicts);
		return;
	}
	const _Atomic uint64_t *words = service->slots.words;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch((const void *)&words[tw__entry_slot(entries[i])]);
	for (unsigned i = 0; i < n; i++)
		verdicts[i] = resolve(service, what_for, place, &entries[i]);
}

/* A new seq for an armed timer. *entry: its entry; *tick: what that is to be met by. False: the timer has ended. */
static bool renew_armed(tw_service *service, uint32_t slot, tw__wheel_entry *entry, uint64_t *tick)
{
	struct tw__slots *slots = &service->slots;
	uint64_t word = tw_load_acquire(&slots->words[slot]), renewed;
	do {
		if (!tw__word_armed(word))
			return false;
		renewed = tw__word_with_seq(word, draw_seq(service));
		*tick = tw__word_deadline(word, service->driver->wheel.next);
		/* A later far deadline may be written between these two; then the entry comes too early, and is filed again. */
		if (tw__word_beyond(word) && !tw__far_tick(slots, slot, &word, tick))
			continue;
		if (tw__word_cas_acq_rel(&slots->words[slot], &word, renewed))
			break;
	} while (true);
	*entry = tw__entry_of(renewed, slot);
	return true;
}

void tw__refile_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	tw_exchange_acquire(&service->overtaken, 0); /* LEAP3: before the words are looked at */
	uint32_t end = tw_load_acquire(&service->slots.fresh);
	tw__wheel_entry entry;
	uint64_t tick;
	for (uint32_t slot = 1; slot < end; slot++) {
		if (!renew_armed(service, slot, &entry, &tick))
			continue;
		if (tw_unlikely(tw__short_of_chunks(service)))
			tw__sweep_all(service);
		tw__file(service, entry, tick);
	}
}

void tw__file(tw_service *service, tw__wheel_entry entry, uint64_t tick)
{
	TW_ASSERT_DRIVER(service);
	tw__wheel_add(&service->driver->wheel, tick, entry);
	TW_PROBE4(file, service, tw__entry_slot(entry), tw__entry_generation(entry), tick);
}

void tw__refile(tw_service *service, tw__wheel_entry entry)
{
	struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry);
	if (!slot) {
		tw__group_offer_again(service, tw__entry_generation(entry));
		return;
	}
	uint64_t word = tw_load_acquire(&slots->words[slot]), tick;
	do {
		if (!tw__entry_is_current(entry, word))
			return;
		tick = tw__word_deadline(word, service->driver->wheel.next);
	} while (tw__word_beyond(word) && !tw__far_tick(slots, slot, &word, &tick));
	tw__file(service, entry, tick);
}
