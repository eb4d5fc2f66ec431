/*
 * The Redis protocol: requests in RESP (arrays of bulk strings) and inline commands, and replies.
 *
 * A parser reads one request at a time from bytes that may arrive in pieces. It keeps offsets
 * from the request's first byte, so the bytes may move between two calls. It never looks at a
 * byte twice, except for the lines that hold a count.
 */
#ifndef EXAMPLES_CACHE_RESP_H
#define EXAMPLES_CACHE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/cache/buffer.h"

#define RESP_MAX_LINE (64 * 1024)
#define RESP_MAX_BULK (512ll * 1024 * 1024)

enum resp_answer {
	RESP_READY, /* a request is complete: argv, argc and used */
	RESP_MORE,  /* the bytes end within the request */
	RESP_ERROR  /* the bytes are no request: `error` says why, and the client must go */
};

struct resp_parser {
	size_t used;     /* bytes of the request that have been read */
	int64_t missing; /* arguments that are still to come; -1: the first line is */
	int64_t bulk;    /* length of the argument that is being read; -1: its line is to come */
	struct slice *argv;
	size_t argc, room;
	bool inlined;        /* the arguments are in `words`, not in the request */
	struct buffer words; /* of an inline command, without quotes */
	char error[64];
	int64_t max_bulk;
};

void resp_init(struct resp_parser *p);
void resp_free(struct resp_parser *p);

/*
 * Reads on in a request whose first `length` bytes are at `data`. After RESP_READY argv points
 * into `data` (or into the parser, for an inline command); argc is 0 for an empty request. Call
 * resp_next afterwards.
 */
enum resp_answer resp_parse(struct resp_parser *p, const char *data, size_t length);

/* Forgets the request that was read. */
void resp_next(struct resp_parser *p);

/* How many bytes are certainly missing to complete the argument that is being read. */
size_t resp_expected(const struct resp_parser *p, size_t length);

/* Replies: RESP2, and RESP3 after HELLO 3. */

void reply_raw(struct buffer *out, const char *text);
void reply_ok(struct buffer *out);
void reply_status(struct buffer *out, const char *text);
void reply_integer(struct buffer *out, int64_t value);
void reply_bulk(struct buffer *out, const void *bytes, size_t length);
void reply_text(struct buffer *out, const char *text);
void reply_slice(struct buffer *out, struct slice s);
void reply_null(struct buffer *out, bool resp3);
void reply_array(struct buffer *out, size_t count);
void reply_list(struct buffer *out, size_t count, struct buffer *items); /* frees the items */
void reply_map(struct buffer *out, size_t pairs, bool resp3);            /* in RESP2: an array */
void reply_push(struct buffer *out, size_t count, bool resp3);
void reply_verbatim(struct buffer *out, const char *text, size_t length, bool resp3);

/*
 * An error. The text begins with the code, as "ERR ..." or "OOM ..."; line ends in it become
 * spaces.
 */
void reply_error(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
