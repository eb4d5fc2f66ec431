/*
 * Clocks: what a service takes for "now", and how it sleeps. A manual clock is moved by hand, so
 * tests are exact and nothing sleeps.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_clock tw_clock;

/*
 * Returns CLOCK_MONOTONIC, which stands still while the machine is suspended.
 *
 * Returns: the clock, which always exists.
 */
TW_API tw_clock *tw_clock_monotonic(void);

/*
 * Returns CLOCK_BOOTTIME, which goes on while the machine is suspended. What came due in suspend
 * runs when the machine is awake again.
 *
 * Returns: the clock, which always exists.
 */
TW_API tw_clock *tw_clock_boottime(void);

/*
 * Sets the clock of services whose config names none. It must outlive them. NULL: the monotonic
 * one, the default. For tests that run a whole program on a manual clock.
 *
 * Threads: any, before the first service is created.
 * Returns:
 *   0         set
 *   -EBUSY    a service has been created in this process: set it earlier
 *   -EINVAL   not a clock
 *   -EPERM    a manual clock that belongs to the parent of this forked process
 */
TW_API int tw_clock_set_default(tw_clock *clock);

/*
 * Reads a clock.
 *
 * Returns: the time in nanoseconds; 0 if clock is NULL.
 */
TW_API uint64_t tw_clock_now(const tw_clock *clock);

/*
 * Creates a clock that stands still at start_ns until it is moved.
 *
 * Returns:
 *   0         *out is the clock
 *   -EINVAL   start_ns is above INT64_MAX
 *   -ENOMEM   no memory
 */
TW_API int tw_clock_manual_create(tw_clock **out, uint64_t start_ns);

/*
 * Frees a manual clock. NULL is allowed. In a forked child, a clock of the parent too.
 *
 * Returns:
 *   0         freed
 *   -EBUSY    a service still uses it: destroy the service first
 *   -EINVAL   not a manual clock
 */
TW_API int tw_clock_manual_destroy(tw_clock *clock);

/*
 * Moves a manual clock forward by ns. A service with TW_DRIVE_MANUAL runs the expired timers on
 * this thread, tick by tick. A service with a tick thread hands them over before the call returns.
 *
 * Threads: any, one after the other.
 * Blocks: while callbacks run.
 * Returns:
 *   0          advanced
 *   -EINVAL    not a manual clock, or the target is above INT64_MAX
 *   -EDEADLK   called from a callback of a service on this clock
 *   -EPERM     the clock belongs to the parent of this forked process
 */
TW_API int tw_clock_manual_advance_by(tw_clock *clock, uint64_t ns);

/*
 * Sets a manual clock to any instant, also backwards, and does nothing else.
 *
 * Returns:
 *   0         set
 *   -EINVAL   not a manual clock, or ns is above INT64_MAX
 *   -EPERM    the clock belongs to the parent of this forked process
 */
TW_API int tw_clock_manual_set(tw_clock *clock, uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
