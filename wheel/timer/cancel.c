/*
 * Cancelling: one compare-and-swap on the control word, anywhere between schedule and claim. The
 * winner owns the slot immediately; entries left behind carry a generation that no longer matches.
 * Nothing is unlinked.
 *
 * The compare-and-swap fails only if another thread changed the timer. A slot goes back to the
 * thread's magazine; of every 128th or so, the depot's lock is taken for a moment. Timers with a
 * extension record: end.c.
 */
#include <errno.h>

#include "wheel/timer/member.h"
#include "mpsc/base/probes.h"
#include "wheel/timer/schedule.h"
#include "wheel/core/frame.h"
#include "wheel/timer/cancel.h"
#include "wheel/timer/end.h"

/*
 * Sets marks on the word of a running or releasing timer. False: it has moved on; *word is what it
 * is now.
 */
static bool mark(tw_service *service, uint32_t slot, uint64_t *word, uint64_t marks)
{
	if (tw__word_state(*word) == TW__RELEASING)
		marks &= TW__WAITED; /* it ends already */
	if ((*word & marks) == marks)
		return true;
	uint64_t marked = *word | marks;
	if (!tw__word_cas_acq_rel(&service->slots.words[slot], word, marked))
		return false;
	*word = marked;
	return true;
}

/*
 * Each end has its own probe, where the arguments are in registers:
 * one probe for all ends would keep them alive past the end.
 */
static inline int told(const tw_service *service, uint32_t slot, uint32_t generation, int outcome)
{
	TW_PROBE4(cancel, service, slot, generation, outcome);
	return outcome;
}

/*
 * One compare-and-swap of *word, of a timer that has not ended: an enum tw_outcome, or -1: the word
 * has changed; *word is what it is now.
 */
static inline int cancel_or_mark_seen(tw_service *service, uint32_t slot, uint64_t *word,
				      uint64_t marks)
{
	uint64_t seen = *word;
	if (tw__word_waits(seen) && !(seen & TW__EXT)) {
		if (!tw__word_cas_acq_rel(&service->slots.words[slot], word,
					  tw__word_next_free(seen))) /* WORD2, WORD3 */
			return -1;
		return tw__cancelled_slowly(service, tw__local_of(service), slot, seen);
	}
	if (tw__word_waits(seen))
		return tw__end(service, tw__local_of(service), slot, word, TW_FATE_CANCELLED)
			   ? TW_CANCELLED
			   : -1;
	return mark(service, slot, word, marks) ? TW_RUNNING : -1;
}

/* The timer of this generation has ended, or never was. */
static inline bool has_ended(uint64_t word, uint32_t generation)
{
	return tw__word_generation(word) != generation || tw__word_state(word) == TW__FREE;
}

/* By what the word says by now. */
static __attribute__((noinline)) int cancel_or_mark_by_state(tw_service *service, uint32_t slot,
							     uint32_t generation, uint64_t marks)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	while (!has_ended(word, generation)) {
		int outcome = cancel_or_mark_seen(service, slot, &word, marks);
		if (outcome >= 0)
			return told(service, slot, generation, outcome);
	}
	return told(service, slot, generation, TW_GONE);
}

void tw__cancel_entry(tw_service *service, uint64_t entry)
{
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD1, WORD4 */
	while (!has_ended(word, generation)) {
		if (tw__word_filed(word)) {
			tw__unfile(&service->slots, slot, &word);
			continue;
		}
		if (tw__word_disarmed(word)) /* planted: disarmed_ended */
			return;
		int outcome = cancel_or_mark_seen(service, slot, &word, TW__ENDED);
		if (outcome >= 0) {
			told(service, slot, generation, outcome);
			return;
		}
	}
}

bool tw__cancel_silently(tw_service *service, tw_timer timer)
{
	uint64_t entry;
	if (!tw__handle_entry(&service->slots, timer, &entry))
		return false;
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD1, WORD4 */
	while (tw__word_generation(word) == generation && tw__word_waits(word)) {
		if (!tw__end_word(service, slot, &word))
			continue;
		tw__ext_of(&service->slots, slot)->release = NULL; /* RELEASING: it is ours */
		tw__end_rest(service, tw__local_of(service), slot, generation, TW_FATE_CANCELLED);
		told(service, slot, generation, TW_CANCELLED);
		return true;
	}
	return false;
}

/*
 * Ends an armed member without an extension record: made short for who cancels members again and
 * again. False: it is not such a one, or has just changed.
 */
