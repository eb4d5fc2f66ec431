/*
 * Misuse: the reason for a refused call, as a text.
 *
 *     static void print(const char *text)
 *     {
 *             fprintf(stderr, "tickwheel: %s\n", text);
 *     }
 *     tw_set_misuse_hook(print);
 *
 * A call that refuses bad input returns an error number, which cannot say which knob was
 * wrong. The hook gets a sentence that names the call and the parameter or member, for example
 * "tw_pool_create: tw_pool_config.max_workers has a value that the header does not allow". The
 * member's comment says which values are allowed. A call that would wait for its own caller
 * (-EDEADLK) is refused with a sentence, too. If the system refuses threads or memory, the sentence
 * names the limits to look at.
 */
#ifndef TICKWHEEL_MISUSE_H
#define TICKWHEEL_MISUSE_H

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* text: one line without a newline, valid during the call. */
typedef void tw_misuse_fn(const char *text);

/*
 * Sets the function that is called with the reason whenever a call refuses bad input, or would wait
 * for its own caller. NULL (default) turns texts off. There is one hook in a process. It runs on
 * the thread whose call is refused, before that call returns. It may log, abort, or call the
 * library.
 *
 * Threads: any. Never blocks.
 */
TW_API void tw_set_misuse_hook(tw_misuse_fn *hook);

/*
 * Explains a result of the library in one line: an outcome (0 or positive) or an error (negative).
 *
 *     int r = tw_schedule(service, delay_ns, fn, arg, &timer);
 *     if (r < 0)
 *             fprintf(stderr, "tw_schedule: %s\n", tw_strerror(r));
 *
 * Threads: any. Never blocks.
 * Returns: a constant text; for a number that the library does not use: "not an answer of
 * tickwheel".
 */
TW_API const char *tw_strerror(int answer);

#ifdef __cplusplus
}
#endif
#endif
