/*
 * Patterns as Redis has them: * ? [abc] [^a-c] and a backslash before a character that stands for
 * itself.
 */
#ifndef EXAMPLES_CACHE_GLOB_H
#define EXAMPLES_CACHE_GLOB_H

#include <stdbool.h>

#include "examples/cache/buffer.h"

bool glob_matches(struct slice pattern, struct slice text);

#endif
