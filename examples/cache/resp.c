#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/resp.h"

#define FEW_ARGUMENTS 8
#define MANY_ARGUMENTS 64
#define MAX_ERROR 1024

void resp_init(struct resp_parser *p)
{
	*p = (struct resp_parser){.missing = -1, .bulk = -1, .max_bulk = RESP_MAX_BULK};
}

void resp_free(struct resp_parser *p)
{
	free(p->argv);
	buffer_free(&p->words);
	resp_init(p);
}

void resp_next(struct resp_parser *p)
{
	if (p->room > MANY_ARGUMENTS) {
		free(p->argv);
		p->argv = NULL;
		p->room = 0;
	}
	if (p->inlined)
		buffer_free(&p->words);
	p->inlined = false;
	p->used = p->argc = 0;
	p->missing = p->bulk = -1;
}

static enum resp_answer fail(struct resp_parser *p, const char *why)
{
	snprintf(p->error, sizeof(p->error), "Protocol error: %s", why);
	return RESP_ERROR;
}

/* Offsets stand in for pointers until the request is complete: its bytes may still move. */
static void add_argument(struct resp_parser *p, size_t offset, size_t length)
{
	if (p->argc == p->room) {
		p->room = p->room == 0 ? FEW_ARGUMENTS : 2 * p->room;
		p->argv = reallocate(p->argv, p->room * sizeof(*p->argv));
	}
	p->argv[p->argc++] = (struct slice){(const char *)(uintptr_t)offset, length};
}

static enum resp_answer complete(struct resp_parser *p, const char *base)
{
	for (size_t i = 0; i < p->argc; i++)
		p->argv[i].data = base + (uintptr_t)p->argv[i].data;
	return RESP_READY;
}

/* ------------------------------------------------------------------ inline commands */

static int hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Adds the character that `at` stands for within double quotes, and returns what follows. */
static const char *unescape(struct buffer *words, const char *at, const char *end)
{
	char c = *at++;
	if (c == '\\' && end - at >= 3 && *at == 'x' && isxdigit((unsigned char)at[1]) &&
	    isxdigit((unsigned char)at[2])) {
		c = (char)(hex_value(at[1]) * 16 + hex_value(at[2]));
		at += 3;
	} else if (c == '\\' && at < end) {
		static const char names[] = "nrtba", values[] = "\n\r\t\b\a";
		const char *name = memchr(names, *at, sizeof(names) - 1);
		c = name != NULL ? values[name - names] : *at;
		at++;
	}
	buffer_add(words, &c, 1);
	return at;
}

/*
 * Reads a quoted part that begins at `at`. NULL: the quote has no end, or a character follows it.
 */
static const char *read_quoted(struct buffer *words, const char *at, const char *end)
{
	char quote = *at++;
	while (at < end && *at != quote) {
		if (quote == '"') {
			at = unescape(words, at, end);
		} else {
			at += *at == '\\' && at + 1 < end && at[1] == '\'';
			buffer_add(words, at++, 1);
		}
	}
	if (at == end || (at + 1 < end && !isspace((unsigned char)at[1])))
		return NULL;
	return at + 1;
}

static const char *read_word(struct buffer *words, const char *at, const char *end)
{
	while (at != NULL && at < end && !isspace((unsigned char)*at)) {
		if (*at == '"' || *at == '\'')
			at = read_quoted(words, at, end);
		else
			buffer_add(words, at++, 1);
	}
	return at;
}

static enum resp_answer parse_inline(struct resp_parser *p, const char *data, size_t length)
{
	const char *newline = memchr(data, '\n', length);
	if (newline == NULL)
		return length > RESP_MAX_LINE ? fail(p, "too big inline request") : RESP_MORE;
	const char *at = data, *end = newline > data && newline[-1] == '\r' ? newline - 1 : newline;
	p->used = (size_t)(newline - data) + 1;
	p->inlined = true;
	for (;;) {
		while (at < end && isspace((unsigned char)*at))
			at++;
		if (at == end)
			return complete(p, p->words.data != NULL ? p->words.data : "");
		size_t offset = p->words.end;
		at = read_word(&p->words, at, end);
		if (at == NULL)
			return fail(p, "unbalanced quotes in request");
		add_argument(p, offset, p->words.end - offset);
	}
}

/* ------------------------------------------------------------------ arrays of bulk strings */

/* The line at `used`, without its first character and its end. RESP_MORE: it has not arrived. */
static enum resp_answer read_line(struct resp_parser *p, const char *data, size_t length,
				  const char *too_big, struct slice *line)
{
	const char *start = data + p->used;
	size_t left = length - p->used;
	const char *end = left > 0 ? memchr(start, '\r', left) : NULL;
	if (end == NULL)
		return left > RESP_MAX_LINE ? fail(p, too_big) : RESP_MORE;
	if ((size_t)(end - start) + 2 > left)
		return RESP_MORE;
	*line = (struct slice){start + 1, (size_t)(end - start) - (end > start)};
	return RESP_READY;
}

static enum resp_answer parse_bulk_length(struct resp_parser *p, const char *data, size_t length)
{
	struct slice line;
	enum resp_answer answer = read_line(p, data, length, "too big bulk count string", &line);
	if (answer != RESP_READY)
		return answer;
	if (line.data[-1] != '$') {
		snprintf(p->error, sizeof(p->error), "Protocol error: expected '$', got '%c'",
			 line.data[-1]);
		return RESP_ERROR;
	}
	if (!slice_integer(line, &p->bulk) || p->bulk < 0 || p->bulk > p->max_bulk)
		return fail(p, "invalid bulk length");
	p->used = (size_t)(line.data - data) + line.length + 2;
	return RESP_READY;
}

static enum resp_answer parse_count(struct resp_parser *p, const char *data, size_t length)
{
	struct slice line;
	enum resp_answer answer = read_line(p, data, length, "too big mbulk count string", &line);
	if (answer != RESP_READY)
		return answer;
	if (!slice_integer(line, &p->missing) || p->missing > INT_MAX)
		return fail(p, "invalid multibulk length");
	if (p->missing < 0)
		p->missing = 0;
	p->used = (size_t)(line.data - data) + line.length + 2;
	return RESP_READY;
}

enum resp_answer resp_parse(struct resp_parser *p, const char *data, size_t length)
{
	enum resp_answer answer = RESP_READY;
	if (length == 0)
		return RESP_MORE;
	if (p->missing < 0) {
		if (data[0] != '*')
			return parse_inline(p, data, length);
		answer = parse_count(p, data, length);
	}
	while (answer == RESP_READY && p->missing > 0) {
		if (p->bulk < 0) {
			answer = parse_bulk_length(p, data, length);
			continue;
		}
		if (length - p->used < (size_t)p->bulk + 2)
			return RESP_MORE;
		add_argument(p, p->used, (size_t)p->bulk);
		p->used += (size_t)p->bulk + 2;
		p->bulk = -1;
		p->missing--;
	}
	return answer == RESP_READY ? complete(p, data) : answer;
}

size_t resp_expected(const struct resp_parser *p, size_t length)
{
	size_t whole = p->bulk < 0 ? 0 : p->used + (size_t)p->bulk + 2;
	return whole > length ? whole - length : 0;
}

/* ------------------------------------------------------------------ replies */

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

void reply_list(struct buffer *out, size_t count, struct buffer *items)
{
	reply_array(out, count);
	buffer_add(out, items->data, buffer_length(items));
	buffer_free(items);
}

void reply_map(struct buffer *out, size_t pairs, bool resp3)
{
	number_line(out, resp3 ? '%' : '*', (int64_t)(resp3 ? pairs : 2 * pairs));
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
