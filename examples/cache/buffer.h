/* A growable run of bytes, used as a queue: bytes are added at the end and taken from the front. */
#ifndef EXAMPLES_CACHE_BUFFER_H
#define EXAMPLES_CACHE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data;
	size_t start, end, room;
};

/* Bytes that are not the buffer's own: a key, a value, an argument. */
struct slice {
	const char *data;
	size_t length;
};

#define SLICE(text) ((struct slice){(text), sizeof(text) - 1})

bool slice_same(struct slice a, struct slice b);

/* Whether the slice is this word; `word` is in lower case, the slice in any. */
bool slice_is(struct slice s, const char *word);

/* The whole slice as a number. False: it is no integer of 64 bits in its only form. */
bool slice_integer(struct slice s, int64_t *out);

/* A pattern of Redis: * ? [abc] [^a-c], and a backslash before a character that means itself. */
bool glob_matches(struct slice pattern, struct slice text);

/* As malloc and realloc. Without memory they end the process with a message, as Redis does. */
void *allocate(size_t size);
void *reallocate(void *old, size_t size);

static inline size_t buffer_length(const struct buffer *b)
{
	return b->end - b->start;
}

/* Room for `size` more bytes at the returned place. The caller then adds what it wrote to `end`. */
char *buffer_reserve(struct buffer *b, size_t size);
void buffer_add(struct buffer *b, const void *bytes, size_t size);
void buffer_take(struct buffer *b, size_t size);
void buffer_free(struct buffer *b);

/* Frees the memory of an empty buffer, so that idle clients hold none. */
void buffer_rest(struct buffer *b);

#endif
