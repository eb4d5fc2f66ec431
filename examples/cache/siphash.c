#include <endian.h>
#include <string.h>

#include "examples/cache/siphash.h"

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void mix(uint64_t v[4], int rounds)
{
	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static inline uint64_t hash(const uint64_t seed[2], const void *bytes, size_t length, int c, int d)
{
	uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d,
			 seed[0] ^ 0x6c7967656e657261, seed[1] ^ 0x7465646279746573};
	const unsigned char *at = bytes, *end = at + (length & ~(size_t)7);
	uint64_t word;
	for (; at < end; at += 8) {
		memcpy(&word, at, 8);
		word = le64toh(word);
		v[3] ^= word;
		mix(v, c);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, at, length & 7);
	word = le64toh(word) | (uint64_t)length << 56;
	v[3] ^= word;
	mix(v, c);
	v[0] ^= word;
	v[2] ^= 0xff;
	mix(v, d);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t siphash(const uint64_t seed[2], const void *bytes, size_t length)
{
	return hash(seed, bytes, length, 1, 3);
}

uint64_t siphash_rounds(const uint64_t seed[2], const void *bytes, size_t length, int c, int d)
{
	return hash(seed, bytes, length, c, d);
}
