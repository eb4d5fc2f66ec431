/* The ends of timers, and what is to be seen of one that has not ended. */
#ifndef TW_WHEEL_CANCEL_H
#define TW_WHEEL_CANCEL_H

#include "tickwheel/service.h"
#include "wheel/core/service.h"
#include "wheel/core/wake.h"

/*
 * The word after the end of a timer that waits: RELEASING, if it has a release: then the winner
 * calls tw__release. Else free (WORD2, WORD3).
 */
static inline uint64_t tw__word_ended(const struct tw__slots *slots, uint32_t slot, uint64_t word)
{
	return tw_unlikely(word & TW__EXT) &&
		       tw_load_relaxed(&tw__ext_of(slots, slot)->traits) & TW__TRAIT_RELEASE
		   /* planted: released_while_running */
		   ? tw__word_make(tw__word_generation(word), TW__RELEASING, 0)
		   : tw__word_next_free(word);
}

/* local may be NULL if the timer was not claimed. */
void tw__count_end(tw_service *service, struct tw__local *local, enum tw_fate fate);

static inline __attribute__((always_inline)) void tw__count_cancelled(tw_service *service,
								      struct tw__local *local)
{
	tw_bump(&local->magazine.cancelled, 1);
	if (tw_unlikely(tw_load_relaxed(&local->magazine.cancelled) % TW__CANCELS_PER_WAKE == 0))
		tw__wake_to_sweep(service);
}

/*
 * Frees the word of this thread's timer, which leaves its group (an index, or 0); its slot goes
 * back, waiters wake. local: or NULL.
 */
void tw__set_free(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  uint32_t group);

/*
 * The last step of a timer that is RELEASING, by the thread that ended it. local: or NULL. True:
 * user code has run.
 */
bool tw__release(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		 enum tw_fate fate);

/* Ends an armed or disarmed timer as dropped. False: *word has changed. */
bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word);

/*
 * A batch whose executor is gone drops this entry: its timer is cancelled. A disarmed timer stays,
 * without the promise.
 */
void tw__cancel_entry(tw_service *service, uint64_t entry);

/*
 * A schedule takes its timer back, uncounted and without a release. False: it has ended otherwise.
 */
bool tw__retract(tw_service *service, uint64_t entry);

#endif
