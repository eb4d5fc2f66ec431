/*
 * Clocks: what a service takes for "now", and how it sleeps.
 *
 * The monotonic clock is a constant. A manual clock is moved by hand and makes tests exact: nothing
 * sleeps, and nothing depends on the machine's speed.
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
 * Returns CLOCK_MONOTONIC, in nanoseconds. It stands still while the machine is suspended.
 *
 * Threads: any. Never fails.
 * Returns: the clock, which always exists.
 */
TW_API tw_clock *tw_clock_monotonic(void);

/*
 * Returns CLOCK_BOOTTIME, in nanoseconds. It goes on while the machine is suspended.
 *
 * What came due in suspend runs when the machine is awake again; no timer wakes it up. A tick
 * thread on this clock uses three descriptors, and one more system call for each sleep.
 *
 * Threads: any. Never fails.
 * Returns: the clock, which always exists.
 */
TW_API tw_clock *tw_clock_boottime(void);

/*
 * Sets the clock of services whose config names none. NULL: the monotonic one, which is the
 * default.
 *
 * For tests that run a whole program on a manual clock. The clock must outlive the services.
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
 * Reads a clock, in nanoseconds.
 *
 * Threads: any.
 * Returns: the time; 0 if clock is NULL.
 */
TW_API uint64_t tw_clock_now(const tw_clock *clock);

/*
 * Creates a clock that stands still at start_ns until it is moved.
 *
 * Threads: any.
 * Returns:
 *   0         *out is the clock
 *   -EINVAL   out is NULL, or start_ns is above INT64_MAX
 *   -ENOMEM   no memory
 */
TW_API int tw_clock_manual_create(tw_clock **out, uint64_t start_ns);

/*
 * Frees a manual clock. NULL is allowed. In a forked child, a clock of the parent too.
 *
 * Threads: any.
 * Returns:
 *   0         freed
 *   -EBUSY    a service still uses it; nothing changed: destroy the service first
 *   -EINVAL   not a manual clock
 */
TW_API int tw_clock_manual_destroy(tw_clock *clock);

/*
 * Moves a manual clock forward by ns, and lets every service on it hand over what has come due.
 *
 *     tw_clock_manual_advance_by(clock, at_ns - tw_clock_now(clock));   (to an instant)
 *
 *   - This thread drives a service with TW_DRIVE_MANUAL, tick by tick. Callbacks run in the order
 *     of their deadlines; each sees the clock at its own deadline, rounded up to a tick.
 *   - A service with a tick thread hands over what is due before the call returns. Its callbacks
 *     may still run on their executor.
 *
 * What a callback schedules for now comes in the next tick, or in the next advance. So an advance
 * ends, although a callback re-arms itself again and again. A callback that sets the clock forward
 * takes the advance with it. An advance never moves the clock backwards.
 *
 * Threads: any, one after the other. Blocks while callbacks run.
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
 * A tick thread notices at its next wake-up, a manually driven service in its next advance. A
 * service takes a step back as standing still, and counts it (tw_service_stats.clock_steps). If the
 * clock was set forward before, a thread that scheduled meanwhile counts its delays from that later
 * instant until the clock has reached it again.
 *
 * Threads: any. Never blocks.
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
