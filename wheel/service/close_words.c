/* What a close asks the control words, and does to them. */
#include "wheel/service/close_words.h"

#include "wheel/core/service.h"
#include "wheel/timer/cancel.h"
#include "wheel/timer/end.h"

bool tw__close_any(const struct tw__close_call *c, tw__close_word_fn *what)
{
	struct tw__slots *slots = &c->service->slots;
	uint32_t end = tw_load_acquire(&slots->depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&slots->words[slot]);
		if (tw__word_state(word) != TW__FREE && what(c, slot, word))
			return true;
	}
	return false;
}

/* CANCEL_PENDING ones too: polls end them like the rest of their group. */
bool tw__close_armed(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	(void)c;
	(void)slot;
	return tw__word_armed(word) || tw__word_state(word) == TW__CANCEL_PENDING;
}

bool tw__close_waits(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	return tw__word_disarmed(word) || tw__close_armed(c, slot, word);
}

bool tw__close_releasing(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	(void)c;
	(void)slot;
	return tw__word_state(word) == TW__RELEASING;
}

/* A background timer, of whose word `word` was read. False also if it has just ended. */
static bool is_background(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	const struct tw__slots *slots = &c->service->slots;
	if (!tw__word_has_record(word) || !(tw__traits_of(slots, slot) & TW__TRAIT_BACKGROUND))
		return false;
	/* WORD5 */
	return tw__word_generation(tw_load_relaxed(&slots->words[slot])) ==
	       tw__word_generation(word);
}

bool tw__close_holds_up(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	bool runs = tw__word_state(word) == TW__RUNNING || tw__close_releasing(c, slot, word);
	bool waits = !(c->options->flags & TW_CLOSE_FLAG_NO_WAIT);
	return (tw__close_armed(c, slot, word) || (runs && waits)) && !is_background(c, slot, word);
}

bool tw__close_pending(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	return tw__word_armed(word) && !tw__is_cancelled(c->service, slot, word) &&
	       !is_background(c, slot, word);
}

static void tell_dropped(void *context, uint32_t slot, uint64_t word)
{
	struct tw__close_call *c = context;
	if (c->visited_enough)
		return;
	struct tw__slots *slots = &c->service->slots;
	tw_timer timer = tw__handle_make(slots, slot, tw__word_generation(word));
	/* WORD1: ours since the word was ended */
	struct tw__record *record = &slots->records[slot];
	uint64_t left_ns;
	(void)tw__remaining_of(c->service, slot, &word, &left_ns);
	c->visited_enough =
	    c->options->dropped(c->options->visitor_arg, timer, tw_load_relaxed(&record->fn),
				tw_load_relaxed(&record->arg), left_ns);
}

static bool drop(const struct tw__close_call *c, uint32_t slot, uint64_t *word)
{
	tw__tell_fn *tell = c->options->dropped ? tell_dropped : NULL;
	return tw__drop(c->service, tw__local_of(c->service), slot, word, tell,
			(void *)(uintptr_t)c);
}

bool tw__close_drop(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	while (tw__close_waits(c, slot, word) && !drop(c, slot, &word)) {
	}
	return false;
}

bool tw__close_drop_or_bar(const struct tw__close_call *c, uint32_t slot, uint64_t word)
{
	_Atomic uint64_t *at = &c->service->slots.words[slot];
	for (;;) {
		tw__close_drop(c, slot, word);
		word = tw_load_acquire(at);
		if (tw__word_state(word) != TW__RUNNING ||
		    tw__word_cas_acq_rel(at, &word, word | TW__BARRED))
			return false;
	}
}
