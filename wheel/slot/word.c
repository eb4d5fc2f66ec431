#include "wheel/slot/word.h"

/* Each function below is one group of lines of the transition table in word.h: `from` and `to` have one generation. */

static bool armed_may_become(uint64_t from, uint64_t to)
{
	bool has_option = from & TW__OPTION;
	if (tw__word_armed(to))
		return (to & TW__OPTION) == (from & TW__OPTION) && (tw__word_seq(to) || !tw__word_seq(from));
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return tw__word_seq(to) == tw__word_seq(from) &&
		       (to & TW__DEADLINE_MASK) == (has_option ? TW__HAS_OPTION : 0);
	case TW__SETTLING:
	case TW__DOOMED:
		return has_option && !(to & TW__DEADLINE_MASK);
	default:
		return false;
	}
}

static bool running_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	if (tw__word_armed(to))
		return !(from & (TW__ENDED | TW__BARRED)) && !!(to & TW__OPTION) == !!(from & TW__HAS_OPTION) &&
		       !tw__word_seq(to) == !tw__word_seq(from);
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return tw__word_seq(to) == tw__word_seq(from) && !(marks & ~marks_then) &&
		       !((marks ^ marks_then) & ~(TW__ENDED | TW__WAITED | TW__BARRED));
	case TW__SETTLING:
		return marks & TW__HAS_OPTION && marks_then == (marks & (TW__ENDED | TW__WAITED));
	default:
		return false;
	}
}

static bool releasing_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	return tw__word_state(to) == TW__SETTLING && !(marks & ~marks_then) &&
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
		return (tw__word_armed(to) && !tw__word_seq(to)) || tw__word_state(to) == TW__SETTLING;
	case TW__RUNNING:
		return running_may_become(from, to);
	case TW__SETTLING:
		return releasing_may_become(from, to);
	case TW__DOOMED:
		return tw__word_state(to) == TW__SETTLING;
	default:
		return false;
	}
}
