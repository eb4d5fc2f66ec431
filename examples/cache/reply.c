#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "examples/cache/reply.h"

#define MAX_ERROR 1024

void reply_raw(struct buffer *out, const char *text)
{
	buffer_add(out, text, strlen(text));
}

void reply_ok(struct buffer *out)
{
	buffer_add(out, "+OK\r\n", 5);
}

void reply_status(struct buffer *out, const char *text)
{
	buffer_add(out, "+", 1);
	reply_raw(out, text);
	buffer_add(out, "\r\n", 2);
}

/* A type's character, a number and a line end: the head of nearly every reply. */
static void number_line(struct buffer *out, char type, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at = end;
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	*--at = '\n';
	*--at = '\r';
	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (value < 0)
		*--at = '-';
	*--at = type;
	buffer_add(out, at, (size_t)(end - at));
}

void reply_integer(struct buffer *out, int64_t value)
{
	number_line(out, ':', value);
}

void reply_bulk(struct buffer *out, const void *bytes, size_t length)
{
	number_line(out, '$', (int64_t)length);
	buffer_add(out, bytes, length);
	buffer_add(out, "\r\n", 2);
}

void reply_text(struct buffer *out, const char *text)
{
	reply_bulk(out, text, strlen(text));
}

void reply_slice(struct buffer *out, struct slice s)
{
	reply_bulk(out, s.data, s.length);
}

void reply_null(struct buffer *out, bool resp3)
{
	reply_raw(out, resp3 ? "_\r\n" : "$-1\r\n");
}

void reply_array(struct buffer *out, size_t count)
{
	number_line(out, '*', (int64_t)count);
}

void reply_map(struct buffer *out, size_t pairs, bool resp3)
{
	number_line(out, resp3 ? '%' : '*', (int64_t)(resp3 ? pairs : 2 * pairs));
}

void reply_set(struct buffer *out, size_t count, bool resp3)
{
	number_line(out, resp3 ? '~' : '*', (int64_t)count);
}

void reply_push(struct buffer *out, size_t count, bool resp3)
{
	number_line(out, resp3 ? '>' : '*', (int64_t)count);
}

void reply_verbatim(struct buffer *out, const char *text, size_t length, bool resp3)
{
	if (!resp3) {
		reply_bulk(out, text, length);
		return;
	}
	number_line(out, '=', (int64_t)length + 4);
	buffer_add(out, "txt:", 4);
	buffer_add(out, text, length);
	buffer_add(out, "\r\n", 2);
}

void reply_error(struct buffer *out, const char *format, ...)
{
	char text[MAX_ERROR];
	va_list list;
	va_start(list, format);
	int length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (length >= MAX_ERROR)
		length = MAX_ERROR - 1;
	while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n'))
		length--;
	for (int i = 0; i < length; i++)
		if (text[i] == '\r' || text[i] == '\n')
			text[i] = ' ';
	buffer_add(out, "-", 1);
	buffer_add(out, text, (size_t)length);
	buffer_add(out, "\r\n", 2);
}
