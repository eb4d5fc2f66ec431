/* What moving a timer shares with arming a persistent one. */
#ifndef TW_WHEEL_RESET_H
#define TW_WHEEL_RESET_H

#include "wheel/core/service.h"

/*
 * Writes a deadline together with an entry. 1: done; 0: the word has changed, look again; negative:
 * refused. was, moved: as for tw__deadline_move.
 */
int tw__move_with_entry(tw_service *service, uint32_t slot, uint64_t *word, uint64_t was,
			uint64_t moved, uint64_t tick);

/* Counts a reset of this thread. eager: it needed an entry. 0. */
int tw__count_reset(tw_service *service, bool eager);

#endif
