/* What a caller hands in: structs of an older or newer caller, executors, periods. */
#ifndef TW_WHEEL_STRUCT_READ_H
#define TW_WHEEL_STRUCT_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "tickwheel/executor.h"
#include "tickwheel/task.h"

/*
 * Copies a struct that begins with its size, from a caller that may be older or newer. `last` is
 * the last member that the oldest caller has not. The misuse hook gets the reason of a refusal.
 * -EINVAL: the struct ends before `last`; -E2BIG: what the library does not know is not zero.
 *
 *     r = TW__STRUCT_READ(tw_limiter_task, &known, done, task);
 */
#define TW__STRUCT_READ(type, out, last, in) \
	tw__struct_read(#type, out, sizeof *(out), offsetof(struct type, last), in)
int tw__struct_read(const char *type, void *out, size_t known, size_t least, const void *in);

/*
 * What a call that fills *out begins with: 0; -EINVAL, with a text: NULL, or `second` does not fit.
 */
#define TW__OUT_CHECK(type, out, second) \
	tw__out_check(__func__, #type, out, offsetof(struct type, second))
int tw__out_check(const char *call, const char *type, const void *out, size_t least);

/*
 * Fills a struct of such a caller, who has set its size: copies what the caller knows, and clears
 * the rest.
 */
void tw__struct_write(void *out, const void *known, size_t known_size);

/*
 * As TW__STRUCT_READ, for a config: its size may be 0 if all else is 0 too. A config that is NULL
 * is all 0.
 */
#define TW__CONFIG_READ(type, out, last, in) \
	tw__struct_read_config(#type, out, sizeof *(out), offsetof(struct type, last), in)
int tw__struct_read_config(const char *type, void *out, size_t known, size_t least, const void *in);

/* Whether a program's executor may be used: it has ops with size and submit, or is NULL. */
bool tw__executor_is_sound(const tw_executor *executor);

/*
 * Copies a period as older and newer callers know it, and checks it. `call`, for the misuse hook:
 * the public function. 0, -EINVAL, -E2BIG, -ERANGE.
 */
int tw__period_read(const char *call, struct tw_period *out, const struct tw_period *in);

#endif
