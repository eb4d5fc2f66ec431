/*
 * Scripts (script.h) of one scheduler of actions, on a clock that they move.
 *
 * Given: its kind (asap, frame, queue, else async). caller: flushed by the script, and says
 * "wanted" and "unwanted"; alone: it has no service (caller too); cancel_batch; fps=N; silent: its
 * failures call nobody; strand: its executor is a strand.
 *
 *   arm N.. OPTION..      new actions. Each run says "run 0". delay=MS; fails=N: what it returns;
 *                         rearms=N every=MS: arms itself again; stays=MS: time passes in it;
 *                         release: says "0 released cancelled"; {CALLS}, [CALLS]
 *   create N.. OPTION..   the same, but not armed
 *   again N [state=M]     arms it again. delay=MS. The run says the number of the state
 *   run N                 by hand
 *   close, close_wait, destroy, state N
 *   immediate N {CALLS}, clear N
 *   flush                 says "5", if that is what it returns
 *   destroy_scheduler, close_strand, stats NAME..
 *
 * A failure says "failed 42 of 0", or "failed 42 of 0 and closes 2", or "failed 42" of an
 * immediate; [CALLS] of given are made then.
 */
#ifndef TEST_SUPPORT_ACTION_SCRIPT_H
#define TEST_SUPPORT_ACTION_SCRIPT_H

#include "script.h"

extern const struct stage action_stage;

#endif
