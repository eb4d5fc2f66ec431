/* What a caller hands in: structs of an older or newer caller, and executors. */
#ifndef TW_WHEEL_STRUCT_READ_H
#define TW_WHEEL_STRUCT_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "tickwheel/executor.h"

/*
 * Copies a struct that begins with its size, from a caller that may be older or newer. -EINVAL: smaller than `least`;
 * -E2BIG: what the library does not know is not zero.
 */
int tw__struct_read(void *out, size_t known, size_t least, const void *in);

/* Fills a struct of such a caller, who has set its size: copies what the caller knows, and clears the rest. */
void tw__struct_write(void *out, const void *known, size_t known_size);

/* The same for a config, whose size may be 0 if all else is 0 too. */
int tw__config_copy(void *out, size_t known, size_t least, const void *in);

/* Whether a program's executor may be used. */
bool tw__executor_is_sound(const tw_executor *executor);

#endif
