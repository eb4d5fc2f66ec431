#include "wheel/slot/word.h"

/*
 * Each function below is one group of lines of the transition table in word.h: `from` and `to` have
 * one generation.
 */

static bool armed_may_become(uint64_t from, uint64_t to)
{
	bool has_option = from & TW__EXT;
	if (tw__word_armed(to))
		return (to & TW__EXT) == (from & TW__EXT) &&
		       (to & TW__RELOCATED) >= (from & TW__RELOCATED);
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return (to & TW__DEADLINE_MASK) == ((has_option ? TW__HAS_EXT : 0) |
						    (from & TW__RELOCATED ? TW__HAS_RELOCATED : 0));
	case TW__RELEASING:
	case TW__CANCEL_PENDING:
		return has_option && !(to & TW__DEADLINE_MASK);
	default:
		return false;
	}
}

static bool running_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	if (tw__word_armed(to))
		return !(from & (TW__ENDED | TW__BARRED)) &&
		       !!(to & TW__EXT) == !!(from & TW__HAS_EXT);
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return !(marks & ~marks_then) &&
		       !((marks ^ marks_then) & ~(TW__ENDED | TW__WAITED | TW__BARRED));
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
	switch (tw__word_state(from)) {
	case TW__FREE:
		return tw__word_armed(to) || tw__word_state(to) == TW__RELEASING;
	case TW__RUNNING:
		return running_may_become(from, to);
	case TW__RELEASING:
		return releasing_may_become(from, to);
	case TW__CANCEL_PENDING:
		return tw__word_state(to) == TW__RELEASING;
	default:
		return false;
	}
}
