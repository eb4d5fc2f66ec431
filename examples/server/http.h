/*
 * Just enough HTTP/1.1 for a server without request bodies. Heads are parsed strictly, one at a
 * time, so requests may be pipelined. Bare line feeds, folded lines and stray control characters
 * are malformed, because they could be read in two ways.
 */
#ifndef EXAMPLES_SERVER_HTTP_H
#define EXAMPLES_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* A growing run of bytes. An idle connection has none of them allocated. */
struct bytes {
	char *data;
	size_t length, room;
};

/* False: out of memory, nothing changed. */
bool bytes_append(struct bytes *b, const void *data, size_t length);

/*
 * Replaces the content. The source may be the content itself: so the rest of a head moves to the
 * front.
 */
bool bytes_keep(struct bytes *b, const char *data, size_t length);
void bytes_free(struct bytes *b);

#define HTTP_MAX_HEAD 8192

enum { HTTP_INCOMPLETE = 0, HTTP_MALFORMED = -1 };

struct http_request {
	const char *method, *target; /* inside the data parsed */
	size_t method_length, target_length;
	bool has_host;
	bool has_body;
	bool keep_alive;
};

/* Length of the head at the front of data, or HTTP_INCOMPLETE, or HTTP_MALFORMED. */
int http_parse(const char *data, size_t length, struct http_request *out);

bool http_method_is(const struct http_request *r, const char *method);

/* The number in the target's query "name=digits" if its path is `path`; else -1. */
long http_number(const struct http_request *r, const char *path, const char *name);
bool http_path_is(const struct http_request *r, const char *path);

/* Appends a whole response. False: out of memory. */
bool http_respond(struct bytes *out, int status, bool keep_alive, const char *body, size_t length);

#endif
