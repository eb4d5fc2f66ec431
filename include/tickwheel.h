/*
 * tickwheel: a timer service for multithreaded programs.
 *
 * Any thread schedules, moves and cancels timers, without locks; one tick thread keeps a hashed hierarchical timing
 * wheel (Varghese and Lauck, 1987); a pool of workers runs what is due.
 *
 *     tw_service *service;
 *     tw_service_create(&service, NULL);
 *     tw_timer timeout;
 *     tw_schedule(service, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *     ...
 *     if (tw_cancel(service, timeout) == TW_CANCELLED)
 *             free(connection);
 *
 * Threads. Who may call what, and beside what:
 *
 *   caller                     create  schedule*  cancel       cancel_wait   close*        advance    destroy
 *                                      reset*     is_pending    group_
 *                                      stats_get  remaining     cancel_wait
 *                                      liveness_get
 *   any thread                 yes     yes        yes          yes           yes           one at a   alone
 *                                                                                          time
 *   a callback of the service  yes     yes        yes          yes (itself:  -EDEADLK      -EBUSY     -EDEADLK
 *                                                              TW_SELF)                    if nested
 *   a signal handler           no      no         no           no            no            no         no
 *
 * The column of tw_service_advance holds for tw_service_next_expiry and the first tw_service_fd, too.
 * All but destroy may run side by side with all, on the same timer too: the control word of each timer decides.
 * "Alone": no other call on the service is under way or will follow.
 *
 * Lifetime. A service lives from create to destroy; its clock and its executor must outlive it. A timer lives from a
 * successful schedule until it has fired, was cancelled, or was dropped (at close, or as too late): exactly one of these (G3). Its handle is
 * a number and may be kept for ever. fn and arg are the library's to call until one of these answers:
 *   tw_cancel       TW_CANCELLED: arg is yours again. TW_RUNNING: not yet. TW_GONE: nothing of it will be called again
 *                   if you know that the callback has returned; tw_cancel_wait tells. (But for the release
 *                   of a timer whose group was cancelled: group.h.)
 *   tw_cancel_wait  TW_CANCELLED, TW_GONE, TW_FINISHED: arg is yours again.
 *   release         called once at the end, whatever it was; arg is yours again there.
 *
 * Ends. What destroy does, where it may be called; NULL is always fine, and each header says more:
 *
 *   service, pool                 ends what waits (service: dropped; pool: run first), and waits for what runs. -EBUSY while others stand on it:
 *                                 these first. -EDEADLK from inside.
 *   strand, scheduler             ends what waits, and waits for what runs on another thread (a strand not on a pool: no wait). What an
 *                                 executor holds of it is passed over in its time, and its memory goes then: the service's close waits for that.
 *                                 A strand also from its own task.
 *   action                        ends it, also from its own work; the memory goes when that has returned.
 *   action scheduler, limiter, semaphore, tw_manual, tw_sim, manual clock: -EBUSY while something of theirs has not ended; nothing changed.
 *   group                         closes it, which cancels its members, and gives its handle up.
 *
 * Time. All durations and instants are unsigned 64-bit nanoseconds. Deadlines are on the scale of tw_service_now(). Delays are
 * rounded up to ticks, never down; a past deadline is due at once; beyond TW_MAX_DELAY_NS the answer is -ERANGE, nothing
 * is ever clamped. Real time spent in suspend does not count on the monotonic clock; it does on tw_clock_boottime().
 *
 * Guarantees.
 *   G1  Never early: a callback starts no sooner than the clock at entry to tw_schedule or tw_reset plus the delay.
 *       (The one exception: TW_CLOSE_RUN.)
 *   G2  Bounded lateness while the machine keeps up: 2 ticks plus dispatch for delays, 1 for deadlines.
 *   G3  One fate: fired, cancelled, dropped, or dropped as too late, exactly once; the ledger in struct tw_service_stats balances.
 *   G4  Cancel wins until a worker has claimed the run; so does a reset to later.
 *   G5  Safe handles: a stale, foreign or random handle is harmless (taken for a live one: chance 2^-32).
 *   G6  Order: what one thread schedules in turn with equal delays, or for one tick, is handed over in that order. A timer
 *       that was reset, is a series, or has slack takes its place when it is filed.
 *   G7  Callbacks may call anything; only calls that would wait for their own caller are refused.
 *   G8  A slow callback delays no other timer until its pool has max_workers blocked (inline execution excepted).
 *   G9  Quiet when idle: an empty service never wakes up; otherwise one wake-up for the next live expiry, and
 *       at most 8 per coarse bucket to move far timers nearer; and after a storm, once, some ten seconds of sleep later, a
 *       few ticks in which memory goes back (G11).
 *   G10 Catching up after a stall costs what is due, not the ticks missed.
 *   G11 Cancelled timers cost no memory for long: the slot is free at once (of a member that ended with its group: once
 *       settled), what else they leave behind is bounded. After a storm, when more than twice of what is needed has been held
 *       for a second (ten more, if nothing wakes the tick thread), memory goes back to the system, a little in each tick:
 *       records, side records, entries, lanes; all but 8 bytes for each slot ever used, which make old handles harmless (G5).
 *       A tick thread ticks until that is done; a manually driven service does it in its turns.
 *   G12 No spikes: moving far timers nearer and sweeping dead ones is spread over the ticks.
 *   G13 Manners: the service's threads block all signals but those that report their own faults, carry names, and take
 *       affinity, priority and stack size from the config. The tick thread never allocates, but for callbacks that run on it (inline).
 *
 * Errors are negative errno values, listed with each function; ordinary outcomes are not errors. A refused call has
 * changed nothing. NULL for a service is -EINVAL everywhere but in tw_service_destroy. In a forked child: -EPERM.
 *
 * Fork, at any time, from any thread. The parent notices nothing. In the child:
 *   - Each call on a service of the parent answers -EPERM and changes nothing (bool: false; tw_service_now, tw_overruns: 0;
 *     tw_self: "no timer").
 *   - tw_service_destroy answers 0. It gives the address space back and closes descriptors. It joins no thread and calls
 *     no release. Small blocks of the parent's threads stay until the child ends.
 *   - Manual clocks of the parent answer -EPERM, and can be destroyed.
 *   - The child may create services and clocks of its own.
 * A callback, a release or any other function that the library calls may fork too. Its child must end inside that function,
 * by exec or _exit. If the function returns in the child, the behavior is undefined: the child would go on with the parent's
 * work. tw_service_destroy answers -EDEADLK inside a callback, also in its child.
 */
#ifndef TICKWHEEL_H
#define TICKWHEEL_H

#include "tickwheel/action.h"
#include "tickwheel/clock.h"
#include "tickwheel/context.h"
#include "tickwheel/executor.h"
#include "tickwheel/group.h"
#include "tickwheel/limiter.h"
#include "tickwheel/manual.h"
#include "tickwheel/misuse.h"
#include "tickwheel/pool.h"
#include "tickwheel/scheduler.h"
#include "tickwheel/semaphore.h"
#include "tickwheel/service.h"
#include "tickwheel/sim.h"
#include "tickwheel/stats.h"
#include "tickwheel/strand.h"
#include "tickwheel/version.h"

/* Handy factors for nanoseconds. */
#define TW_MICROSECOND UINT64_C(1000)
#define TW_MILLISECOND UINT64_C(1000000)
#define TW_SECOND UINT64_C(1000000000)

#endif
