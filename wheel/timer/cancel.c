/*
 * The ends of timers that do not come from their own run: cancelled, dropped; and the last step of
 * every timer, its release. Calls the slots, the group's list, the finish bell and user code.
 *
 * An end is one compare-and-swap on the control word, anywhere between schedule and claim. Entries
 * left behind carry a generation that no longer matches. A timer with a release passes through
 * RELEASING: the generation moves only after the release has returned, so that no caller gets
 * "gone" while it runs.
 */
#include "wheel/timer/cancel.h"

#include <errno.h>

#include "mpsc/base/probes.h"
#include "wheel/core/frame.h"
#include "wheel/timer/group.h"

/* ------------------------------------------------------------------ the end */

void tw__count_end(tw_service *service, struct tw__local *local, enum tw_fate fate)
{
	bool cancelled = fate == TW_FATE_CANCELLED;
	if (tw_unlikely(!local)) {
		tw_add_relaxed(cancelled ? &service->without_lane.cancelled
					 : &service->without_lane.dropped,
			       1);
		return;
	}
	if (!cancelled) {
		tw_bump(fate == TW_FATE_DROPPED ? &local->dropped : &local->fired, 1);
		return;
	}
	tw__count_cancelled(service, local);
}

static inline void give_slot_back(tw_service *service, struct tw__local *local, uint32_t slot,
				  uint32_t generation)
{
	tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot, generation);
}

void tw__set_free(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		  uint32_t group)
{
	TW_ASSERT(slot > 0 && slot < service->slots.end);
	/* planted: generation_stays */
	uint64_t free_word = tw__word_make(generation + 1, TW__FREE, 0);
	/* WORD2, RUN5 */
	uint64_t word = tw__word_free_seq_cst(&service->slots.words[slot], free_word);
	tw__group_leave(service, group, slot);
	give_slot_back(service, local, slot, generation + 1);
	if (tw_unlikely(word & TW__WAITED))
		tw__ring_finish(service);
}

bool tw__release(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation,
		 enum tw_fate fate)
{
	TW_ASSERT(tw__word_state(tw_load_relaxed(&service->slots.words[slot])) == TW__RELEASING);
	TW_ASSERT(tw__word_generation(tw_load_relaxed(&service->slots.words[slot])) == generation);
	struct tw__record *record = &service->slots.records[slot];
	const struct tw__ext *ext = tw__ext_of(&service->slots, slot);
	uint32_t group = tw_load_relaxed(&record->group);
	tw_release_fn *release = ext->release;
	if (release) {
		void *arg = tw_load_relaxed(&record->arg);
		struct tw__run run = {.outer = tw__current_run,
				      .service = service,
				      .slot = slot,
				      .generation = generation,
				      .group = group,
				      .releasing = true};
		tw__current_run = &run;
		tw__group_count_run(service, group, 1);
		struct tw__run_record *shown = tw__user_begin(service, TW__NAMED_BY(release), arg,
							      tw_load_relaxed(&ext->name), 0);
		void *former = tw__context_enter(ext->context);
		release(arg, fate);
		tw__context_leave(former);
		tw__user_end(shown);
		tw__group_count_run(service, group, -1);
		tw__current_run = run.outer;
		TW_ASSERT(!tw__forked(service)); /* a child ends inside the release (tickwheel.h) */
	}
	tw__set_free(service, local, slot, generation, group);
	return release;
}

/* The fate of a timer that its schedule takes back, without its release. */
enum { RETRACTED = -1 };

