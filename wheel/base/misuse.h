/* Texts for refused calls; the contract is in tickwheel/misuse.h. */
#ifndef TW_WHEEL_MISUSE_H
#define TW_WHEEL_MISUSE_H

#include <errno.h>

#include "tickwheel/misuse.h"

/*
 * Tells the misuse hook why a call is refused, and returns `error`, so that a check reads
 *
 *     return tw__misuse(-EINVAL, "tw_pool_create: workers %u is above %u", workers,
 *     TW__WORKERS_MAX);
 *
 * Call it without locks held: the hook is user code. test/misuse.sh refuses an -EINVAL, -E2BIG or
 * -ERANGE of bad input that has no text, and a text that no test expects.
 */
#define tw__misuse(error, ...) (tw__misuse_tell(__VA_ARGS__), (error))

/* The same for the public function `call`: its name is put before the text. */
#define tw__refuse(error, call, ...) (tw__refuse_tell(call, __VA_ARGS__), (error))

/* In a public function. */
#define tw__invalid(...) tw__refuse(-EINVAL, __func__, __VA_ARGS__)

/* Macros, so that the compiler and the analyzers see the value of an answer. What they call: */
__attribute__((format(printf, 1, 2), cold)) void tw__misuse_tell(const char *format, ...);
__attribute__((format(printf, 2, 3), cold)) void tw__refuse_tell(const char *call,
								 const char *format, ...);

#endif
