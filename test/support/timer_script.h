/*
 * Scripts (script.h) of timers and groups of one service, on a clock that they move. By default
 * the driver runs the callbacks. Given: queued: the queue does; workers=N: a pool of that size
 * does; real: the clock is the monotonic one, and there is a tick thread unless by_hand.
 *
 *   timer N.. OPTION..   timers, each of which says "run 0", and what is not as usual: "late=5",
 *                        "overruns=2", "closing". in=MS; at=MS, since the start; never;
 *                        every=MS first=MS count=N: a series, by instants, or by delays if delayed;
 *                        coalesce, burst; plain: without a release; silent; persistent;
 *                        background;
 *                        other: its executor is the queue; group=N; named=N: under this context;
 *                        stays=MS: nobody looks while it runs; {CALLS}, in its first run or
 *                        times=N runs; [CALLS]
 *   reset N.. by=MS, or at=MS; earlier N.. by=MS; says KEPT
 *   cancel N.., cancel_wait N.. within=MS, disarm N..
 *   left N..             says "left 5", or an error
 *   self                 says "self 0", or "self none"
 *   group N.., group_cancel N.., group_wait N.. within=MS, group_close N.., group_destroy N..
 *   then N {CALLS}       when the group has ended, "done 0" is said; members N: "members=1"
 *   close MODE [MS]      drop, run or drain; without a timeout if none is named
 *   destroy, move_clock, validate    calls of the service; poll, or poll BUDGET, says how many ran
 *   over N..             waits until they have run, and were released; ran N TIMES
 *   until_closed         waits until the service refuses timers
 *   expiry               says "next 50", "now" or "never"
 *   stats NAME..
 *
 * A release says the fate: "0 fired". At the end each timer that was accepted with a release was
 * released once.
 */
#ifndef TEST_SUPPORT_TIMER_SCRIPT_H
#define TEST_SUPPORT_TIMER_SCRIPT_H

#include "script.h"

extern const struct stage timer_stage;

#endif
