/* Doubling growth. An empty run gives its memory back when it is kept. */
#include <stdlib.h>
#include <string.h>

#include "examples/server/bytes.h"

bool bytes_reserve(struct bytes *b, size_t more)
{
	if (b->room - b->length >= more)
		return true;
	size_t room = b->room > 0 ? b->room : 256;
	while (room - b->length < more)
		room *= 2;
	char *data = realloc(b->data, room);
	if (data == NULL)
		return false;
	b->data = data;
	b->room = room;
	return true;
}

bool bytes_append(struct bytes *b, const void *data, size_t length)
{
	if (!bytes_reserve(b, length))
		return false;
	memcpy(b->data + b->length, data, length);
	b->length += length;
	return true;
}

bool bytes_keep(struct bytes *b, const char *data, size_t length)
{
	if (length == 0) {
		bytes_free(b);
		return true;
	}
	if (length > b->length && !bytes_reserve(b, length - b->length))
		return false;
	memmove(b->data, data, length);
	b->length = length;
	return true;
}

void bytes_free(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}
