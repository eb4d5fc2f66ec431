/*
 * What a close asks the control words, and does to them. The words are the truth: nothing else
 * counts what is pending.
 */
#ifndef TW_WHEEL_CLOSE_WORDS_H
#define TW_WHEEL_CLOSE_WORDS_H

#include "wheel/service/close_owner.h"

/* One of the questions and steps below. `word` was read from the slot, which was in use. */
typedef bool tw__close_word_fn(const struct tw__close_call *c, uint32_t slot, uint64_t word);

/* Calls what() for each slot in use. True as soon as one call answers true. */
bool tw__close_any(const struct tw__close_call *c, tw__close_word_fn *what);

/* The timer is armed. */
tw__close_word_fn tw__close_armed;

/* It is armed or disarmed: what a close ends. No mode waits for a disarmed one. */
tw__close_word_fn tw__close_waits;

/*
 * A drain waits for it. So background timers are dropped only when no other callback runs.
 */
tw__close_word_fn tw__close_holds_up;

/* Its release callback is under way. */
tw__close_word_fn tw__close_releasing;

/* It will run if nothing happens, and a close waits for it. */
tw__close_word_fn tw__close_pending;

/* Ends an armed or disarmed timer. False. */
tw__close_word_fn tw__close_drop;

/* The same. A callback that runs cannot arm its timer again. */
tw__close_word_fn tw__close_drop_or_bar;

#endif
