/*
 * Groups of timers: one compare-and-swap cancels all members; their reap follows in pieces.
 *
 * A group is one word, a handle, and a list. Each member's extension record carries a **tag**: the
 * group's index, and the group's serial number when the member was armed. A cancel moves the serial
 * number on, and so makes all members' tags stale in one step. A thread that meets an armed member
 * with a stale tag (claim, cancel, reset, drop) treats it as cancelled. The list, in order of tags,
 * finds the members that no thread meets. To **reap** a group is to end those members.
 *
 * Cached members, as in biased locking. To enter and to leave the list takes the group's lock,
 * twice for each member. So the first thread that cancels a single member becomes the group's
 * **bias owner**. From then on the extension records of members that it ends stay on the list, and
 * the thread has them in its own small cache (tw__cached_members). The next member that it
 * schedules with the same group takes such a record, without the lock, if no serial number has
 * passed since: tags never fall.
 *   - A walk over the list skips a cached record, since its timer's word has moved on.
 *   - A thread stays the bias owner until the group's index is given back. Other threads enter and
 *     leave under the lock.
 *   - A thread caches at most TW__CACHED_MEMBERS records, so a list has at most that many too many.
 *   - If the bias owner destroys the group, it takes the cached records off the list; else the reap
 *     does.
 *   - There is no bias owner where membarrier does not work.
 * Rejected: to push members without a lock and sweep the dead ones (an atomic operation for each
 * all the same, and lists that are swept while they are walked); lists by thread (each cancel has
 * to look at all threads).
 *
 *     word:  63 ........ 24 |   23   |  22  | 21 ..... 0
 *            serial         | CLOSED | DEAD | running
 *     handle, tag:
 *            63 ........ 24 | 23 ............. 0
 *            serial         | index
 *
 * The handle carries the serial number of the group's creation. Serial numbers are never set back,
 * not by the next group of the index either, and begin at a random value for each service. They
 * wrap after 2^40 cancels of one group. To do harm, these would have to happen between the moment
 * in which a tag is armed and its reap, or during one compare-and-swap.
 *
 * Transition table of the word
 *   from          to                by                   with
 *   DEAD, s       s+1               create               CAS, the list's lock held, after the
 *                                                        handle was stored
 *   s             s+1               cancel               CAS; only under the group's own handle
 *   s             s+1 CLOSED        close                likewise
 *   s             s+1 CLOSED DEAD   destroy              likewise
 *   running n     n+1, n-1          run begins, is over  add, whatever the other bits are
 * The index goes to the next group when the group is DEAD and its list is empty. Destroy, or the
 * last member to leave, finds that out under the lock.
 *
 * How a reap begins:
 *   1. Cancel raises `queued`. If it was down, cancel pushes the group onto the service's stack,
 *      which cannot fail: the link is in the group.
 *   2. The driver takes the stack. It passes each group on as an **entry** of a batch, where a
 *      timer's entry would be (slot 0, with the group's index above it: no timer has slot 0).
 *   3. The thread that runs the entry lowers `queued`, reaps a piece, and pushes the group again
 *      if more is left. An entry that is refused or given back is offered again like a run.
 * So a reap goes to the executor as all runs do. It needs no memory except the wheel's chunks, no
 * slot and no ledger. Its cost is only where a claim fails anyway. Rejected: a hidden timer for
 * each group (a slot each, and exceptions in ledger and listings), or for the service (a slow
 * release would hold up all groups).
 *
 * Completion (completion.c). tw_group_close_then stores fn and arg beside the group, under its
 * lock, and queues the group for a reap. One rule decides when fn runs: **a reap that finds no
 * member left takes the completion under the lock, and calls it.**
 *   - The member that leaves last queues the group again, so that such a reap follows. A close of
 *     the service looks at all groups itself.
 *   - The thread that takes the completion calls fn. The index may be another group's from then on.
 *   - A pending completion counts as a waiter: so no bias owner caches a record whose end nobody
 *     would see (GROUP9), and no thread becomes the bias owner.
 *   - A timer that the bias owner arms while the group closes is taken back, and its schedule
 *     answers -ESHUTDOWN: as a member it could end after fn.
 *
 * Pairing table
 *   GROUP1  claim, cancel, reset of a member: word acquire, tag against it, then CAS of the timer's
 *       word. A fresh tag means that the call comes before the group's cancel, whatever a clock
 *       shows: the CAS decides. Only the thread that made a later claim impossible
 *       (CANCEL_PENDING) answers "gone". Nothing depends on how soon the new serial number is seen.
 *   GROUP2  arm: the tag is read, the list and the timer's word are written under the lock, against
 *       the reap, which walks under the lock after the serial number has moved: a member with a
 *       stale tag is on the list, armed or beyond, for every walk that follows the cancel. (If the
 *       arm came after that walk, it acquires the lock from it, and so reads the new serial
 *       number.)
 *   GROUP3  re-arm: CAS of the timer's word to ARMED, then running-1 (acq_rel), which reads the
 *       serial number: if it has moved, the thread ends the timer itself. Else the cancel's CAS
 *       (acq_rel) comes later in the word's modification order, acquires from it, and the walk sees
 *       the timer armed. Without it a walk that met the timer running, and a re-arm that met a
 *       fresh tag, would both leave it.
 *   GROUP4  queued: cancel's CAS of the word, then exchange 1 (acq_rel) -> exchange 0 (acq_rel),
 *       then walk. A cancel that found it raised is seen by the walk that follows.
 *   GROUP5  stack: CAS seq_cst, then gate word seq_cst, against gate word exchange seq_cst, then
 *       stack seq_cst (park): a group that is pushed while the driver falls asleep is seen by one
 *       of the two. The link is published by the CAS (release) -> exchange (acquire).
 *   GROUP6  leave (under the lock), then finish_bell -> cancel_wait: bell read under the lock that
 *       showed it what to wait for. Callback's and release's writes are visible by the lock, or by
 *       the timer's word (WORD2).
 *   GROUP7  handle: stored, then the word leaves DEAD by CAS (release) -> word acquire, handle:
 *       with a word that is alive, the handle read is the one of that life, or a later one; a CAS
 *       from that word can succeed in that life only.
 *   GROUP8  arm with a cached record: the extension record's `member`, the timer's word ARMED,
 *       compiler barrier, group word, against the cancel's CAS of the group word, heavy barrier,
 *       walk: the gate's GATE2 with the serial number in PARKED's place. If a walk does not see the
 *       timer armed, the bias owner's look that follows sees the serial number moved, and the bias
 *       owner ends the timer itself. Without it a member armed in that moment stays until its time
 *       comes. Who passes the barrier, and when:
 *         - cancel_wait, and a reap if `remote` says that another thread than the bias owner has
 *           cancelled. `remote`: store-release after the CAS, before `queued` is raised; exchange
 *           acquire after `queued` was lowered (GROUP4). The thread that lowers it has that
 *           cancel's serial number behind it when it passes the barrier.
 *         - Not the bias owner's own cancels.
 *         - Once more the thread that drops the cached records of a destroyed group, between a look
 *           that sees the group dead and the walk: else a record is unlinked, its index perhaps
 *           another group's, while the bias owner arms it.
 *       A group without a bias owner may get one that has not seen the cancel only until the
 *       barrier's side has had the lock. A cached record's `member` must be of a generation that is
 *       over. `member` is read (acquire) before the tag, which was written before it: an old tag
 *       is never taken for a new member's.
 *   GROUP9  cache a member: CAS or exchange of the timer's word, then `waiters`, against `waiters`
 *       added to, then the timer's word (cancel_wait), all sequentially consistent: a bias owner
 *       that does not see the waiter has ended the timer before the waiter's look. Without it
 *       cancel_wait sleeps although the last member is gone, and a completion is never called.
 *   GROUP10  completion, fn and arg, and each member's leaving: written under the lock -> read
 *       under the lock (take). A member that leaves after the look that found it sees the
 *       completion, and queues the group (GROUP4). The reap's look without the lock comes after
 *       `queued` was lowered (GROUP4). Without it the last to leave and the reap each leave fn to
 *       the other. That look comes before the reap's barrier (GROUP8), which it passes if it has
 *       seen a completion, whichever thread closed the group. Without it a reap for an earlier
 *       cancel calls fn while a member that the bias owner arms is on its way.
 *   GROUP11  groups.completions: CAS acq_rel (close_then), sub release after fn has returned, the
 *       last access to the service -> CAS acq_rel (close): no completion is left, and none will be
 *       accepted.
 *   GROUP12  linked: store-release 0, the last access of the thread that takes a record off the
 *       list (reap of a destroyed group), under the lock -> load acquire without the lock, by the
 *       thread that caches or arms the record. A thread that reads 0 may write the links again.
 *       Without it the walk reads a link that the record has in its next group's list.
 */
#ifndef TW_WHEEL_GROUP_H
#define TW_WHEEL_GROUP_H

#include "wheel/slot/tag.h"

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers);
void tw__groups_fini(struct tw__groups *groups);

/* Gives back the addresses and nothing else, in a forked child, where the lock may be held. */
void tw__groups_unmap(struct tw__groups *groups);

/* Moves the serial number on, and sets flags: the new word. 0: there is no such group. */
uint64_t tw__group_shift(const tw_service *service, struct tw__group *group, uint64_t handle,
			 uint64_t flags);

#endif
