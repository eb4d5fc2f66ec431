/*
 * Finds the user code that runs now (user_code.h), for tw_service_liveness and on_stuck.
 *
 * Pairing table
 *   WATCHDOG2  pool_lookers: add seq_cst, then pool: load seq_cst (look) <-> pool: exchange
 *       seq_cst, then pool_lookers: load seq_cst (close): either the look finds no pool, or close
 *       waits until the look is over. Without it a look would read a pool that has been freed.
 */
#ifndef TW_WHEEL_LIVENESS_H
#define TW_WHEEL_LIVENESS_H

#include "wheel/core/local.h"
#include "wheel/core/user_code.h"

/*
 * The callback that this thread is in, if it is one of the service's, is not shown any more: it
 * only serves to call a user's function, which user_code.h shows in its place.
 */
void tw__running_hide(tw_service *service);

/*
 * The callback of an entry's timer, and its name (or NULL), if it is still that timer: the word is
 * the same before and after. NULL: it has ended.
 */
tw_fn *tw__callback_of(const tw_service *service, uint64_t entry, const char **name);

typedef void tw__see_run_fn(void *context, const struct tw__seen_run *run);

/*
 * Shows each run of the service, and of its pool's tasks, to `see`. now_ns: of the service's clock,
 * as since_ns of each run. Any thread.
 */
void tw__runs_visit(tw_service *service, uint64_t now_ns, tw__see_run_fn *see, void *context);

/* The driver's: tells on_stuck of runs that have lasted too long. `driving` held. */
void tw__tell_stuck(tw_service *service, uint64_t now_ns);

/*
 * The tick thread's: the deadline, or the instant at which a run that may be under way would have
 * lasted too long.
 */
uint64_t tw__look_for_stuck_by(tw_service *service, uint64_t now_ns, uint64_t deadline_ns);

#endif
