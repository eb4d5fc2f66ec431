/*
 * Scripts (script.h) of one scheduler, on a clock that they move.
 *
 * Given: its host is manual, and each call of `wanted` says "wanted"; or host: it is the queue;
 * default: the service's executor; inline. slice=MS max=N.
 *
 *   submit N.. OPTION..   tasks. Each says "turn 0", or "late 0" with did_timeout, and "0 done",
 *                         "0 failed EIO", "0 cancelled", "0 dropped".
 *                         priority=N (3 if not given) delay=MS timeout=MS error=EIO turns=N;
 *                         units=N each=MS: works until it should yield, and says "left 7"; eager:
 *                         asks whether it should yield also if it has expired;
 *                         stays=MS: time passes; bare: without a done function;
 *                         {CALLS}, [CALLS] (in its done function)
 *   cancel N.., run, run N (turns), close, destroy
 *   should_yield, priority (the current one)
 *   stats NAME.., failure (the last one, and of which task)
 *
 * At the end the done function of each task that was accepted was called once.
 */
#ifndef TEST_SUPPORT_SCHEDULER_SCRIPT_H
#define TEST_SUPPORT_SCHEDULER_SCRIPT_H

#include "script.h"

extern const struct stage scheduler_stage;

#endif
