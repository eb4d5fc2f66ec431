/* The transition table of word.h, for assertions. Calls nothing. */
#include "wheel/slot/word.h"

/*
 * Each function below is one group of lines of the transition table: `from` and `to` have one
 * generation.
 */

/* From armed or disarmed. An entry is promised only to a timer that had the promise. */
static bool waiting_may_become(uint64_t from, uint64_t to)
{
	if (tw__word_armed(to))
		return (to & (TW__EXT | TW__PERSISTENT)) == (from & (TW__EXT | TW__PERSISTENT)) &&
		       (to & TW__RELOCATED) >= (from & TW__RELOCATED);
	if (tw__word_disarmed(to) && tw__word_armed(from))
		return from & TW__PERSISTENT && to == tw__word_disarm(from);
	if (tw__word_disarmed(to))
		return to == tw__word_unfiled(from);
	if (tw__word_state(to) == TW__RUNNING)
		return tw__word_armed(from) && to == tw__word_run(from);
	return from & TW__EXT && tw__word_state(to) == TW__RELEASING && !(to & TW__DEADLINE_MASK);
}

static bool running_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	bool goes_on = !(from & (TW__ENDED | TW__BARRED));
	if (tw__word_armed(to))
		return goes_on && !((to ^ tw__word_after_run(from)) & TW__KEPT);
	if (tw__word_disarmed(to))
		return goes_on && from & TW__HAS_PERSISTENT && to == tw__word_after_run(from);
	uint64_t may_fall = from & TW__HAS_PERSISTENT ? TW__REARMED : 0;
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return !(marks & ~marks_then & ~may_fall) &&
		       !((marks ^ marks_then) & ~(TW__ENDED | TW__WAITED | TW__BARRED | may_fall));
	case TW__RELEASING:
		return marks & TW__HAS_EXT && marks_then == (marks & TW__WAITED);
	default:
		return false;
	}
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
	if (tw__word_waits(from))
		return waiting_may_become(from, to);
	switch (tw__word_state(from)) {
	case TW__FREE:
		return tw__word_armed(to) || (tw__word_disarmed(to) && to == tw__word_unfiled(to));
	case TW__RUNNING:
		return running_may_become(from, to);
	case TW__RELEASING:
		return to == (from | TW__WAITED);
	default:
		return false;
	}
}
