/*
 * What runs where. For timers: each thread shows the entry of the callback it is in, and since
 * when, in its own line of the service: two stores a run, with the clock's reading that is there
 * for the histograms, and one more when the callback has returned. All other user code is shown by
 * user_code.h.
 *
 * Pairing table
 *   WATCHDOG1  running_since_ns: store-relaxed, then running: store-release (begin) -> running:
 *       load-acquire, then the other (look): a thread that sees a run sees an instant no earlier
 *       than its begin. It may be that of the next run: a run looks younger for a moment, never
 *       older. Without it a run that has just begun could be reported as stuck since the one
 *       before.
 *   WATCHDOG2  pool_lookers: add seq_cst, then pool: load seq_cst (look) <-> pool: exchange
 *       seq_cst, then pool_lookers: load seq_cst (close): either the look finds no pool, or close
 *       waits until the look is over. Without it a look would read a pool that has been freed.
 *   fn and whether it still runs are then read from the timer's own word and record, as
 *   tw_service_foreach does.
 */
#ifndef TW_WHEEL_LIVENESS_H
#define TW_WHEEL_LIVENESS_H

#include <unistd.h>

#include "wheel/core/local.h"
#include "wheel/core/user_code.h"

struct tw__running {
	uint64_t entry, since_ns;
};

/* What was shown before is for runs within runs. */
static inline struct tw__running tw__running_begin(struct tw__local *local, uint64_t entry,
						   uint64_t begun_ns)
{
	struct tw__running before = {tw_load_relaxed(&local->shown.running),
				     tw_load_relaxed(&local->shown.running_since_ns)};
	if (tw_unlikely(!tw_load_relaxed(&local->shown.thread_id)))
		tw_store_relaxed(&local->shown.thread_id, (uint32_t)gettid());
	tw_store_relaxed(&local->shown.running_since_ns, begun_ns);
	tw_store_release(&local->shown.running, entry); /* WATCHDOG1 */
	return before;
}

/*
 * The callback has returned, and nothing that follows on it is shown as this run: no release, and
 * no run of the same series on another thread. A run that this run was within is shown again.
 */
static inline void tw__running_end(struct tw__local *local, struct tw__running before)
{
	/* for a moment none: never the outer one with the inner one's instant */
	tw_store_relaxed(&local->shown.running, 0);
	if (tw_likely(!before.entry))
		return;
	tw_store_release(&local->shown.running_since_ns, before.since_ns);
	tw_store_release(&local->shown.running, before.entry);
}

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
