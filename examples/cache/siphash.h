/*
 * SipHash-1-3 (Aumasson and Bernstein, 2012): a keyed hash. Who does not know the seed cannot
 * craft collisions.
 */
#ifndef EXAMPLES_CACHE_SIPHASH_H
#define EXAMPLES_CACHE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t seed[2], const void *bytes, size_t length);

/*
 * The same with c rounds a word and d at the end: the published test vectors are those of 2 and
 * 4.
 */
uint64_t siphash_rounds(const uint64_t seed[2], const void *bytes, size_t length, int c, int d);

#endif
