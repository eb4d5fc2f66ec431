/*
 * tickwheel: timers for multithreaded programs.
 *
 * Any thread schedules, moves and cancels timers, without a lock. One thread of the service files
 * them in a timing wheel. A pool of worker threads runs the callbacks.
 *
 *     tw_service *service;
 *     tw_service_create(&service, NULL);
 *     tw_timer timeout;
 *     tw_schedule(service, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *     ...
 *     if (tw_cancel(service, timeout) == TW_CANCELLED)
 *             free(connection);
 *
 * Words used in all headers:
 *
 *   tick      the resolution of a service, 1 ms by default; deadlines are rounded up to ticks
 *   slot      the place of one timer in a service; a handle is a slot and a generation
 *   lane      a thread's queue of new entries, which the driver empties
 *   driver    the thread that files timers and hands out due ones: the tick thread, or the
 *             caller of tw_service_advance (during a close: the thread that closes)
 *   executor  runs callbacks: the service's pool, another pool, a strand, or your own
 *   run       one execution of a callback
 *   claim     the step in which a worker takes a run; before it, a cancel wins
 *   release   your function that is called once when a timer, job or task has ended
 *
 * Rules for every function, unless its own text says otherwise:
 *
 *   - Any thread may call it at any time, and it never blocks. A destroy runs alone.
 *   - An int is 0, another outcome, or a negative errno. After an error nothing has changed, what
 *     you passed stays yours, and no release is called. *out is not written, but the schedules of
 *     timers and strands set it to 0, except after -EINVAL and -E2BIG.
 *   - A pointer must not be NULL (-EINVAL). A function that returns no int returns 0, false or NULL
 *     for NULL.
 *   - In a forked child a call on an object of the parent returns -EPERM (0, false or NULL), and a
 *     destroy frees memory, unless the table below says otherwise.
 *   - A callback sees what its thread wrote before it scheduled or submitted.
 *   - Time is in nanoseconds. A deadline is on the scale of tw_service_now. A delay is rounded up
 *     to ticks. Beyond TW_MAX_DELAY_NS it is refused (-ERANGE), never shortened. A timeout of
 *     TW_FOREVER has no limit.
 *   - A struct that begins with `size` must have it set: use TW_INIT. A size of 0 is -EINVAL,
 *     except in a config whose other members are all 0. Bytes other than 0 beyond what the library
 *     knows are -E2BIG. A struct that a call fills may be older or newer than the library.
 *   - A member that is 0 has its default or is not used. Reserved members are 0.
 *
 * Who may call what:
 *
 *   function                     any      callback  inline    release   visitor   signal   forked
 *                                thread   on pool   callback                      handler  child
 *   tw_cancel_wait,              yes      yes (1)   yes (2)   yes (1)   yes (2)   no       -EPERM
 *     tw_group_cancel_wait, tw_strand_cancel_wait, tw_job_wait, tw_limiter_wait_idle,
 *     tw_action_close, tw_semaphore_acquire, tw_pool_submit_wait
 *   tw_service_close             yes      -EDEADLK  -EDEADLK  -EDEADLK  -EDEADLK  no       -EPERM
 *   tw_service_advance,          driver   driver    -EBUSY    driver    -EBUSY(3) no       -EPERM
 *     tw_service_next_expiry, tw_service_fd (its first call)
 *   tw_service_destroy           alone    -EDEADLK  -EDEADLK  -EDEADLK  -EDEADLK  no       frees
 *   tw_service_validate          quiet    no        -EBUSY    no        no        no       -EPERM
 *   tw_strand_close,             yes      yes (4)   yes (2)   yes (4)   yes (2)   no       -EPERM
 *     tw_limiter_close, tw_scheduler_close, tw_pool_close
 *   tw_clock_manual_advance_by,  one      yes (4)   yes (4)   yes (4)   no        no       -EPERM
 *     tw_sim_close, tw_sim_step, tw_sim_run
 *   tw_action_destroy            yes      yes       yes       yes       yes       no       frees
 *   tw_group_destroy             yes      yes       yes       yes       yes       no       -EPERM
 *   tw_action_scheduler_destroy  yes      yes (4)   yes       yes (4)   yes       no       frees
 *   tw_*_destroy                 alone    yes (4)   yes (2)   yes (4)   yes (2)   no       frees
 *   tw_*_create                  yes      yes       yes       yes       yes       no       yes (5)
 *   tw_current, tw_self,         yes      yes       yes       yes       yes       no       yes
 *     tw_context_*, tw_version, tw_strerror, tw_set_misuse_hook, tw_set_allocator,
 *     tw_clock_monotonic, tw_clock_boottime, tw_clock_now, tw_executor_inline, tw_pool_executor,
 *     tw_manual_executor, tw_histogram_percentile, tw_sim_service
 *   every other function         yes      yes       yes       yes       yes       no       -EPERM
 *
 *   (1) Called for the timer, task or action whose callback or release this is, it does not wait:
 *       TW_SELF, or -EDEADLK.
 *   (2) As (1) and (4). A wait for a run that only this thread could carry out does not end: set a
 *       timeout.
 *   (3) In a visitor of tw_service_foreach as on any thread.
 *   (4) From a task, job or callback of the same object: -EDEADLK, unless its page says that it
 *       works. A close with timeout 0 does not wait. A strand's task may destroy its own strand.
 *   (5) -EPERM if it is given an object of the parent.
 *   driver, one: one thread at a time; inside what the driver runs, -EBUSY. alone: no other call on
 *   the object is in progress or follows. quiet: nor is a callback of the service.
 *
 * Guarantees:
 *
 *   G1   Never early. A callback starts no sooner than the time of the call plus the delay.
 *        TW_CLOSE_RUN is the exception.
 *   G2   Late by at most 2 ticks (a delay) or 1 tick (a deadline), plus the hand-over to a worker,
 *        while the machine keeps up.
 *   G3   One end. Each timer ends once, as in timer.h; the counters of tw_service_stats add up.
 *   G4   A cancel, or a reset to a later time, succeeds until a worker has claimed the run.
 *   G5   Safe handles. A stale, foreign or random handle does no harm. The chance that it names
 *        a live timer is 2^-32.
 *   G6   Order. Timers that one thread schedules with equal delays, or for one tick, are handed
 *        over in that order. A timer that was reset, or is a series, is ordered when it is filed;
 *        while the tick thread is late, so is one that is less than 24 ticks ahead.
 *   G7   Callbacks may call anything. A wait from inside the same object is refused. Waits across
 *        objects are yours: tickwheel_threads(7).
 *   G8   A callback that blocks delays other timers by a few milliseconds at most, until
 *        max_workers callbacks block. An inline callback delays all.
 *   G9   Quiet. A service without timers never wakes up, except once for G11. Otherwise it wakes up
 *        for the next expiry, and a few times for timers that are hours away.
 *   G10  After a stall, catching up costs what is due, not the ticks that were missed.
 *   G11  Memory goes back. The slot of a cancelled timer is free immediately. After many timers
 *        have ended, at most 8 bytes for each slot ever used stay.
 *   G12  No spikes. Large work of the service itself is spread over ticks.
 *   G13  Manners. The service's threads block all signals except those of their own faults, have
 *        names, and take affinity, priority and stack size from the config. The tick thread
 *        never allocates.
 *
 * The manual goes on: tickwheel_threads(7), tickwheel_memory(7), tickwheel_close(7),
 * tickwheel_errors(7).
 */
#ifndef TICKWHEEL_H
#define TICKWHEEL_H

#include "tickwheel/clock.h"
#include "tickwheel/context.h"
#include "tickwheel/executor.h"
#include "tickwheel/group.h"
#include "tickwheel/manual.h"
#include "tickwheel/misuse.h"
#include "tickwheel/pool.h"
#include "tickwheel/service.h"
#include "tickwheel/stats.h"
#include "tickwheel/task.h"
#include "tickwheel/timer.h"
#include "tickwheel/version.h"

/* Factors for nanoseconds. */
#define TW_MICROSECOND UINT64_C(1000)
#define TW_MILLISECOND UINT64_C(1000000)
#define TW_SECOND UINT64_C(1000000000)

#endif
