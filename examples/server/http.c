/*
 * A head ends with an empty line; then it is read line by line. A head that comes in pieces is
 * searched anew for each piece.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "examples/server/http.h"

static bool is_token(const char *s, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)s[i]) && strchr("!#$%&'*+-.^_`|~", s[i]) == NULL)
			return false;
	return length > 0 && memchr(s, 0, length) == NULL;
}

static bool is_printable(const char *s, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)s[i] < ' ' && s[i] != '\t')
			return false;
	return true;
}

static bool equals(const char *s, size_t length, const char *word)
{
	return length == strlen(word) && strncasecmp(s, word, length) == 0;
}

/* "GET /target HTTP/1.1" */
static bool parse_request_line(const char *line, size_t length, struct http_request *out)
{
	const char *end = line + length, *space = memchr(line, ' ', length);
	if (space == NULL)
		return false;
	const char *target = space + 1, *version = memchr(target, ' ', (size_t)(end - target));
	if (version == NULL || end - version != 9 || memcmp(version, " HTTP/1.", 8) != 0)
		return false;
	out->method = line;
	out->method_length = (size_t)(space - line);
	out->target = target;
	out->target_length = (size_t)(version - target);
	out->keep_alive = version[8] == '1';
	out->has_host = version[8] == '0'; /* version 1.0 needs none */
	return (version[8] == '0' || version[8] == '1') && is_token(line, out->method_length) &&
	       target[0] == '/' && is_printable(target, out->target_length);
}

static void note_header(const char *name, size_t name_length, const char *value, size_t length,
			struct http_request *out)
{
	if (equals(name, name_length, "host"))
		out->has_host = true;
	else if (equals(name, name_length, "connection") && equals(value, length, "close"))
		out->keep_alive = false;
	else if (equals(name, name_length, "transfer-encoding"))
		out->has_body = true;
	else if (equals(name, name_length, "content-length") && !equals(value, length, "0"))
		out->has_body = true;
}

/* "Name: value" */
static bool parse_header(const char *line, size_t length, struct http_request *out)
{
	const char *colon = memchr(line, ':', length), *end = line + length;
	if (colon == NULL || !is_token(line, (size_t)(colon - line)) || !is_printable(line, length))
		return false;
	const char *value = colon + 1;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	note_header(line, (size_t)(colon - line), value, (size_t)(end - value), out);
	return true;
}

int http_parse(const char *data, size_t length, struct http_request *out)
{
	const char *empty_line = memmem(data, length, "\r\n\r\n", 4);
	if (empty_line == NULL)
		return length < HTTP_MAX_HEAD ? HTTP_INCOMPLETE : HTTP_MALFORMED;
	*out = (struct http_request){0};
	const char *line = data, *end = empty_line + 2;
	for (bool first = true; line < end; first = false) {
		const char *cr = memmem(line, (size_t)(end - line), "\r\n", 2);
		size_t n = (size_t)(cr - line);
		if (!(first ? parse_request_line(line, n, out) : parse_header(line, n, out)))
			return HTTP_MALFORMED;
		line = cr + 2;
	}
	return out->has_host ? (int)(empty_line + 4 - data) : HTTP_MALFORMED;
}

static bool is_text(const char *s, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(s, text, length) == 0;
}

bool http_method_is(const struct http_request *r, const char *method)
{
	return is_text(r->method, r->method_length, method);
}

bool http_path_is(const struct http_request *r, const char *path)
{
	return is_text(r->target, r->target_length, path);
}

long http_number(const struct http_request *r, const char *path, const char *name)
{
	char start[64];
	size_t n = (size_t)snprintf(start, sizeof(start), "%s?%s=", path, name);
	if (r->target_length <= n || r->target_length > n + 7 || memcmp(r->target, start, n) != 0)
		return -1;
	long value = 0;
	for (size_t i = n; i < r->target_length; i++) {
		if (!isdigit((unsigned char)r->target[i]))
			return -1;
		value = value * 10 + (r->target[i] - '0');
	}
	return value;
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = {{200, "OK"},
		       {400, "Bad Request"},
		       {404, "Not Found"},
		       {405, "Method Not Allowed"},
		       {408, "Request Timeout"},
		       {413, "Content Too Large"},
		       {503, "Service Unavailable"}};
	size_t i = 0;
	while (reasons[i].status != status)
		i++;
	return reasons[i].text;
}

bool http_respond(struct bytes *out, int status, bool keep_alive, const char *body, size_t length)
{
	char head[160];
	int n =
	    snprintf(head, sizeof(head),
		     "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n",
		     status, reason(status), length, keep_alive ? "" : "Connection: close\r\n");
	size_t before = out->length;
	if (bytes_append(out, head, (size_t)n) && bytes_append(out, body, length))
		return true;
	out->length = before;
	return false;
}

/* ------------------------------------------------------------------ bytes: doubling growth */

static bool bytes_reserve(struct bytes *b, size_t more)
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
