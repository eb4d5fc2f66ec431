/*
 * Groups of timers: a list of members under a small lock. A member's place is in an array beside
 * the control words (struct tw__link). Its record names the group, and its word says EXT.
 *
 * Rules
 *   1. Schedule takes the lock, refuses if the handle is void or the group closed, appends the slot
 *      under the group's serial number, stores the word, and gives the lock up. Then it pushes the
 *      entry.
 *   2. Claim, re-arm, series, disarm and reset touch no list.
 *   3. The thread that makes a member's word free takes the slot off the list, and then gives it
 *      back. So a listed slot is its member's, or free for a moment, and a walk compares no
 *      generations.
 *   4. Cancel moves the serial number on, and walks from the front to the members of later numbers,
 *      A_HOLD ends a hold. A member that waits ends by the compare-and-swap that any thread would
 *      use. Without a release its word is free, and it leaves. With one it is RELEASING, moves to
 *      the list of ending members, and is owed to this call. A member that runs gets ENDED, and
 *      leaves at its end. A member that is free or RELEASING is another thread's, and is skipped.
 *      There are as many of these two kinds as threads, so the walk begins at the front each time.
 *   5. After the walk the canceling thread calls the releases that are owed to it, without the
 *      lock. A release that waits for a timer whose release is owed on the same thread gets
 *      -EDEADLK.
 *   6. The members of each list are in the order of their serial numbers. So cancel_wait is over
 *      when both fronts have later numbers than its own.
 *   7. The thread that empties a closed group queues its completion (run/completion.c).
 *   8. Destroy makes the handle void. The index goes to another group when the group is dead and
 *      empty, and its completion is over. One thread sees that, under the lock. It also makes the
 *      next group's handle, and moves the serial number on. So create needs no lock of a group.
 *
 * Serial numbers wrap. If the oldest member is 2^30 numbers back, which takes as many cancels while
 * it runs, cancel does not move the number on: it then also ends members that enter during the
 * call.
 *
 * The lock is a leaf: no other lock is taken and nothing is called under it. Between two holds a
 * walk gives way to threads that want the lock.
 *
 * Weak at: many threads that schedule into one group. A group for each connection is the intended
 * use.
 *
 * Rejected: a serial number in each member's tag, so that a cancel is one step. It needs a reaper,
 * and each claim, reset and cancel has to compare.
 *
 * Pairing table
 *   GROUP1  enter, leave, walk: each under the lock. A walk that comes after an entering finds the
 *       member on the list, with its word stored. One that came before has moved the serial number.
 *       Without the lock around the store of the word a walk could skip a member as free.
 *   GROUP2  leave (under the lock), then finish_bell -> cancel_wait: bell read under the lock that
 *       showed it what to wait for. What callbacks and releases wrote is visible by the lock.
 *   GROUP3  completion: written under the lock. DUE once, by the thread that sees the group closed
 *       and empty; from DUE the work's run and a close of the service contend under the lock, and
 *       one of them calls fn.
 */
#ifndef TW_WHEEL_GROUP_H
#define TW_WHEEL_GROUP_H

#include "wheel/core/service.h"

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers);

/* Gives back the addresses. Takes no lock: also in a forked child. */
void tw__groups_unmap(struct tw__groups *groups);

/*
 * A cancel, of the public function `call`. then: the completion, or NULL; -EALREADY: there is one.
 * The serial number of the last members that it has ended, or an errno.
 */
enum tw__group_end { TW__GROUP_STAYS, TW__GROUP_CLOSES, TW__GROUP_DIES };
int64_t tw__group_cancel(const char *call, tw_service *service, tw_group handle,
			 enum tw__group_end end, const struct tw__completion *then);

#endif
