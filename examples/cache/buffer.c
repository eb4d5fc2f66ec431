#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/buffer.h"

#define LEAST_ROOM 512

void *reallocate(void *old, size_t size)
{
	void *memory = realloc(old, size);
	if (memory == NULL) {
		fprintf(stderr, "tickcache: out of memory: %zu bytes were refused\n", size);
		abort();
	}
	return memory;
}

void *allocate(size_t size)
{
	return reallocate(NULL, size);
}

char *buffer_reserve(struct buffer *b, size_t size)
{
	if (b->room - b->end >= size && b->data != NULL)
		return b->data + b->end;
	size_t length = buffer_length(b);
	if (b->start > 0 && b->start >= length) {
		memcpy(b->data, b->data + b->start, length);
		b->start = 0;
		b->end = length;
	}
	if (b->room - b->end < size || b->data == NULL) {
		size_t room = b->end + size;
		b->room = room < LEAST_ROOM ? LEAST_ROOM : room + room / 2;
		b->data = reallocate(b->data, b->room);
	}
	return b->data + b->end;
}

void buffer_add(struct buffer *b, const void *bytes, size_t size)
{
	if (size == 0)
		return;
	memcpy(buffer_reserve(b, size), bytes, size);
	b->end += size;
}

void buffer_take(struct buffer *b, size_t size)
{
	b->start += size;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void buffer_free(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

void buffer_rest(struct buffer *b)
{
	if (buffer_length(b) == 0)
		buffer_free(b);
}
