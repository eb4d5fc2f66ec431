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

/*
 * CLOCK_BOOTTIME in nanoseconds: the same, but it goes on while the machine is suspended. What came due meanwhile runs when the
 * machine is awake again (no timer wakes it up). A tick thread sleeps on descriptors of its own (three), which costs it a system call
 * more for each sleep; calls on timers cost the same, but that tw_reset reads the clock rather than a counter. Never fails.
 */
TW_API tw_clock *tw_clock_boottime(void);

/*
 * The clock of services whose config names none: any clock, which must outlive them. NULL: the monotonic one, as at first. For
 * tests that put a whole program on a manual clock. Any thread, before the first service is made: 0.
 * -EBUSY: a service has been made in this process, or is being made. -EINVAL: not a clock. -EPERM: a manual clock that belongs to
 * the parent of this forked process; if that is the parent's default, the child's is the monotonic one. Its services count anew.
 */
TW_API int tw_clock_set_default(tw_clock *clock);

/* The clock's reading, nanoseconds. Any thread. 0 if clock is NULL. */
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
 *   - a manually driven one is driven by the calling thread, from tick to tick: each callback sees the clock at
 *     its own deadline, rounded up to a tick as every deadline is (never earlier, G1), in the order of these; in the order of
 *     scheduling within a tick (G6). A service whose deadlines should not be rounded gets a tick that divides them.
 *   - a service with a tick thread: the call returns when its tick thread has handed over all that is due at the
 *     new time (with an executor of threads the callbacks may still be running; see tw_service_stats).
 * What a callback schedules with delay 0, or in the past, comes in the next tick, at which it sees the clock, or in the next advance: as on
 * real clocks, which never stand still on a tick. So an advance ends, though a callback re-arms itself at once again and again (a series that makes up for
 * missed instants (TW_MISSED_BURST) does so within the advance: for ever only if its callback goes on setting the clock forward).
 * An advance never moves the clock backwards: a callback that sets the clock forward takes the advance with it, also past its target.
 * 0; -EINVAL: not a manual clock, or the target lies beyond INT64_MAX; -ERANGE: advance_to into the past (nothing
 * changed; use set). -EDEADLK: called from a callback of a service on this clock. Advances of several threads
 * are carried out one after the other. -EPERM: the clock belongs to the parent of this forked process.
 */
TW_API int tw_clock_manual_advance_by(tw_clock *clock, uint64_t ns);
TW_API int tw_clock_manual_advance_to(tw_clock *clock, uint64_t ns);

/*
 * Set: put the clock to any instant, also backwards, and do nothing else: tick threads notice at their next
 * wake-up, a manually driven service in its next tw_service_advance. A service takes a step back as standing still and
 * counts it (tw_service_stats.clock_steps). 0; -EINVAL, -EPERM as above.
 */
TW_API int tw_clock_manual_set(tw_clock *clock, uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
