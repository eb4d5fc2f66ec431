#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* ------------------------------------------------------------------ slices */

bool slice_same(struct slice a, struct slice b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

bool slice_is(struct slice s, const char *word)
{
	return s.length == strlen(word) && strncasecmp(s.data, word, s.length) == 0;
}

/* The only form of a number: no sign "+", no leading zero, no space, and no "-0". */
bool slice_integer(struct slice s, int64_t *out)
{
	const char *at = s.data, *end = s.data + s.length;
	if (s.length == 0 || s.length > 20)
		return false;
	bool negative = *at == '-';
	at += negative;
	if (at == end || *at < '0' || *at > '9' || (*at == '0' && (negative || end - at > 1)))
		return false;
	uint64_t value = 0, most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9' || value > UINT64_MAX / 10)
			return false;
		uint64_t digit = (uint64_t)(*at - '0');
		if (value * 10 > UINT64_MAX - digit)
			return false;
		value = value * 10 + digit;
	}
	if (value > most)
		return false;
	*out = (int64_t)(negative ? 0 - value : value);
	return true;
}

/* Matches a set that begins at the bracket `at`; *next is what follows the set. */
static bool set_matches(const char *at, const char *end, char c, const char **next)
{
	bool matches = false, inverted = ++at < end && *at == '^';
	at += inverted;
	for (; at < end && *at != ']'; at++) {
		if (*at == '\\' && end - at >= 2) {
			matches |= *++at == c;
		} else if (end - at >= 3 && at[1] == '-') {
			unsigned char low = (unsigned char)at[0], high = (unsigned char)at[2],
				      x = (unsigned char)c;
			matches |= low <= high ? low <= x && x <= high : high <= x && x <= low;
			at += 2;
		} else {
			matches |= *at == c;
		}
	}
	*next = at < end ? at + 1 : end;
	return matches != inverted;
}

/* Whether the pattern's first element, which is no star, matches c; *next is what follows it. */
static bool one_matches(const char *at, const char *end, char c, const char **next)
{
	if (*at == '[')
		return set_matches(at, end, c, next);
	bool any = *at == '?';
	if (*at == '\\' && end - at >= 2)
		at++;
	*next = at + 1;
	return any || *at == c;
}

/*
 * One star is remembered at a time: when the rest does not match, the latest star takes one
 * character more. So the time is bounded by the product of both lengths, whatever the pattern.
 */
bool glob_matches(struct slice pattern, struct slice text)
{
	const char *p = pattern.data, *p_end = p + pattern.length, *t = text.data,
		   *t_end = t + text.length;
	const char *star = NULL, *star_text = NULL, *next;
	if (text.length == 0) /* as in Redis: no star matches the empty text */
		return pattern.length == 0;
	while (t < t_end) {
		if (p < p_end && *p == '*') {
			star = ++p;
			star_text = t;
		} else if (p < p_end && one_matches(p, p_end, *t, &next)) {
			p = next;
			t++;
		} else if (star != NULL) {
			p = star;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < p_end && *p == '*')
		p++;
	return p == p_end;
}