/* Ends a timer that waits. False: *word has changed. */
static bool end(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word,
		int fate)
{
	struct tw__slots *slots = &service->slots;
	uint64_t was = *word, ended = fate == RETRACTED ? tw__word_next_free(was)
							: tw__word_ended(slots, slot, was);
	TW_ASSERT(slot > 0 && slot < slots->end);
	/* WORD2, WORD3 */
	if (tw_unlikely(!tw__word_cas_acq_rel(&slots->words[slot], word, ended)))
		return false;
	if (fate == RETRACTED)
		tw_bump(&local->magazine.scheduled, UINT64_MAX);
	else
		tw__count_end(service, local, (enum tw_fate)fate);
	if (tw_unlikely(tw__word_state(ended) == TW__RELEASING)) {
		(void)tw__release(service, local, slot, tw__word_generation(was),
				  (enum tw_fate)fate);
		return true;
	}
	if (was & TW__EXT)
		tw__group_leave(service, tw_load_relaxed(&slots->records[slot].group), slot);
	give_slot_back(service, local, slot, tw__word_generation(was) + 1);
	return true;
}

bool tw__drop(tw_service *service, uint32_t slot, uint64_t *word)
{
	return end(service, tw__local_of(service), slot, word, TW_FATE_DROPPED);
}

/* ------------------------------------------------------------------- cancel */

/* The word has changed. This is no outcome. */
enum { CANCEL_AGAIN = -1 };

/* Ends the timer, or puts the marks on its word. */
static int cancel_seen(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t *word,
		       uint64_t marks)
{
	uint32_t slot = (uint32_t)entry;
	if ((*word ^ entry) >> TW__GENERATION_SHIFT || tw__word_state(*word) == TW__FREE)
		return TW_GONE;
	if (tw_likely(tw__word_waits(*word)))
		return end(service, local, slot, word, TW_FATE_CANCELLED) ? TW_CANCELLED
									  : CANCEL_AGAIN;
	if (tw__word_state(*word) == TW__RELEASING)
		marks &= TW__WAITED; /* it ends already */
	bool done = (*word & marks) == marks ||
		    tw__word_cas_acq_rel(&service->slots.words[slot], word, *word | marks);
	return done ? TW_RUNNING : CANCEL_AGAIN;
}

/* Handles a timer that is more than fn and arg, or not armed. */
static __attribute__((noinline)) int cancel_slowly(tw_service *service, struct tw__local *local,
						   uint64_t entry, uint64_t marks)
{
	uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
	int outcome;
	if (tw_unlikely(!local))
		local = tw__local_of(service);
	do {
		outcome = cancel_seen(service, local, entry, &word, marks);
	} while (tw_unlikely(outcome == CANCEL_AGAIN));
	TW_PROBE4(cancel, service, (uint32_t)entry, tw__entry_generation(entry), outcome);
	return outcome;
}

/* local may be NULL. One probe for both ways would keep its arguments alive too long. */
static inline __attribute__((always_inline)) int
cancel_with(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t marks)
{
	uint64_t slot = (uint32_t)entry, generation_bits = entry - slot, word;
	_Atomic uint64_t *at = &service->slots.words[slot];
	word = tw_load_acquire(at);
	if (tw_likely(local && tw__word_is_plain(word, generation_bits)) &&
	    /* WORD2, WORD3 */
	    /* planted: same_generation */
	    tw_likely(tw__word_cas_acq_rel(at, &word, generation_bits + TW__NEXT_GENERATION))) {
		TW_PROBE4(cancel, service, slot, tw__entry_generation(entry), TW_CANCELLED);
		uint32_t next = tw__entry_generation(entry) + 1;
		give_slot_back(service, local, (uint32_t)slot, next); /* planted: slot_lost */
		tw__count_cancelled(service, local);
		return TW_CANCELLED;
	}
	return cancel_slowly(service, local, entry, marks);
}

int tw_cancel(tw_service *service, tw_timer timer)
{
	uint64_t entry;
	if (tw_unlikely(!service))
		return tw__invalid("service is NULL");
	struct tw__local *local = tw__local_at_hand(service);
	if (tw_unlikely(!local && tw__forked(service)))
		return -EPERM;
	if (tw_unlikely(!tw__handle_entry(&service->slots, timer, &entry)))
		return TW_GONE;
	return cancel_with(service, local, entry, TW__ENDED);
}

