/*
 * Misuse: the reason for a refused call, as a message.
 *
 *     static void print(const char *text)
 *     {
 *             fprintf(stderr, "tickwheel: %s\n", text);
 *     }
 *     tw_set_misuse_hook(print);
 */
#ifndef TICKWHEEL_MISUSE_H
#define TICKWHEEL_MISUSE_H

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gets a message: one line without a newline, valid during the call. Runs on the thread whose call
 * is refused, before that call returns. It may log, abort, block, or call the library.
 */
typedef void tw_misuse_fn(const char *text);

/*
 * Sets the one function of the process that is called with the reason whenever a call refuses bad
 * input, or would wait for its own caller. NULL (default): none.
 */
TW_API void tw_set_misuse_hook(tw_misuse_fn *hook);

/*
 * Explains a result of the library in one line: an outcome (0 or positive) or an error (negative).
 *
 * Returns: a constant message; for a number that the library does not use: "not an answer of
 * tickwheel".
 */
TW_API const char *tw_strerror(int answer);

#ifdef __cplusplus
}
#endif
#endif
