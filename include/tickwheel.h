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
 *   release   your function that is called once when a timer, job or task has ended; not if
 *             the call that should have scheduled it failed
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
 *     tw_sim_close, tw_sim_step, tw_sim_run_*
 *   tw_action_destroy            yes      yes       yes       yes       yes       no       frees
 *   tw_group_destroy             yes      yes       yes       yes       yes       no       -EPERM
 *   tw_action_scheduler_destroy  yes      yes (4)   yes       yes (4)   yes       no       frees
 *   tw_*_destroy                 alone    yes (4)   yes (2)   yes (4)   yes (2)   no       frees
 *   tw_*_create                  yes      yes       yes       yes       yes       no       yes (5)
 *   tw_current, tw_self,         yes      yes       yes       yes       yes       no       yes
 *     tw_context_*, tw_version, tw_strerror, tw_set_misuse_hook, tw_clock_monotonic,
 *     tw_clock_boottime, tw_executor_inline, tw_service_stats_print, tw_histogram_percentile
 *   every other function (6)     yes      yes       yes       yes       yes       no       -EPERM
 *
 *   (1) Called for the timer, task or action whose callback or release this is, it does not wait:
 *       TW_SELF, or -EDEADLK.
 *   (2) As (1) and (4). A wait for a run that only this thread could carry out does not end: set a
 *       timeout.
 *   (3) In a visitor of tw_service_foreach as on any thread.
 *   (4) From a task, job or callback of the same object: -EDEADLK, unless the object's header says
 *       that it works. A close with timeout 0 does not wait.
 *   (5) -EPERM if it is given an object of the parent.
 *   (6) A function that returns no int returns 0, false or NULL for an object of the parent, or
 *       the same as in the parent.
 *   driver: one thread at a time; inside what the driver runs it returns -EBUSY. one: one thread at
 *   a time. alone: no other call on the object is under way or follows. quiet: no other call on the
 *   service and no callback of it is under way.
 *
 * Apart from that, any two calls may run at the same time, even on the same timer.
 *
 * These calls wait for the driver. Do not make them in an inline callback or a visitor. Do not make
 * them while you hold a lock that such a function takes:
 *
 *   tw_service_close, tw_service_destroy, tw_service_validate, tw_sim_close,
 *   tw_clock_manual_advance_by;
 *   tw_cancel_wait, tw_group_cancel_wait: if the driver runs the callback that they wait for
 *
 * Waits that you must not do. A call waits for its own caller, and is refused, if a callback, task,
 * job or release of an object waits for that object. The library looks no further. These waits end
 * with their timeout or never, and no call notices them:
 *
 *   - A wait for a run, if only this thread could carry it out. In a pool with max_workers 1 a task
 *     waits for a job on that pool. A task of a strand closes a service on that strand. An inline
 *     callback waits for another one. A thread waits for what it alone would pump.
 *   - The same on all workers of a pool: each waits for a run that needs one more worker.
 *   - Two objects whose callbacks wait for each other: each closes the other one's service.
 *   - A wait for a callback, while you hold a lock that the callback takes.
 *   - In a `done` that a close of a limiter calls: a wait for a job that the close drops later.
 *
 * Such a thread calls with timeout 0, or leaves the wait to another thread, or uses a call that
 * does not wait (tw_group_close_then, tw_limiter_close_then, tw_strand_destroy).
 *
 * timer.h has two more tables: after which result arg may be freed, and how a timer ends.
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
 *        over in that order. A timer that was reset, or is a series, is ordered when
 *        it is filed.
 *   G7   Callbacks may call anything. A wait from inside the same object is refused. Waits across
 *        objects are yours: see "Waits that you must not do" above.
 *   G8   A callback that blocks delays other timers by a few milliseconds at most, until
 *        max_workers callbacks block. An inline callback delays all.
 *   G9   Quiet. A service without timers never wakes up. Otherwise it wakes up for the next
 *        expiry, and a few times to move far timers, and once after a storm (G11).
 *   G10  After a stall, catching up costs what is due, not the ticks that were missed.
 *   G11  Cancelled timers free their memory. A slot is free immediately. After a storm, memory goes
 *        back to the system in pieces, all but 8 bytes for each slot ever used.
 *   G12  No spikes. Large work of the service itself is spread over ticks.
 *   G13  Manners. The service's threads block all signals except those of their own faults, have
 *        names, and take affinity, priority and stack size from the config. The tick thread
 *        never allocates.
 *
 * Time. Durations and instants are unsigned 64-bit nanoseconds. Deadlines are on the scale of
 * tw_service_now. A delay is rounded up to ticks. A deadline in the past is due immediately. A
 * delay above TW_MAX_DELAY_NS is refused with -ERANGE, never shortened; so is a deadline that is
 * more than TW_MAX_DELAY_NS after the service's creation. Time in suspend does not count, except on
 * tw_clock_boottime().
 *
 * Visibility. A callback sees what the thread wrote before it scheduled. What a callback wrote is
 * visible to its release, to its next run, and to a tw_cancel_wait that waited for it.
 *
 * Memory. A service maps its arrays in steps as timers need them. A default service takes 45 MB of
 * address space, besides its threads' stacks. It touches about 50 bytes for each pending timer, and
 * maps about 210. A member of a group touches 16 more, a timer with a release, a name, a context or
 * an executor 40, a series 80. A group takes 64. A schedule returns -ENOMEM where no more can be
 * mapped, for instance under `ulimit -v`. A core dump has what is in use. After a storm of timers
 * 90 % of the memory goes back to the system within 15 seconds.
 *
 * Structs that begin with `size` must have it set: use TW_INIT. A size of 0 is -EINVAL, except in a
 * config whose other members are all 0. Non-zero bytes beyond what the library knows are -E2BIG.
 *
 * Errors are negative errno values; tw_strerror explains them, and tw_set_misuse_hook gets the
 * reason of a bad argument. A refused call has changed nothing; tw_limiter_close tells of an
 * exception. What a call was given, such as arg, stays yours.
 *
 * Cancellation. No call is a cancellation point of pthread_cancel: a pending request acts after the
 * call. The calls that are there to run callbacks disable cancellation meanwhile:
 * tw_service_advance, tw_manual_pump, tw_run_one, tw_scheduler_run, tw_action_scheduler_flush. A
 * close, a destroy and tw_clock_manual_advance_by do so, too. In other calls a release, hook or
 * visitor must not be cancelled: a thread that may be cancelled disables cancellation there. No
 * such function may end its thread otherwise.
 *
 * Fork. In the child no thread of the parent's services lives. There a call on an object of the
 * parent returns -EPERM. A call that returns a time, such as tw_service_now, returns 0. A call that
 * returns a bool, such as tw_is_pending, returns false. A destroy frees memory, in the same order
 * as in the parent: strands and other layers, then services, then pools, executors and clocks. The
 * child may create objects of its own.
 * A callback may fork, too: its child must end inside that callback, by exec or _exit. If the
 * callback returns in the child, the behavior is undefined. A child that was made without the
 * handlers of pthread_atfork (_Fork, a raw clone) must not call the library.
 *
 * Unloading. A plugin that contains the static library may be unloaded (dlclose) after its services
 * and pools are destroyed. Threads that have used it may live on, and end at any time afterwards. A
 * thread that ends while it is unloaded must have been joined before. The shared library is never
 * unloaded.
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

/* Handy factors for nanoseconds. */
#define TW_MICROSECOND UINT64_C(1000)
#define TW_MILLISECOND UINT64_C(1000000)
#define TW_SECOND UINT64_C(1000000000)

#endif
