/* Reading, checking and preparing a task. */
#ifndef TW_WHEEL_TIMER_SCHEDULE_TASK_H
#define TW_WHEEL_TIMER_SCHEDULE_TASK_H

#include "wheel/timer/schedule.h"

/*
 * Copies a period as older and newer callers know it, and checks it. `call`, for the misuse hook:
 * the public function. 0, -EINVAL, -E2BIG, -ERANGE.
 */
int tw__period_read(const char *call, struct tw_period *out, const struct tw_period *in);

/*
 * Checks a task and its period, of an older or newer caller too: then *task becomes `other`, a
 * copy. The misuse hook gets the reason of a refusal. 0, -EINVAL, -E2BIG, -ERANGE.
 */
int tw__task_read(const char *call, const tw_service *service, const struct tw_task **task,
		  struct tw_task *other, struct tw_period *period);

/*
 * Says how to arm it; makes an extension record if it needs one. *now_ns: a reading of the clock
 * taken within this call, or 0; read if needed. Captures the thread's context, if there is one. 0,
 * -ENOMEM.
 */
int tw__task_prepare(tw_service *service, struct tw__local *local, const struct tw_task *task,
		     const struct tw_period *period, uint64_t *now_ns, struct tw__arming *arming);

/*
 * The extension record of a task that is not scheduled after all, perhaps after others could see
 * its timer (retract).
 */
void tw__task_discard(tw_service *service, struct tw__local *local, uint32_t ext);

#endif
