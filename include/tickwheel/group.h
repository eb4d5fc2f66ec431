/*
 * Groups: cancel all timers of a connection with one call. A timer is a member from its schedule
 * (tw_task.group) to its end; it can be cancelled and moved by itself.
 *
 * A cancel ends the members that wait before it returns. Then no member's run is claimed any more:
 *
 *   member that                then         tw_cancel    tw_reset   its release
 *   was not running            cancelled    TW_GONE      -ENOENT    called, on the canceling thread
 *   is running                 last run     TW_RUNNING   -EBUSY     after the run, on its thread
 *
 * The releases of members that were not running are called when all of those are cancelled, in the
 * order in which they became members. A release that waits for another member gets -EDEADLK if
 * this same thread is to call that member's release. A stale handle is harmless.
 */
#ifndef TICKWHEEL_GROUP_H
#define TICKWHEEL_GROUP_H

#include "service.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

/*
 * Creates a group without members.
 *
 * Returns:
 *   0            *out is the group
 *   -EAGAIN      max_timers groups (65536 if that is more, 16 Mi at most) exist: destroy some
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 */
TW_API int tw_group_create(tw_group *out, tw_service *service);

/*
 * Cancels all members, in 10 to 20 ns for each. Timers scheduled with the group afterwards are not
 * affected.
 *
 * Calls: the releases of members that were not running, on this thread.
 * Returns:
 *   0         cancelled
 *   -ENOENT   the group was destroyed, or never was
 */
TW_API int tw_group_cancel(tw_service *service, tw_group group);

/*
 * Cancels all members, and waits until each one that was there at the call has ended. Then their
 * callbacks and releases have returned, what they wrote is visible, and their args may be freed.
 *
 * Blocks: at most timeout_ns.
 * Calls: releases of members, on this thread.
 * Returns:
 *   TW_CANCELLED   all members have ended
 *   TW_RUNNING     some have not after timeout_ns
 *   TW_SELF        called from a callback or release of a member: cancelled, not waited for
 *   -ENOENT        the group was destroyed, or never was
 */
TW_API int tw_group_cancel_wait(tw_service *service, tw_group group, uint64_t timeout_ns);

/*
 * Cancels all members, and refuses new ones for good: scheduling with the group returns -ESHUTDOWN.
 * Calls fn(arg) once when all members have ended. fn may be NULL.
 *
 * When fn is called, no callback and no release of a member runs, and none will be called. So fn
 * may free what the members used, and destroy the group.
 *
 * fn runs on the service's executor, also if the group has no members, and never inside this call.
 * If the executor has not called fn, a close of the service does.
 *
 * Calls: releases, as tw_group_cancel.
 * Returns:
 *   0            closed; fn will be called
 *   -EALREADY    the group has an fn already
 *   -ENOENT      the group was destroyed, or never was
 *   -ESHUTDOWN   the service's close has returned 0, or is about to; fn, which is not NULL, is not
 *                called
 */
TW_API int tw_group_close(tw_service *service, tw_group group, tw_fn *fn, void *arg);

/*
 * Closes the group and gives up its handle. It does not wait for members: see tw_group_close.
 *
 * Calls: as tw_group_cancel.
 * Returns:
 *   0         closed, and its members are cancelled; the handle names no group any more
 *   -ENOENT   the group was destroyed, or never was
 */
TW_API int tw_group_destroy(tw_service *service, tw_group group);

/* Gauges of one group, true when they were read. */
struct tw_group_stats {
	size_t size;
	uint64_t members; /* timers that have not ended */
	uint64_t running; /* callbacks and releases of members that run now */
};

/*
 * Reads a group's gauges.
 *
 * Returns:
 *   0         *out is filled
 *   -ENOENT   the group was destroyed, or never was
 *   -EINVAL   out->size is smaller than one gauge
 */
TW_API int tw_group_stats(tw_service *service, tw_group group, struct tw_group_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
