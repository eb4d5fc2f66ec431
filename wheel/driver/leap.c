/*
 * Leaps: the cursor goes on by TW__NEAR ticks or more since the last leap, perhaps in many turns.
 *
 * A near word has only 25 bits of its deadline, so it is read relative to the cursor (word.h). Before the cursor leaves the range
 * in which that reads right, the driver deals with each near word that was written since the last leap:
 *   1. It publishes that it leaps. From here on deadlines are written whole (LEAP1).
 *   2. Its heavy barrier. A call that has not seen 1 has published its word before the barrier. A bulk call that has not seen 1 has
 *      pinned its lane: the driver turns as far as it may without a leap, and tries again soon (LEAP2).
 *   3. It looks at all words. A near deadline that the new cursor would be too new for is kept whole. One that is past already, since its
 *      run waits for an executor, becomes the tick that is turned to.
 *   4. It turns the wheel.
 *   5. It publishes the new cursor.
 *
 * If membarrier is refused later than at creation, the driver leaps anyway: a store reaches other cores long before the clock has
 * gone on by a quarter of the range again.
 *
 * After step 3 the word of a run that waits may read as due later until step 5. A claim then gives its entry back, and a reset moves the
 * timer with or without an entry. Both are right, because the timer has an entry in hand.
 */
#include "wheel/driver/leap.h"

#include "wheel/core/ticks.h"
#include "wheel/driver/driver.h"

/* --------------------------------------------------------------------- the words */

/*
 * A near word that the new cursor would be too new for. One that was due already waits for an executor: it becomes the tick that is
 * turned to, so that a claim finds it due. One that comes due in this turn is kept whole.
 */
static void keep_word(tw_service *service, uint32_t slot, uint64_t target)
{
	struct tw__slots *slots = &service->slots;
	uint64_t word = tw_load_acquire(&slots->words[slot]), next = service->driver->wheel.next;
	bool done = false;
	while (!done && tw__word_armed(word) && !tw__word_beyond(word)) {
		uint64_t tick = tw__word_deadline(word, next);
		if (tw_likely(tick + TW__NEAR >= target))
			return;
		if (tick < next)
			done = tw__word_cas_acq_rel(&slots->words[slot], &word, tw__word_move(word, target));
		else
			done = tw__far_move(slots, slot, &word, tw__word_move_beyond(word), tick);
	}
}

/*
 * All words, not only those whose entries the driver has: the entry of a move to earlier may be in the hands of a thread that stands
 * still, while another thread has moved the timer to later and relies on it.
 */
static void keep_words(tw_service *service, uint64_t target)
{
	uint32_t end = tw_load_acquire(&service->slots.fresh);
	for (uint32_t slot = 1; slot < end; slot++)
		keep_word(service, slot, target);
}

/* ---------------------------------------------------------------------- the leap */

static bool any_pinned(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__gate_is_pinned(&lane->pinned)) /* LEAP2 */
			return true;
	return false;
}

uint64_t tw__leap_begin(tw_service *service, uint64_t target)
{
	TW_ASSERT_DRIVER(service);
	struct tw__driver *driver = service->driver;
	if (tw_likely(target < driver->leapt_tick + TW__NEAR))
		return target;
	tw_exchange_seq_cst(&service->gate.cursor, tw__cursor(service) | TW__LEAPING); /* LEAP1, LEAP2 */
	tw__gate_barrier(&service->gate);
	if (any_pinned(service))
		return driver->leapt_tick + TW__NEAR - 1;
	driver->leaps = true;
	keep_words(service, target);
	return target;
}

void tw__leap_end(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__driver *driver = service->driver;
	tw_store_release(&service->gate.cursor, tw__cursor(service));
	if (driver->leaps)
		driver->leapt_tick = tw__cursor(service);
	driver->leaps = false;
}
