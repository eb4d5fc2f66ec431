/* A growing run of bytes. An idle connection has none of them allocated. */
#ifndef EXAMPLES_SERVER_BYTES_H
#define EXAMPLES_SERVER_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
	char *data;
	size_t length, room;
};

/* False: out of memory, nothing changed. */
bool bytes_reserve(struct bytes *b, size_t more);
bool bytes_append(struct bytes *b, const void *data, size_t length);

/*
 * Replaces the content. The source may be the content itself: so the rest of a head moves to the
 * front.
 */
bool bytes_keep(struct bytes *b, const char *data, size_t length);
void bytes_free(struct bytes *b);

#endif
