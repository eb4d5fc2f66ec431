/* Texts for refused calls; the contract is in tickwheel/misuse.h. */
#ifndef TW_WHEEL_MISUSE_H
#define TW_WHEEL_MISUSE_H

#include <errno.h>

#include "tickwheel/misuse.h"

/*
 * Tells the misuse hook why a call is refused, and returns `error`, so that a check reads
 *
 *     return tw__misuse(-EINVAL, "tw_pool_create: workers %u is above %u", workers, TW__WORKERS_MAX);
 *
 * Call it without locks held: the hook is user code. test/misuse.sh refuses an -EINVAL, -E2BIG or
 * -ERANGE of bad input that has no text, and a text that no test expects.
 */
__attribute__((format(printf, 2, 3), cold)) int tw__misuse(int error, const char *format, ...);

/* The same for the public function `call`: its name stands before the text. */
__attribute__((format(printf, 3, 4), cold)) int tw__refuse(int error, const char *call, const char *format, ...);

/* In a public function. */
#define tw__invalid(...) tw__refuse(-EINVAL, __func__, __VA_ARGS__)

#endif
