/*
 * A near word that was written by a cursor of before a leap, and published during the leap or after it (word.h, LEAP1).
 *
 * Others read such a word as later than it is, never as earlier. So the timer does not run early, but its entry may be filed for too
 * late a tick, and a move by another thread may rely on that entry. The writer, which alone knows what it wrote, makes the word
 * BEYOND_RANGE: that reads right by any cursor. Then the driver gives each timer a new entry, for which no lane needs room.
 *
 * It takes a thread that stands still between two instructions while the clock leaps, so what it costs does not matter.
 */
#include "wheel/timer/whole.h"

#include "wheel/core/wake.h"

/* Another leap may have kept the word whole, by a reading that is too late by a multiple of the range. */
static bool was_kept_too_late(struct tw__slots *slots, uint32_t slot, uint64_t word, uint64_t written, uint64_t tick)
{
	bool same_timer = (word ^ written) >> TW__GENERATION_SHIFT == 0;
	uint64_t kept_tick = tw_load_relaxed(&slots->far_ticks[slot]); /* WORD6 */
	return same_timer && tw__word_beyond(word) && ((kept_tick ^ tick) & TW__DEADLINE_MASK) == 0;
}

__attribute__((cold)) void tw__write_whole(tw_service *service, uint32_t slot, uint64_t written, uint64_t tick)
{
	struct tw__slots *slots = &service->slots;
	bool done = false;
	_Atomic uint32_t *lock = tw__far_lock(slots, slot);
	uint64_t word = tw_load_acquire(&slots->words[slot]);
	while (!done && tw__word_is_same_near(word, written) && !((word ^ written) & TW__DEADLINE_MASK))
		done = tw__word_cas_acq_rel(&slots->words[slot], &word, tw__word_move_beyond(word));
	if (done || was_kept_too_late(slots, slot, word, written, tick))
		tw__far_write(slots, slot, tick); /* WORD6 */
	tw__tiny_unlock(lock);
	tw_store_seq_cst(&service->overtaken, 1); /* LEAP3 */
	tw__wake(service);
}
