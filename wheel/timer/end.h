/* The ends of timers that do not come from their own run. */
#ifndef TW_WHEEL_END_H
#define TW_WHEEL_END_H

#include "tickwheel/service.h"
#include "wheel/core/local.h"
#include "wheel/core/wake.h"

/*
 * Whether an armed word's timer belongs to a group that was cancelled. Only a CAS of that word
 * makes it certain (group.h, GROUP1).
 */
static inline bool tw__member_is_stale(const tw_service *service, uint32_t slot)
{
	return tw__tag_is_stale(&service->groups,
				tw_load_relaxed(&tw__ext_of(&service->slots, slot)->tag));
}

/*
 * The timer counts as cancelled but no thread has ended it yet: armed or disarmed in a cancelled
 * group, or CANCEL_PENDING.
 */
static inline bool tw__is_cancelled(const tw_service *service, uint32_t slot, uint64_t word)
{
	return tw__word_state(word) == TW__CANCEL_PENDING ||
	       (tw__word_waits_with_ext(word) && tw__member_is_stale(service, slot));
}

/*
 * Ends a timer with an extension record, whose word, armed, disarmed or CANCEL_PENDING, is *word.
 * False: it has changed; *word is what it is now. In two steps, for a caller that has something to
 * do between them: the CAS, and what follows from it.
 */
bool tw__end(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word,
	     enum tw_fate fate);
bool tw__end_word(tw_service *service, uint32_t slot, uint64_t *word);
void tw__end_rest(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  enum tw_fate fate);

/* Ends a timer as cancelled if its group was, unless somebody else does. */
void tw__end_cancelled(tw_service *service, struct tw__local *local, uint32_t slot,
		       uint32_t generation);

/*
 * Cancels an armed, disarmed or CANCEL_PENDING timer with an extension record: an enum tw_outcome,
 * or -1: *word has changed.
 */
int tw__cancel_ext(tw_service *service, uint32_t slot, uint64_t *word, bool end_cancelled);

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

/* Counts the end of a timer whose fate this is. local may be NULL if it was not claimed. */
void tw__count_end(tw_service *service, struct tw__local *local, enum tw_fate fate);

/*
 * Ends an armed or disarmed timer as dropped (as cancelled, if its group was). False: *word has
 * changed.
 */
bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word);

#endif
