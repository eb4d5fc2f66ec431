/*
 * Groups: all timers of a connection or a tenant, cancelled by one call whose cost does not depend on how many they are.
 *
 *     tw_group group;
 *     tw_group_create(&group, service);
 *     struct tw_task task = {.size = sizeof task, .fn = on_timeout, .arg = connection, .when_ns = TW_SECOND, .group = group};
 *     tw_schedule_task(service, &task, &timer);
 *     ...
 *     tw_group_close_then(service, group, end_connection, connection);
 *
 * end_connection is called when no timer of the connection is left: it destroys the group and frees the connection.
 *
 * A timer becomes a member when it is scheduled with struct tw_task's `group`, and stays one until its end. A member can be
 * cancelled and moved by itself like any other timer.
 *
 * A cancelled member. When tw_group_cancel has returned, no member is claimed any more; for each one
 *   that was not running   tw_cancel answers TW_GONE, tw_reset -ENOENT; it counts as cancelled from then on (tw_service_stats)
 *   that was running       they answer TW_RUNNING and -EBUSY (from its own callback -ECANCELED): as after a cancel of its own a
 *                          series ends with that run and a one-shot cannot be re-armed
 * Members that were not running are **settled** later: their releases called, their slots given back. That begins within a tick, also if
 * the service sleeps, and is done in small pieces on the executor. With a manual drive it is done by tw_service_advance, a piece at a time: while
 * any is left tw_service_next_expiry says "now" and the descriptor of tw_service_fd is readable. So TW_GONE from
 * tw_cancel does not say that a release has returned; tw_cancel_wait and tw_group_cancel_wait do. What these two find unsettled,
 * they settle themselves: they wait for nobody but those who run a callback or a release at that moment, and so the releases
 * may run on the calling thread. An executor that refuses is offered the settling again; with TW_REFUSED_DROP the driver settles
 * them; at close its caller does it.
 *
 * All calls may be made from any thread, from callbacks and releases, and at the same time. On a closed service tw_group_create and
 * tw_group_close_then answer -ESHUTDOWN; the others work. The handle of a destroyed group is harmless: -ENOENT. Only the first
 * tw_group_create of a service allocates.
 */
#ifndef TICKWHEEL_GROUP_H
#define TICKWHEEL_GROUP_H

#include "service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a group without members. It lives until it is destroyed, or its service is. Any thread. 64 bytes, and 16 for
 * a completion.
 * 0. -EINVAL: NULL. -ENOMEM. -EAGAIN: max_timers groups (65536 if that is more, 16 Mi at most) exist, those included that were destroyed
 * and have members to settle. -ESHUTDOWN: the service is closed. *out is written on success only.
 */
TW_API int tw_group_create(tw_group *out, tw_service *service);

/*
 * Cancels all members, as tw_cancel does with each of them, in a time that does not depend on their number. Never blocks. The group
 * stays as it is: what is scheduled with it from now on is not concerned.
 * 0. -ENOENT: destroyed, or never was. -EINVAL: service NULL.
 */
TW_API int tw_group_cancel(tw_service *service, tw_group group);

/*
 * Cancels, and waits until each member that was there at the call has come to its end: callbacks and releases have returned, and what
 * they wrote is visible; the args may be freed. Members that are scheduled meanwhile are neither cancelled nor waited for.
 * TW_CANCELLED (0): so it is. TW_RUNNING: timeout_ns ran out (0: it does not wait, and settles nothing). TW_SELF: called from a callback or a
 * release of a member: cancelled, nothing was waited for. -ENOENT, -EINVAL as above. Two callbacks that wait for
 * each other's groups wait for ever.
 */
TW_API int tw_group_cancel_wait(tw_service *service, tw_group group, uint64_t timeout_ns);

/*
 * Cancels, and ends the group: from now on scheduling with it answers -ESHUTDOWN, so that no member can come after those which were cancelled.
 * A group that is closed already stays so. 0, -ENOENT, -EINVAL as tw_group_cancel.
 */
TW_API int tw_group_close(tw_service *service, tw_group group);

/*
 * Closes the group, and calls fn(arg) once when all members have ended.
 *
 * When fn is called, no callback and no release of a member runs, and none will be called. So fn may free what the members
 * used, and destroy the group. A schedule that races with this call becomes a member before fn, or answers -ESHUTDOWN.
 *
 * fn is called on the service's executor, also if the group has no members. A close of the service calls fn on its own
 * thread if the executor has not called it yet. A close that waits answers 0 only after fn has returned. After a close with
 * TW_CLOSE_FLAG_NO_WAIT, the next close that waits, or tw_service_destroy, calls what is left.
 * fn may call whatever a callback may; tw_self() is "no timer" in it. An executor that refuses is offered the call again;
 * with TW_REFUSED_DROP the driver calls fn.
 * A group that was destroyed before its completion ran still completes. When fn is called this call may be about to
 * return on its own thread; a close or destroy of the service waits for that.
 *
 * Threads: any, also a member's own callback or release. Never blocks, allocates nothing, never calls fn inside the call.
 * Returns:
 *   0            fn will be called
 *   -EALREADY    the group has a completion already, or its completion was called; nothing changed
 *   -ENOENT      the group was destroyed, or never was
 *   -ESHUTDOWN   a close that waits has answered 0, or is about to; nothing changed, fn is not called
 *   -EINVAL      service or fn is NULL
 */
TW_API int tw_group_close_then(tw_service *service, tw_group group, tw_fn *fn, void *arg);

/*
 * Closes the group and gives up its handle. Every later call with the handle answers -ENOENT, scheduling too.
 *
 * The group's storage is reused after its last member has ended and its completion was called. The call does not wait:
 * to free what members use, give tw_group_close_then a function that frees it.
 *
 * Threads: any. Never blocks. Returns: as tw_group_cancel.
 */
TW_API int tw_group_destroy(tw_service *service, tw_group group);

/* Gauges of one group, hints: true when looked at. */
struct tw_group_stats {
	size_t size; /* in: sizeof(struct tw_group_stats) */
	uint64_t
	    members; /* timers that have not come to their end: pending, running, or cancelled and not settled yet */
	uint64_t running; /* of these: callbacks under way, each with the release that follows it */
};

/*
 * Fills *out. Takes the group's lock for a moment. 0. -ENOENT: destroyed, or never was. -EINVAL: NULL, or out->size smaller than one gauge.
 * A larger or smaller `size` than the library's is fine, as with tw_service_stats.
 */
TW_API int tw_group_stats(tw_service *service, tw_group group, struct tw_group_stats *out);

#ifdef __cplusplus
}
#endif
#endif
