/* What moving a timer shares with arming one again. */
#ifndef TW_WHEEL_RESET_H
#define TW_WHEEL_RESET_H

#include "wheel/core/service.h"

/* Puts the entry of a timer that had none when its word became `armed`. Needs room in the lane. */
static inline void tw__put_armed_again(const tw_service *service, struct tw__local *local,
				       uint32_t slot, uint64_t armed, uint64_t tick)
{
	bool relocated = armed & TW__RELOCATED; /* planted: relocated_blindly */
	/* planted: entry_covered */
	enum tw__kind kind = relocated ? TW__KIND_BACK : TW__KIND_DEADLINE;
	uint64_t entry = tw__entry_make(slot, tw__word_generation(armed));
	tw__lane_put(&local->lane, tw__what_make(kind, entry),
		     relocated ? tick : tw__tick_ns(service, tick));
}

/* The word has changed: look at it again. No errno and no outcome. */
enum { TW__RESET_AGAIN = 4096 };

/*
 * The reset of the entry's timer, which had this word: what tw_reset returns, or TW__RESET_AGAIN
 * with *word as it is now. closed: the service was, before; it drains.
 */
int tw__reset_seen(tw_service *service, uint64_t entry, uint64_t *word, uint64_t deadline_ns,
		   bool only_earlier, bool closed);

#endif
