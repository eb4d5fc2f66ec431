/* Which knob of a thread the system calls invalid. */
#ifndef TW_WHEEL_THREAD_MISUSE_H
#define TW_WHEEL_THREAD_MISUSE_H

#include "tickwheel/service.h"

/*
 * Threads with this config were refused with `error`. If that is -EINVAL, tries each knob that only
 * the system can check on a thread of its own, and tells the misuse hook which one it refuses.
 * Always returns `error`. Call it without locks held: the hook is user code.
 */
int tw__thread_misuse(const char *call, int error, const struct tw_service_config *config);

#endif