static inline bool cancel_member(tw_service *service, uint32_t slot, uint64_t word)
{
	const struct tw__record *record = &service->slots.records[slot];
	/* now, while few values are alive: it may be a call */
	struct tw__local *local = tw__local_at_hand(service);
	if (tw_unlikely(!local || tw_load_relaxed(&record->ext)) ||
	    tw_unlikely(!tw__word_cas_acq_rel(&service->slots.words[slot], &word,
					      /* WORD2, WORD3 */
					      tw__word_next_free(word))))
		return false;
	tw__group_leave(service, tw_load_relaxed(&record->group), slot);
	tw__cancelled(service, local, tw__entry_make(slot, tw__word_generation(word)));
	return true;
}

/* A timer with an extension record, a member, or one that is not armed; or not any more. */
static __attribute__((noinline)) int cancel_or_mark_slowly(tw_service *service, uint32_t slot,
							   uint32_t generation, uint64_t marks)
{
	const uint64_t member = TW__ARMED | TW__EXT;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	if (tw_likely((word & member) == member && tw__word_generation(word) == generation) &&
	    cancel_member(service, slot, word))
		return told(service, slot, generation, TW_CANCELLED);
	return cancel_or_mark_by_state(service, slot, generation, marks);
}

/*
 * Ends the timer, or puts the marks on it: TW_CANCELLED, TW_GONE or TW_RUNNING. local: NULL if not
 * known yet.
 */
static inline __attribute__((always_inline)) int
cancel_or_mark(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t marks)
{
	uint64_t slot = (uint32_t)entry, generation_bits = entry - slot, word;
	_Atomic uint64_t *at = &service->slots.words[slot];
	word = tw_load_acquire(at);
	if (tw_likely(local && tw__word_is_plain(word, generation_bits)) &&
	    /* WORD2, WORD3 */
	    /* planted: same_generation */
	    tw_likely(tw__word_cas_acq_rel(at, &word, generation_bits + TW__NEXT_GENERATION))) {
		TW_PROBE4(cancel, service, slot, tw__entry_generation(entry), TW_CANCELLED);
		return tw__cancelled(service, local, entry);
	}
	return cancel_or_mark_slowly(service, (uint32_t)slot, tw__entry_generation(entry), marks);
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
	return cancel_or_mark(service, local, entry, TW__ENDED);
}

/* In its own callback or release, however deep. */
static bool is_own(const tw_service *service, uint32_t slot, uint32_t generation)
{
	for (struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->slot == slot && run->generation == generation)
			return true;
	return false;
}

/* The timer's release is one that this thread will call when the innermost one has returned. */
static bool is_owed_here(const tw_service *service, uint32_t slot)
{
	for (const struct tw__run *run = tw__current_run; run; run = run->outer)
		for (uint32_t owed = run->service == service ? run->owed : 0; owed;
		     owed = service->slots.links[owed].owed)
			if (owed == slot)
				return true;
	return false;
}

/*
 * Sleeps until the generation has moved on. The word was marked WAITED, so the thread that ends it
 * rings.
 */
static int wait_for_end(tw_service *service, uint32_t slot, uint32_t generation,
			uint64_t deadline_ns)
{
	for (;;) {
		uint32_t bell = tw_load_acquire(&service->finish_bell);       /* RUN5 */
		uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD2, RUN5 */
		if (tw__word_generation(word) != generation)
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
	uint32_t slot = (uint32_t)entry, generation = tw__entry_generation(entry);
	bool own = is_own(service, slot, generation);
	int outcome = cancel_or_mark(service, tw__local_at_hand(service), entry,
				     own ? TW__ENDED : TW__ENDED | TW__WAITED);
	if (outcome != TW_RUNNING)
		return outcome;
	if (own)
		return TW_SELF;
	if (tw_unlikely(is_owed_here(service, slot)))
		return tw__waits_inside(__func__);
	return wait_for_end(service, slot, generation, tw__deadline_in(timeout_ns));
}

bool tw__remaining_of(tw_service *service, uint32_t slot, uint64_t *word, uint64_t *left_ns)
{
	if (tw__word_disarmed(*word)) {
		*left_ns = UINT64_MAX;
		return true;
	}
	uint64_t tick, cursor = tw_load_relaxed(&service->gate.cursor);
	bool known = tw__deadline_read(&service->slots, slot, word, cursor, &tick);
	uint64_t due_ns = tw__tick_ns(service, tick), now_ns = tw__clock_read(service);
	*left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	return known;
}

static int remaining(tw_service *service, tw_timer timer, uint64_t *out_ns)
{
	uint64_t entry;
	if (!tw__handle_entry(&service->slots, timer, &entry))
		return -ENOENT;
	uint32_t slot = (uint32_t)entry;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]), left_ns;
	do {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return -ENOENT;
	} while (!tw__remaining_of(service, slot, &word, &left_ns));
	*out_ns = left_ns;
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
