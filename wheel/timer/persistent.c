/*
 * Persistent timers: disarmed, and armed again, with one handle.
 *
 * Disarming is one compare-and-swap. The entry stays where it is, and the deadline bits say by when
 * it is met at the latest (FILED). Arming for that tick or later is one compare-and-swap, too. An
 * arming for an earlier tick also queues an entry, and so does one after the entry was met.
 *
 * Linearisation: the compare-and-swap. Lock-free, except for an arming during the run, which holds
 * the slot's far lock for a few stores.
 *
 * Rejected: an entry for each arming. A connection that is armed a thousand times a second would
 * fill its lane, and the driver would drop as many.
 */
#include "wheel/timer/persistent.h"

#include "wheel/core/local.h"
#include "wheel/core/ticks.h"
#include "wheel/core/wake.h"
#include "wheel/timer/end.h"
#include "wheel/timer/reset.h"

/* ---------------------------------------------------------------------- arm */

/*
 * For the promised entry's tick or later that entry will do. Else another one is queued.
 */
static int arm(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick)
{
	/* any past value will do: it only grows */
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	uint64_t armed = tw__word_arm(*word, tw__tick_bits(tick, cursor));
	bool promised = tw__word_filed(*word);
	/* planted: promise_too_late */
	if (promised && tick >= tw__word_deadline(*word, cursor))
		return tw__deadline_move(&service->slots, slot, word, 0, armed, tick)
			   ? tw__count_reset(service, false)
			   : TW__RESET_AGAIN;
	int r = tw__move_with_entry(service, slot, word, 0, armed | (promised ? TW__RELOCATED : 0),
				    tick);
	if (r <= 0)
		return r ? r : TW__RESET_AGAIN;
	tw__wake_for_back(service, tw__entry_make(slot, tw__word_generation(armed)), tick);
	return tw__count_reset(service, true);
}

/* While it runs: it is armed when its callback has returned (run/series.c). */
static int rearm(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick,
		 bool only_earlier)
{
	bool kept;
	if (*word & TW__ENDED)
		return -ECANCELED;
	if (*word & TW__BARRED)
		return -ESHUTDOWN;
	if (!tw__far_rearm(&service->slots, slot, word, tick, only_earlier, &kept))
		return TW__RESET_AGAIN;
	return kept ? TW_RESET_KEPT : tw__count_reset(service, false);
}

int tw__persistent_reset(tw_service *service, uint32_t slot, uint64_t *word, uint64_t tick,
			 bool only_earlier)
{
	return tw__word_disarmed(*word) ? arm(service, slot, word, tick)
					: rearm(service, slot, word, tick, only_earlier);
}

/* ------------------------------------------------------------------- disarm */

static int not_persistent(void)
{
	return tw__refuse(-EINVAL, "tw_disarm",
			  "the timer is not persistent: schedule it with TW_TASK_PERSISTENT");
}

/* Armed or disarmed. An outcome, an errno, or TW__RESET_AGAIN. */
static int disarm_waiting(tw_service *service, uint32_t slot, uint64_t *word)
{
	if (tw__word_disarmed(*word))
		return TW_DISARMED;
	if (!(*word & TW__PERSISTENT))
		return not_persistent();
	return tw__word_cas_acq_rel(&service->slots.words[slot], word, tw__word_disarm(*word))
		   ? TW_CANCELLED
		   : TW__RESET_AGAIN;
}

/* By what the word says by now. */
static __attribute__((noinline)) int disarm_by_state(tw_service *service, uint64_t entry)
{
	uint32_t slot = (uint32_t)entry;
	_Atomic uint64_t *at = &service->slots.words[slot];
	uint64_t word = tw_load_acquire(at);
	for (;;) {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || tw__word_state(word) == TW__FREE)
			return TW_GONE;
		if (tw__word_waits(word)) {
			int r = disarm_waiting(service, slot, &word);
			if (r != TW__RESET_AGAIN)
				return r;
			continue;
		}
		if (tw__word_state(word) == TW__RELEASING)
			return TW_RUNNING;
		if (!(word & TW__HAS_PERSISTENT))
			return not_persistent();
		/* planted: disarm_lost */
		if (!(word & TW__REARMED) || tw__word_cas_acq_rel(at, &word, word & ~TW__REARMED))
			return TW_RUNNING;
	}
}

int tw_disarm(tw_service *service, tw_timer timer)
{
	uint64_t entry;
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	if (tw_unlikely(!tw__local_at_hand(service) && tw__forked(service)))
		return -EPERM;
	if (tw_unlikely(!tw__handle_entry(&service->slots, timer, &entry)))
		return TW_GONE;
	_Atomic uint64_t *at = &service->slots.words[(uint32_t)entry];
	uint64_t word = tw_load_acquire(at);
	if (tw_likely(tw__word_is_plain_and_persistent(word, entry)) &&
	    /* planted: disarm_by_store */
	    tw_likely(tw__word_cas_acq_rel(at, &word, tw__word_disarm_plain(word)))) /* WORD2 */
		return TW_CANCELLED;
	return disarm_by_state(service, entry);
}
