/*
 * The ends of timers that do not come from their own run: cancelled, dropped. The thread that wins
 * the compare-and-swap of the word does all that follows, and no other thread does.
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

/* The word is free, and the timer no member. */
static void end_give_back(tw_service *service, struct tw__local *local, uint32_t slot,
			  uint32_t generation)
{
	uint32_t index = tw_load_relaxed(&service->slots.records[slot].ext);
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot, generation);
	if (index)
		tw__ext_put(&service->slots, local ? &local->exts : NULL, index);
}

void tw__end_rest(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  enum tw_fate fate)
{
	TW_ASSERT(slot > 0 && slot < service->slots.end);
	const struct tw__record *record = &service->slots.records[slot];
	const struct tw__ext *ext = tw__ext_of(&service->slots, slot);
	tw__count_end(service, local, fate);
	if (tw_load_relaxed(&ext->traits) & TW__TRAIT_RELEASE) {
		(void)tw__release(service, local, slot, generation, fate);
		return;
	}
	tw__group_leave(service, tw_load_relaxed(&record->group), slot);
	end_give_back(service, local, slot, generation + 1);
}

__attribute__((noinline)) int tw__cancelled_slowly(tw_service *service, struct tw__local *local,
						   uint32_t slot, uint64_t word)
{
	tw__count_cancel(service, local);
	if (local)
		tw__magazine_make_room(&service->slots, &local->magazine);
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot,
		     tw__word_generation(word) + 1);
	return TW_CANCELLED;
}

void tw__end_left(tw_service *service, struct tw__local *local, uint32_t slot)
{
	uint64_t word = tw_load_relaxed(&service->slots.words[slot]);
	TW_ASSERT(tw__word_state(word) == TW__FREE);
	if (tw_likely(local && !tw_load_relaxed(&service->slots.records[slot].ext))) {
		tw__cancelled(service, local, word - TW__NEXT_GENERATION + slot);
		return;
	}
	tw__count_end(service, local, TW_FATE_CANCELLED);
	end_give_back(service, local, slot, tw__word_generation(word));
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

bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint64_t armed = *word;
	struct tw__local *local = tw__local_of(service);
	if (tw__word_has_record(armed))
		return tw__end(service, local, slot, word, TW_FATE_DROPPED);
	if (!tw__word_cas_acq_rel(&service->slots.words[slot], word, tw__word_next_free(armed)))
		return false;
	tw__count_end(service, local, TW_FATE_DROPPED);
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot,
		     tw__word_generation(armed) + 1);
	return true;
}