void tw__cancel_entry(tw_service *service, uint64_t entry)
{
	uint64_t word;
	int outcome;
	do {
		/* a promise is taken back */
		(void)tw__entry_is_armed(&service->slots, entry, &word);
		if (tw__word_disarmed(word)) /* planted: disarmed_ended */
			return;
		outcome = cancel_seen(service, tw__local_of(service), entry, &word, TW__ENDED);
	} while (outcome == CANCEL_AGAIN);
	TW_PROBE4(cancel, service, (uint32_t)entry, tw__entry_generation(entry), outcome);
}

tw_cold bool tw__retract(tw_service *service, uint64_t entry)
{
	uint32_t slot = (uint32_t)entry;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD1, WORD4 */
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_waits(word))
			return false;
	} while (!end(service, tw__local_of(service), slot, &word, RETRACTED));
	return true;
}

/* ------------------------------------------------------------- cancel and wait */

/* In its own callback or release, however deep. */
static bool is_own(const tw_service *service, uint64_t entry)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->slot == (uint32_t)entry &&
		    run->generation == tw__entry_generation(entry))
			return true;
	return false;
}

/* This thread will call its release when the innermost one has returned. */
static bool is_owed_here(const tw_service *service, uint32_t slot)
{
	for (const struct tw__run *run = tw__current_run; run; run = run->outer)
		for (uint32_t owed = run->service == service ? run->owed : 0; owed;
		     owed = service->slots.links[owed].owed)
			if (owed == slot)
				return true;
	return false;
}

/* Until the generation has moved on. The word is WAITED, so the thread that ends it rings. */
static int wait_for_end(tw_service *service, uint64_t entry, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t bell = tw_load_acquire(&service->finish_bell); /* RUN5 */
		/* WORD2, RUN5 */
		uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
		if ((word ^ entry) >> TW__GENERATION_SHIFT)
			return TW_FINISHED;
		if (!tw__futex_wait(&service->finish_bell, bell, deadline_ns))
			return TW_RUNNING;
	}
}

int tw_cancel_wait(tw_service *service, tw_timer timer, uint64_t timeout_ns)
{
	uint64_t entry;
	int r = tw__service_check(service);
	if (r)
		return r;
	if (!tw__handle_entry(&service->slots, timer, &entry))
		return TW_GONE;
	bool own = is_own(service, entry);
	int outcome = cancel_with(service, tw__local_at_hand(service), entry,
				  own ? TW__ENDED : TW__ENDED | TW__WAITED);
	if (outcome != TW_RUNNING)
		return outcome;
	if (own)
		return TW_SELF;
	if (tw_unlikely(is_owed_here(service, (uint32_t)entry)))
		return tw__waits_inside(__func__);
	return wait_for_end(service, entry, tw__deadline_in(timeout_ns));
}

/* ------------------------------------------------------------------- a look */

static int remaining(tw_service *service, tw_timer timer, uint64_t *out_ns)
{
	uint64_t entry, tick, cursor;
	if (!tw__handle_entry(&service->slots, timer, &entry))
		return -ENOENT;
	uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return -ENOENT;
		cursor = tw_load_relaxed(&service->gate.cursor);
	} while (!tw__deadline_read(&service->slots, (uint32_t)entry, &word, cursor, &tick));
	uint64_t due_ns = tw__tick_ns(service, tick), now_ns = tw__clock_read(service);
	*out_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	return 0;
}

int tw_remaining(tw_service *service, tw_timer timer, uint64_t *out_ns)
{
	int r = out_ns ? tw__service_check(service) : tw__invalid("out_ns is NULL");
	return r ? r : remaining(service, timer, out_ns);
}

bool tw_is_pending(tw_service *service, tw_timer timer)
{
	uint64_t unused;
	return tw__service_check(service) == 0 && remaining(service, timer, &unused) == 0;
}
