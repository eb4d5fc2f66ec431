/* Texts for refused calls; the contract is in tickwheel/misuse.h. */
#ifndef TW_WHEEL_MISUSE_H
#define TW_WHEEL_MISUSE_H

#include "tickwheel/misuse.h"

/*
 * Tells the misuse hook why a call is refused, and returns `error`, so that a check reads
 *
 *     return tw__misuse(-EINVAL, "tw_pool_create: workers %u is above %u", workers, TW__WORKERS_MAX);
 *
 * Call it without locks held: the hook is user code.
 */
__attribute__((format(printf, 2, 3), cold)) int tw__misuse(int error, const char *format, ...);

#endif
