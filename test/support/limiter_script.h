/*
 * Scripts (script.h) of one limiter, on a clock that they move. Its executor is the queueing one,
 * which is emptied at the end of each step.
 *
 * Given: limit=1 pending=N rate=STARTS interval=MS, collect, paused, paused_refuses, no_queue;
 * hooks: says "started 0", "retried 0 after 5", "settled 0" and "idle"; [CALLS]
 * are made in the first idle event; inline: on the driving
 * thread, by ticks of 50 us. The limiter runs, unless it is `paused`.
 *
 *   submit N.. OPTION..   jobs. Each says "start 0" for an attempt, "stop 0 cancelled", and how it
 *                         settled: "0 ok", "0 failed EIO", "0 cancelled", "0 cancelled EINTR",
 *                         "0 timed out", "0 dropped"; and "release 0" if that does not follow.
 *       held              asynchronous, ended by `end`; takes=MS: asynchronous; async: the same,
 *                         and its function returns what it would
 *       stays=MS          nobody looks while its first attempt runs
 *       error=EIO         of all attempts, or of the first fails=N
 *       retries=N delay=MS factor=PERCENT cap=MS deadline=MS
 *       queue=MS attempt=MS total=MS (timeouts) priority=N permits=N keep
 *       waits             for room; too_late: until an instant that has passed
 *       bare              without callbacks; no_stop, no_done
 *       asks              retry.allow says "asked about EIO of 1, 5", the attempt and the delay;
 *                         refuse: it refuses; chosen=MS: the delay; 0 or less is in ns
 *       {CALLS}           made in its function; or by asks, in_started, in_retried, in_stop,
 *                         in_done
 *       [CALLS]           made in its release
 *   submit_waiting N ..   one, by a thread that waits for room; until: for 50 s, by an instant.
 *                         submitted: the thread has returned
 *   end N [EIO]           completes the attempt that N began last, or attempt=K; complete N: by its
 *                         handle
 *   cancel, state, released N; wait N [MS]; priority N P
 *   pause, resume, close drop|drain [MS], destroy (it must fail),
 *   limit N, rate STARTS MS, wait_idle [MS], on_idle N [{CALLS}]
 *   misuse                says the last text of the misuse hook
 *   stats NAME..          gauges and counters; result N NAME..: id, attempts, queued, run; times:
 *                         how many jobs have a time to keep, and whether a timer is armed for them
 *
 * At the end each accepted job has settled once and was released once.
 */
#ifndef TEST_SUPPORT_LIMITER_SCRIPT_H
#define TEST_SUPPORT_LIMITER_SCRIPT_H

#include "limited.h"
#include "script.h"

extern const struct stage limiter_stage;
extern struct limited script_home; /* of the script that plays */

#endif
