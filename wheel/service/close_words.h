/*
 * What a close asks the control words, and does to them. The words are the truth: nothing else
 * counts what is pending. Each call looks at every slot in use.
 */
#ifndef TW_WHEEL_CLOSE_WORDS_H
#define TW_WHEEL_CLOSE_WORDS_H

#include "wheel/service/close_owner.h"

/* Timers that are armed. */
bool tw__close_any_armed(const struct tw__close_call *c);

/* Timers that are armed or disarmed. */
bool tw__close_any_waits(const struct tw__close_call *c);

/* Timers that a drain waits for. */
bool tw__close_any_holds_up(const struct tw__close_call *c);

/* Release callbacks under way. */
bool tw__close_any_releasing(const struct tw__close_call *c);

/* Timers that will run if nothing happens, and that a close waits for. */
bool tw__close_any_pending(const struct tw__close_call *c);

/* Ends all armed and disarmed timers. */
void tw__close_drop_armed(const struct tw__close_call *c);

/* The same. Callbacks that run cannot arm their timers again. */
void tw__close_drop_or_bar(const struct tw__close_call *c);

#endif
