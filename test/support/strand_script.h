/*
 * Scripts (script.h) of one strand over a queue, which is emptied at the end of each step, on a
 * clock that they move.
 *
 * Given: inline: the strand is on the service's executor, which is inline; queued: the same, and
 * the service's executor is the queue.
 *
 *   submit N.. OPTION..   tasks, each of which says "run 0". delay=MS; at=MS, since the start;
 *                         every=MS first=MS: a series with bursts, or skip;
 *                         plain: without handle and release;
 *                         stays=MS: nobody looks while it runs; named=N: under this context;
 *                         {CALLS}, [CALLS]
 *   timer N.. OPTION..    a timer of the service that names the strand as its executor
 *   other N.. OPTION..    tasks of another strand; upper N..: of one over the strand
 *   cancel N.., cancel_wait N, close, close_wait, destroy, destroy_others
 *   cancel_timer N, cancel_foreign N (by the other strand)
 *   stats NAME.., where   says "on it", if called in a run of the strand
 *
 * A release with another fate than TW_FATE_FIRED says "0 cancelled". At the end each task that was
 * accepted with a release was released once.
 */
#ifndef TEST_SUPPORT_STRAND_SCRIPT_H
#define TEST_SUPPORT_STRAND_SCRIPT_H

#include "script.h"
#include "strands.h"

extern const struct stage strand_stage;

#endif
