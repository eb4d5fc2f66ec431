/*
 * Groups of timers: cancelled together by one compare-and-swap, settled afterwards in pieces.
 *
 * A group is one word, a handle, and a list. Each member's extension record carries a **tag**: the
 * group's index and its serial number when the member was armed. Cancelling moves the serial number
 * on, and so makes all members' tags stale in one step. A thread that meets a stale member that is
 * armed (claim, cancel, reset, drop) treats it as cancelled. The list, in order of tags, is for
 * finding those whom nobody comes upon.
 *
 * Kept members. Entering and leaving the list takes the group's lock, twice for each member. So the
 * first thread that cancels a member by itself becomes the group's **keeper**: from then on the
 * extension records of members that it ends stay on the list, in its own small stack (tw__kept),
 * and the next member that it schedules with the same group takes such a record where it is,
 * without the lock, if no serial number has passed since: tags never fall. Who walks the list
 * passes over a kept record, since its timer's word has moved on. A keeper stays one until the
 * group's index is given back; other threads enter and leave under the lock. At most TW__KEPT
 * records a thread are kept, so that is what a list has too many; a destroyed group's are taken off
 * by the keeper if it destroys it, else by settling. Only where membarrier works. Rejected: pushing
 * members without a lock and sweeping the dead (an atomic operation for each all the same, and
 * lists that must be swept while they are walked); lists by thread (each cancel has to look at all
 * threads).
 *
 *     word:  63 ........ 24 |   23   |  22  | 21 ..... 0
 *            serial         | CLOSED | DEAD | running
 *     handle, tag:
 *            63 ........ 24 | 23 ............. 0
 *            serial         | index
 *
 * The handle carries the serial number of the group's birth. Serial numbers are never set back, not
 * by the next life of the index either, and begin at a random value for each service; they come
 * round after 2^40 cancels of one group, which would have to pass between a tag's arming and its
 * settling, or under one compare-and-swap.
 *
 * Transition table of the word
 *   from          to                by                   with
 *   DEAD, s       s+1               create               CAS, the list's lock held, after the
 *                                                        handle was stored
 *   s             s+1               cancel               CAS; only under the group's own handle
 *   s             s+1 CLOSED        close                likewise
 *   s             s+1 CLOSED DEAD   destroy              likewise
 *   running n     n+1, n-1          run begins, is over  add, whatever the rest is
 * The index goes to the next group when it is DEAD and its list is empty: found out under the lock,
 * by destroy or by the last member to leave.
 *
 * The hand-over to settling: cancel raises `queued` and, if it was down, pushes the group onto the
 * service's stack, which cannot fail: the link is the group's own. The driver takes the stack and
 * passes each group on as an **entry** in a batch, in the place of a timer's (slot 0, the group's
 * index above it: slot 0 is no timer's). So settling takes the way of every run to any executor,
 * needs no memory beyond the wheel's chunks, no slot and no ledger of its own, and pays where a
 * claim fails anyway: timers know nothing of it. Whoever runs the entry lowers `queued`, settles a
 * piece, and pushes the group again if there is more. A refused or given-back entry is offered
 * again like a run. Rejected: a hidden timer for each group (a slot each, and exceptions in ledger
 * and listings), or for the service (a slow release would hold up all groups).
 *
 * Completion (completion.c). tw_group_close_then stores fn and arg beside the group, under its
 * lock, and queues the group for settling. One rule decides when fn runs: **settling that finds no
 * member left takes the completion under the lock, and calls it.** A member that leaves last queues
 * the group again, so that such a settling follows. A close of the service looks at all groups
 * itself. Whoever takes the completion first calls fn; the group may be another's from then on. A
 * pending completion counts as a waiter: so no keeper keeps a record that nobody would hear of
 * (GROUP9), and none becomes a keeper. A timer that its keeper arms while the group closes is taken
 * back, and its schedule answers -ESHUTDOWN: as a member it could end after fn.
 *
 * Pairing table
 *   GROUP1  claim, cancel, reset of a member: word acquire, tag against it, then CAS of the timer's
 *       word. Fresh tag: the call comes before the group's cancel, whatever the clock on the wall
 *       says: the CAS decides, and an answer "gone" is given only by whoever made a later claim
 *       impossible (CANCEL_PENDING). Nothing hangs on how soon the new serial number is seen.
 *   GROUP2  arm: the tag is read, the list and the timer's word are written under the lock, against
 *       settling, which walks under the lock after the serial number has moved: a member with a
 *       stale tag is on the list, armed or beyond, for every walk that follows on the cancel. (If
 *       the arm came after that walk, it acquires the lock from it, and so reads the new serial
 *       number.) A batch enters in its first pass, while the words are free: walks pass over them.
 *       Its second pass takes the lock again, looks at the tag, and stores ARMED or RELEASING: a
 *       walk before it is acquired by it, so that the tag is seen stale; one after it sees the
 *       word.
 *   GROUP3  re-arm: CAS of the timer's word to ARMED, then running-1 (acq_rel), which reads the
 *       serial number: if it has moved, it settles the timer itself. Else the cancel's CAS
 *       (acq_rel) comes later in the word's modification order, acquires from it, and the walk sees
 *       the timer armed. Without it a walk that met it running, and a re-arm that met a fresh tag,
 *       would both leave it.
 *   GROUP4  queued: cancel's CAS of the word, then exchange 1 (acq_rel) -> exchange 0 (acq_rel),
 *       then walk. A cancel that found it raised is seen by the walk that follows.
 *   GROUP5  stack: CAS seq_cst, then gate word seq_cst, against gate word exchange seq_cst, then
 *       stack seq_cst (park): a group pushed while the driver falls asleep is seen by one of the
 *       two. The link is published by the CAS (release) -> exchange (acquire).
 *   GROUP6  leave (under the lock), then finish_bell -> cancel_wait: bell read under the lock that
 *       showed it what to wait for. Callback's and release's writes are visible by the lock, or by
 *       the timer's word (WORD2).
 *   GROUP7  handle: stored, then the word leaves DEAD by CAS (release) -> word acquire, handle:
 *       with a word that is alive, the handle read is the one of that life, or a later one; a CAS
 *       from that word can succeed in that life only.
 *   GROUP8  arm with a kept record: the extension record's `member`, the timer's word ARMED,
 *       compiler barrier, group word, against the cancel's CAS of the group word, heavy barrier,
 *       walk: the gate's GATE2 with the serial number in PARKED's place. A walk that does not see
 *       the timer armed is followed by a look that sees the serial number moved, and then the
 *       keeper settles the timer itself. The barrier is passed by cancel_wait, and by settling if
 *       `foreign` says that another than the keeper has cancelled: store-release after the CAS,
 *       before `queued` is raised; exchange acquire after it was lowered (GROUP4): whoever takes it
 *       down has that cancel's serial number behind it as it passes the barrier. The keeper's own
 *       cancels need none. And once more by who throws out what is kept of a destroyed group,
 *       between a look that sees it dead and the walk: else a record is unlinked, its index perhaps
 *       another group's, while its keeper arms it for good. A group without a keeper may get one
 *       that has not seen the cancel only until the barrier's side has had the lock. Without it a
 *       member armed in that moment stays until its time comes. A kept record's `member` must be of
 *       a generation that is over: a batch that is taken back keeps none (schedule_bulk.c).
 *       `member` is read (acquire) before the tag, which was written before it: an old tag is never
 *       taken for a new member's.
 *   GROUP9  keep: CAS or exchange of the timer's word, then `waiters`, against `waiters` added to,
 *       then the timer's word (cancel_wait), all sequentially consistent: a keeper that does not
 *       see the waiter has ended the timer before the waiter's look. Without it cancel_wait sleeps
 *       though the last member is gone, and a completion is never called.
 *   GROUP10  completion, fn and arg, and each member's leaving: written under the lock -> read
 *       under the lock (take). Whoever leaves after the look that found a member sees the
 *       completion, and queues the group (GROUP4). The look without the lock (settling) comes after
 *       `queued` was lowered (GROUP4). Without it the last to leave and the settling each leave fn
 *       to the other. That look comes before the settling's barrier (GROUP8), which it passes if it
 *       has seen a completion, whoever closed the group. Without it a settling for an earlier
 *       cancel calls fn while a member that its keeper arms is on its way.
 *   GROUP11  groups.completions: CAS acq_rel (close_then), sub release after fn has returned, the
 *       last access to the service -> CAS acq_rel (close): no completion is left, and none will be
 *       accepted.
 *   GROUP12  linked: store-release 0, the last access of the thread that takes a record off the
 *       list (settling of a destroyed group), under the lock -> load acquire without the lock, by
 *       the thread that keeps or arms the record. A thread that reads 0 may write the links again.
 *       Without it the walk reads a link that the record has in its next group's list.
 */
#ifndef TW_WHEEL_GROUP_H
#define TW_WHEEL_GROUP_H

#include "wheel/slot/tag.h"

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers);
void tw__groups_fini(struct tw__groups *groups);

/* Moves the serial number on, and sets flags: the new word. 0: there is no such group. */
uint64_t tw__group_shift(const tw_service *service, struct tw__group *group, uint64_t handle,
			 uint64_t flags);

#endif
