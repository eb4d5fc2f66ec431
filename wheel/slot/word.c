#include "wheel/slot/word.h"

/*
 * Each function below is one group of lines of the transition table in word.h: `from` and `to` have
 * one generation.
 */

static bool armed_may_become(uint64_t from, uint64_t to)
{
	bool has_ext = from & TW__EXT;
	if (tw__word_armed(to))
		return (to & (TW__EXT | TW__PERSISTENT)) == (from & (TW__EXT | TW__PERSISTENT)) &&
		       (to & TW__RELOCATED) >= (from & TW__RELOCATED);
	if (tw__word_disarmed(to))
		return from & TW__PERSISTENT && to == tw__word_disarm(from);
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return (to & TW__DEADLINE_MASK) ==
		       ((has_ext ? TW__HAS_EXT : 0) |
			(from & TW__RELOCATED ? TW__HAS_RELOCATED : 0) |
			(from & TW__PERSISTENT ? TW__HAS_PERSISTENT : 0));
	case TW__RELEASING:
		return has_ext && !(to & TW__DEADLINE_MASK);
	default:
		return false;
	}
}

/* An entry is promised only to a timer that had the promise. */
static bool disarmed_may_become(uint64_t from, uint64_t to)
{
	bool has_ext = from & TW__DISARMED_EXT;
	if (tw__word_armed(to))
		return to & TW__PERSISTENT && !!(to & TW__EXT) == has_ext &&
		       (to & TW__RELOCATED) >= (from & TW__RELOCATED);
	if (tw__word_disarmed(to))
		return to == tw__word_unfiled(from);
	return has_ext && !(to & TW__DEADLINE_MASK) && tw__word_state(to) == TW__RELEASING;
}

static bool running_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	bool is_persistent = from & TW__HAS_PERSISTENT,
	     goes_on = !(from & (TW__ENDED | TW__BARRED));
	if (tw__word_armed(to))
		return goes_on && !!(to & TW__EXT) == !!(from & TW__HAS_EXT) &&
		       !!(to & TW__PERSISTENT) == is_persistent;
	if (tw__word_disarmed(to))
		return goes_on && is_persistent && to == tw__word_disarm_after_run(from);
	uint64_t may_fall = is_persistent ? TW__REARMED : 0;
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return !(marks & ~marks_then & ~may_fall) &&
		       !((marks ^ marks_then) & ~(TW__ENDED | TW__WAITED | TW__BARRED | may_fall));
	case TW__RELEASING:
		return marks & TW__HAS_EXT && marks_then == (marks & (TW__ENDED | TW__WAITED));
	default:
		return false;
	}
}

static bool releasing_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	return tw__word_state(to) == TW__RELEASING && !(marks & ~marks_then) &&
	       !(marks_then & ~(TW__ENDED | TW__WAITED));
}

/* The generation moves on: only to a free word, and only from a live one. */
static bool may_become_free(uint64_t from, uint64_t to)
{
	return to == tw__word_next_free(from) && tw__word_state(from) != TW__FREE;
}

bool tw__word_may_become(uint64_t from, uint64_t to)
{
	if (tw__word_generation(from) != tw__word_generation(to))
		return may_become_free(from, to);
	if (tw__word_armed(from))
		return armed_may_become(from, to);
	if (tw__word_disarmed(from))
		return disarmed_may_become(from, to);
	switch (tw__word_state(from)) {
	case TW__FREE:
		return tw__word_armed(to) || (tw__word_disarmed(to) && to == tw__word_unfiled(to));
	case TW__RUNNING:
		return running_may_become(from, to);
	case TW__RELEASING:
		return releasing_may_become(from, to);
	default:
		return false;
	}
}
