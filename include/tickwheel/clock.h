/*
 * Clocks: what a service takes for "now", and how it sleeps.
 *
 * A clock is an object behind a const pointer. The monotonic one is a constant; a manual one is created, moved
 * by hand, and makes tests exact: nothing sleeps, nothing depends on the machine's speed.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_clock tw_clock;

/* CLOCK_MONOTONIC in nanoseconds; stands still while the machine is suspended. Never fails; shared by all. */
TW_API tw_clock *tw_clock_monotonic(void);

/* The clock's reading, nanoseconds. Any thread. */
TW_API uint64_t tw_clock_now(const tw_clock *clock);

/*
 * A clock that stands still until it is moved. It starts at `start_ns`.
 * -EINVAL: out is NULL, or start_ns is above INT64_MAX. -ENOMEM.
 * Destroy it after the last service that uses it: -EBUSY before (nothing changed); NULL is allowed. In a forked
 * child a clock of the parent can be destroyed at any time.
 */
TW_API int tw_clock_manual_create(tw_clock **out, uint64_t start_ns);
TW_API int tw_clock_manual_destroy(tw_clock *clock);

/*
 * Advance: move forward by / to. Every service on the clock hands over what has come due:
 *   - a service with a tick thread: the call returns when its tick thread has handed over all that is due at the
 *     new time (with an executor of threads the callbacks may still be running; see tw_stats_get);
 *   - a manually driven one is driven by the calling thread, from tick to tick: each callback sees the clock at
 *     the tick in which its own deadline falls, in deadline order.
 * 0; -EINVAL: not a manual clock, or the target lies beyond INT64_MAX; -ERANGE: advance_to into the past (nothing
 * changed; use set). -EDEADLK: called from a callback of a service on this clock. Advances of several threads
 * are carried out one after the other. -EPERM: the clock belongs to the parent of this forked process.
 */
TW_API int tw_clock_manual_advance_by(tw_clock *clock, uint64_t ns);
TW_API int tw_clock_manual_advance_to(tw_clock *clock, uint64_t ns);

/*
 * Set: put the clock to any instant, also backwards, and do nothing else: tick threads notice at their next
 * wake-up, a manually driven service in its next tw_advance. A service takes a step back as standing still and
 * counts it (tw_stats.clock_steps). 0; -EINVAL, -EPERM as above.
 */
TW_API int tw_clock_manual_set(tw_clock *clock, uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
