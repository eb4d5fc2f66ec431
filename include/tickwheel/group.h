/*
 * Groups: cancel all timers of a connection or tenant with one call.
 *
 *     tw_group group;
 *     tw_group_create(&group, service);
 *     struct tw_task task = TW_INIT(tw_task);
 *     task.fn = on_timeout;
 *     task.arg = connection;
 *     task.when_ns = TW_SECOND;
 *     task.group = group;
 *     tw_schedule_task(service, &task, &timer);
 *     ...
 *     tw_group_close_then(service, group, end_connection, connection);
 *
 * end_connection is called when no timer of the connection is left. It destroys the group and frees
 * the connection.
 *
 * A timer becomes a member when it is scheduled with tw_task.group, and is one until its end. A
 * member can be cancelled and moved by itself.
 *
 * tw_group_cancel ends the members that wait, one after the other, before it returns. Then no
 * member's run is claimed any more:
 *
 *   member that                then         tw_cancel    tw_reset   its release
 *   was not running            cancelled    TW_GONE      -ENOENT    called, on the canceling thread
 *   is running                 last run     TW_RUNNING   -EBUSY     after the run, on its thread
 *
 * tw_reset in the member's own callback returns -ECANCELED, and for a persistent member on any
 * thread. While a cancel of the group runs, tw_cancel of a member may return TW_CANCELLED or
 * TW_RUNNING. It returns TW_CANCELLED if the cancel has not reached the member yet. It returns
 * TW_RUNNING if the cancel has ended the member and has not called its release yet.
 *
 * The releases are called when all members have ended, in the order in which the members entered.
 * So a release that cancels its own group finds nothing left to end. A release that waits with
 * tw_cancel_wait for a member whose release comes after it on the same thread gets -EDEADLK.
 *
 * A cancel costs 10 to 20 ns for each member: a group for each connection is the intended use.
 * Members of one group that many threads schedule and cancel wait for the group's lock.
 *
 * Threads: any thread may call anything at any time, also from callbacks and releases. On a closed
 * service tw_group_create and tw_group_close_then return -ESHUTDOWN; the others work. Only the
 * first tw_group_create of a service allocates. A handle of a destroyed group is harmless.
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
 * Creates a group without members. It takes 64 bytes, and 56 for a completion.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            *out is the group; on an error *out is not written
 *   -EINVAL      out or service is NULL
 *   -EAGAIN      max_timers groups (65536 if that is more, 16 Mi at most) exist: destroy some
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_group_create(tw_group *out, tw_service *service);

/*
 * Cancels all members. Timers that are scheduled with the group afterwards are not affected.
 *
 * Threads: any. Never blocks, unless a release does. Takes 10 to 20 ns for each member.
 * Calls: the releases of members that were not running, on this thread.
 * Returns:
 *   0         cancelled
 *   -ENOENT   the group was destroyed, or never was
 *   -EINVAL   service is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_group_cancel(tw_service *service, tw_group group);

/*
 * Cancels all members, and waits until each one that was there at the call has ended.
 *
 * After TW_CANCELLED their callbacks and releases have returned, what they wrote is visible, and
 * their args may be freed. Members that are scheduled meanwhile are neither cancelled nor waited
 * for. Two callbacks that wait for each other's groups wait without limit.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Calls: releases of members, on this thread.
 * Returns:
 *   TW_CANCELLED   all members have ended
 *   TW_RUNNING     some have not after timeout_ns
 *   TW_SELF        called from a callback or release of a member: cancelled, not waited for
 *   -ENOENT, -EINVAL, -EPERM   as tw_group_cancel
 */
TW_API int tw_group_cancel_wait(tw_service *service, tw_group group, uint64_t timeout_ns);

/*
 * Cancels all members, and refuses new ones: scheduling with the group returns -ESHUTDOWN.
 *
 * Threads, calls, returns: as tw_group_cancel. A closed group stays closed.
 */
TW_API int tw_group_close(tw_service *service, tw_group group);

/*
 * Closes the group, and calls fn(arg) once when all members have ended.
 *
 * When fn is called, no callback and no release of a member runs, and none will be called. So fn
 * may free what the members used, and destroy the group. A schedule that races with this call
 * becomes a member before fn, or returns -ESHUTDOWN.
 *
 * fn runs on the service's executor, also if the group has no members. If the executor refuses, the
 * call is offered again. If the executor has not called fn, a close of the service calls it on the
 * closing thread. The close returns 0 only after fn has returned. In fn, tw_self() is "no timer".
 * If the group is destroyed before fn runs, fn still runs.
 *
 * Threads: any, also a member's own callback or release. Never blocks, unless a release does.
 * Allocates nothing, never calls fn inside the call.
 * Calls: releases, as tw_group_cancel.
 * Returns:
 *   0            fn will be called
 *   -EALREADY    the group has a completion already; nothing changed
 *   -ENOENT      the group was destroyed, or never was
 *   -ESHUTDOWN   the service's close has returned 0, or is about to; fn is not called
 *   -EINVAL      service or fn is NULL
 *   -EPERM       in a forked child
 */
TW_API int tw_group_close_then(tw_service *service, tw_group group, tw_fn *fn, void *arg);

/*
 * Closes the group and gives up its handle. Later calls with the handle return -ENOENT.
 *
 * The call does not wait for members: to free what they use, see tw_group_close_then. The group's
 * storage is reused when its last member has ended and its completion was called.
 *
 * Threads, calls, returns: as tw_group_cancel.
 */
TW_API int tw_group_destroy(tw_service *service, tw_group group);

/* Gauges of one group, true when they were read. */
struct tw_group_stats {
	size_t size;      /* in: sizeof(struct tw_group_stats) */
	uint64_t members; /* timers that have not ended */
	uint64_t running; /* callbacks and releases of members that run now */
};

/*
 * Reads a group's gauges. An older or newer `size` is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -ENOENT   the group was destroyed, or never was
 *   -EINVAL   NULL, or out->size is smaller than one gauge
 *   -EPERM    in a forked child
 */
TW_API int tw_group_stats(tw_service *service, tw_group group, struct tw_group_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
