/* What moving a timer shares with arming one again. */
#ifndef TW_WHEEL_RESET_H
#define TW_WHEEL_RESET_H

#include "wheel/core/local.h"
#include "wheel/core/ticks.h"

/*
 * Puts the entry of a timer that had none when its word became `armed`, for the tick in it (word.h,
 * "Persistent timers"). Needs room in the lane.
 */
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

/*
 * Writes a deadline together with an entry. 1: done; 0: the word has changed, look again; negative:
 * refused. was, moved: as for tw__deadline_move.
 */
int tw__move_with_entry(tw_service *service, uint32_t slot, uint64_t *word, uint64_t was,
			uint64_t moved, uint64_t tick);

/* Counts a reset of this thread. eager: it needed an entry. 0. */
int tw__count_reset(tw_service *service, bool eager);

#endif
