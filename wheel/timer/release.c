/*
 * The last step of every timer: its release callback, then its word becomes free and its slot goes
 * back. The thread that ended the timer does it, and nobody else.
 */
#include "wheel/timer/release.h"

#include "wheel/core/context.h"
#include "wheel/core/wake.h"
#include "wheel/core/frame.h"
#include "wheel/core/user_code.h"
#include "wheel/timer/member.h"

/* The end of a timer that this thread owns: free at last, waiters told, slot recycled. */
void tw__set_free(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  uint32_t group)
{
	TW_ASSERT(slot > 0 && slot < service->slots.end);
	/* planted: generation_stays */
	uint64_t free_word = tw__word_make(generation + 1, TW__FREE, 0);
	/* WORD2, RUN5 */
	uint64_t word = tw__word_free_seq_cst(&service->slots.words[slot], free_word);
	tw__group_leave(service, group, slot);
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot, generation + 1);
	if (tw_unlikely(word & TW__WAITED))
		tw__ring_finish(service);
}

/* The timer's release under its context. */
static void release_call_release(tw_service *service, const struct tw__ext *ext, void *arg,
				 enum tw_fate fate)
{
	if (!ext->release)
		return;
	struct tw__run_record *shown = tw__user_begin(service, TW__NAMED_BY(ext->release), arg,
						      tw_load_relaxed(&ext->name), 0);
	void *former = tw__context_enter(ext->context);
	ext->release(arg, fate);
	tw__context_leave(former);
	tw__user_end(shown);
}

bool tw__release(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		 enum tw_fate fate)
{
	TW_ASSERT(tw__word_state(tw_load_relaxed(&service->slots.words[slot])) == TW__RELEASING);
	TW_ASSERT(tw__word_generation(tw_load_relaxed(&service->slots.words[slot])) == generation);
	struct tw__record *record = &service->slots.records[slot];
	uint32_t index = tw_load_relaxed(&record->ext), group = tw_load_relaxed(&record->group);
	struct tw__ext *ext = &service->slots.exts[index];
	bool calls = ext->release || ext->context;
	if (calls) {
		struct tw__run run = {.outer = tw__current_run,
				      .service = service,
				      .slot = slot,
				      .generation = generation,
				      .group = group,
				      .releasing = true};
		tw__current_run = &run;
		tw__group_count_run(service, group, 1);
		release_call_release(service, ext, tw_load_relaxed(&record->arg), fate);
		tw__group_count_run(service, group, -1);
		tw__current_run = run.outer;
		TW_ASSERT(!tw__forked(service)); /* a child ends inside the release (tickwheel.h) */
	}
	tw__set_free(service, local, slot, generation, group);
	if (index)
		tw__ext_put(&service->slots, local ? &local->exts : NULL, index);
	return calls;
}
