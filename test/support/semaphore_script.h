/*
 * Scripts (script.h) of one semaphore. Its functions run on the queue.
 *
 * Given: capacity=N (1 if not given). inline: functions run on the service's executor, which is
 * inline.
 *
 *   acquire N, release N  permits, without waiting; or forever
 *   wait N.. [permits=P]  functions, which say "run 0" when they have their permits; {CALLS}
 *   thread N [permits=P]  a thread that waits for permits; joined N: it says "0 has it"
 *   cancel N.., capacity N, destroy (it answers EBUSY)
 *   stats NAME..
 */
#ifndef TEST_SUPPORT_SEMAPHORE_SCRIPT_H
#define TEST_SUPPORT_SEMAPHORE_SCRIPT_H

#include "script.h"

extern const struct stage semaphore_stage;

#endif
