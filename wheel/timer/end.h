/* The ends of timers that do not come from their own run. */
#ifndef TW_WHEEL_END_H
#define TW_WHEEL_END_H

#include "tickwheel/service.h"
#include "wheel/core/local.h"
#include "wheel/core/wake.h"

/*
 * Ends a timer whose word, armed or disarmed, is *word and says EXT. False: it has changed; *word
 * is what it is now. In two steps, for a caller that has something to do between them: the CAS, and
 * what follows from it.
 */
bool tw__end(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word,
	     enum tw_fate fate);
void tw__end_rest(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  enum tw_fate fate);

static inline bool tw__end_word(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint32_t traits = tw_load_relaxed(&tw__ext_of(&service->slots, slot)->traits);
	uint64_t ended = traits & TW__TRAIT_RELEASE
			     /* planted: released_while_running */
			     ? tw__word_make(tw__word_generation(*word), TW__RELEASING, 0)
			     : tw__word_next_free(*word);
	/* WORD2, WORD3 */
	return tw__word_cas_acq_rel(&service->slots.words[slot], word, ended);
}

/* The rest for a member without a release that its group's cancel has ended, and that has left. */
void tw__end_left(tw_service *service, struct tw__local *local, uint32_t slot);

/* Counts a timer that this thread has cancelled. */
static inline void tw__count_cancel(tw_service *service, struct tw__local *local)
{
	if (tw_unlikely(!local)) {
		tw_add_relaxed(&service->without_lane.cancelled, 1);
		return;
	}
	tw__magazine_count_cancelled(&local->magazine);
	if (tw_unlikely(tw_load_relaxed(&local->magazine.cancelled) % TW__CANCELS_PER_WAKE == 0))
		tw__wake(service); /* to sweep what cancels leave behind (G11) */
}

/*
 * What follows on the cancel of a timer that is nothing but fn and arg, or a member that has left,
 * and whose word was this, however rare. local may be NULL. TW_CANCELLED.
 */
int tw__cancelled_slowly(tw_service *service, struct tw__local *local, uint32_t slot,
			 uint64_t word);

/*
 * The same for the timer of this entry, in few steps if there is nothing to it: the next
 * compare-and-swap of this thread waits for each. The call to what is rare is at the end, so that
 * no register is saved across it.
 */
static inline __attribute__((always_inline)) int
tw__cancelled(tw_service *service, struct tw__local *local, uint64_t entry)
{
	if (tw_unlikely(!tw__magazine_has_room(&local->magazine) ||
			tw__entry_generation(entry) == TW__LAST_GENERATION - 1))
		return tw__cancelled_slowly(service, local, (uint32_t)entry, entry);
	tw__debug_poison(&service->slots, (uint32_t)entry);
	tw__magazine_cancel(&local->magazine, entry + TW__NEXT_GENERATION); /* planted: slot_lost */
	return TW_CANCELLED;
}

/* Counts the end of a timer whose fate this is. local may be NULL if it was not claimed. */
void tw__count_end(tw_service *service, struct tw__local *local, enum tw_fate fate);

/*
 * Ends an armed or disarmed timer as dropped. False: *word has changed.
 */
bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word);

#endif
