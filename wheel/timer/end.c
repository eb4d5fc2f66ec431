/*
 * The ends of timers that do not come from their own run: cancelled, dropped, reaped with their
 * group. The thread that wins the compare-and-swap of the word does all that follows, and no other
 * thread does.
 *
 * A timer with a release passes through RELEASING: the generation moves only after the release has
 * returned, so that no caller gets "gone" while it runs. Without one the word is free immediately,
 * like that of a timer without extension record.
 */
#include "wheel/timer/end.h"

#include "wheel/core/frame.h"
#include "wheel/timer/member.h"
#include "wheel/timer/release.h"

void tw__count_end(tw_service *service, struct tw__local *local, enum tw_fate fate)
{
	if (fate == TW_FATE_CANCELLED)
		tw__count_cancel(service, local);
	else if (tw_unlikely(!local))
		tw_add_relaxed(&service->without_lane.dropped, 1);
	else
		tw_bump(fate == TW_FATE_DROPPED ? &local->dropped : &local->fired, 1);
}

bool tw__end_word(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint32_t traits = tw_load_relaxed(&tw__ext_of(&service->slots, slot)->traits);
	uint64_t ended = traits & TW__TRAIT_RELEASE
			     /* planted: released_while_running */
			     ? tw__word_make(tw__word_generation(*word), TW__RELEASING, 0)
			     : tw__word_next_free(*word);
	/* WORD2, WORD3; group.h, GROUP9 */
	return tw__word_cas_seq_cst(&service->slots.words[slot], word, ended);
}

void tw__end_rest(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  enum tw_fate fate)
{
	TW_ASSERT(slot > 0 && slot < service->slots.end);
	uint32_t index = tw_load_relaxed(&service->slots.records[slot].ext);
	uint32_t traits = tw_load_relaxed(&service->slots.exts[index].traits);
	tw__count_end(service, local, fate);
	if (traits & TW__TRAIT_RELEASE) {
		(void)tw__release(service, local, slot, generation, fate);
		return;
	}
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot, generation + 1);
	tw__ext_give_back(service, local, index, fate == TW_FATE_CANCELLED);
}

bool tw__end(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word,
	     enum tw_fate fate)
{
	uint32_t generation = tw__word_generation(*word);
	if (!tw__end_word(service, slot, word))
		return false;
	tw__end_rest(service, local, slot, generation, fate);
	return true;
}

void tw__end_cancelled(tw_service *service, struct tw__local *local, uint32_t slot,
		       uint32_t generation)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	while (tw__word_generation(word) == generation && tw__is_cancelled(service, slot, word) &&
	       !tw__end(service, local, slot, &word, TW_FATE_CANCELLED)) {
	}
}

int tw__cancel_ext(tw_service *service, uint32_t slot, uint64_t *word, bool end_cancelled)
{
	bool cancelled = tw__is_cancelled(service, slot, *word);
	if (!cancelled || end_cancelled) {
		if (!tw__end(service, tw__local_of(service), slot, word, TW_FATE_CANCELLED))
			return -1;
		return cancelled ? TW_GONE : TW_CANCELLED;
	}
	if (tw__word_state(*word) == TW__CANCEL_PENDING)
		return TW_GONE;
	uint64_t pending = tw__word_make(tw__word_generation(*word), TW__CANCEL_PENDING, 0);
	/* group.h, GROUP1 */
	return tw__word_cas_acq_rel(&service->slots.words[slot], word, pending) ? TW_GONE : -1;
}

bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint64_t armed = *word;
	struct tw__local *local = tw__local_of(service);
	if (tw__word_has_record(armed)) {
		bool cancelled = tw__is_cancelled(service, slot, armed);
		return tw__end(service, local, slot, word,
			       cancelled ? TW_FATE_CANCELLED : TW_FATE_DROPPED);
	}
	if (!tw__word_cas_acq_rel(&service->slots.words[slot], word, tw__word_next_free(armed)))
		return false;
	tw__count_end(service, local, TW_FATE_DROPPED);
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot,
		     tw__word_generation(armed) + 1);
	return true;
}
