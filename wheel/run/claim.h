/* The compare-and-swap that claims a run. */
#ifndef TW_WHEEL_CLAIM_H
#define TW_WHEEL_CLAIM_H

#include "wheel/core/service.h"

/* What a claim learns. */
struct tw__claimed {
	uint64_t marks;      /* of the running word */
	uint64_t nominal_ns; /* with TW__TRAIT_MOVES */
};

/*
 * The claim's compare-and-swap. The run keeps the instant that its timer has at this moment. A
 * persistent timer that is armed again during its run has another one. So the instant is read with
 * the word, under the lock under which resets write both (slots.h).
 */
static inline bool tw__claim_word(tw_service *service, uint32_t slot, uint64_t *word,
				  uint64_t running, struct tw__claimed *claimed)
{
	_Atomic uint64_t *at = &service->slots.words[slot];
	if (tw_likely(!(*word & TW__EXT)) ||
	    !(tw__traits_of(&service->slots, slot) & TW__TRAIT_MOVES))
		return tw__word_cas_acq_rel(at, word, running);
	pthread_mutex_t *lock = tw__ext_lock(&service->slots, slot);
	bool won = tw__word_cas_acq_rel(at, word, running);
	if (won)
		claimed->nominal_ns = tw__ext_of(&service->slots, slot)->nominal_ns;
	pthread_mutex_unlock(lock);
	return won;
}

#endif
