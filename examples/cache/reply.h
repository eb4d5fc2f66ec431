/* The Redis protocol, to the client: RESP2, and RESP3 after HELLO 3. */
#ifndef EXAMPLES_CACHE_REPLY_H
#define EXAMPLES_CACHE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/cache/buffer.h"

void reply_raw(struct buffer *out, const char *text);
void reply_ok(struct buffer *out);
void reply_status(struct buffer *out, const char *text);
void reply_integer(struct buffer *out, int64_t value);
void reply_bulk(struct buffer *out, const void *bytes, size_t length);
void reply_text(struct buffer *out, const char *text);
void reply_slice(struct buffer *out, struct slice s);
void reply_null(struct buffer *out, bool resp3);
void reply_array(struct buffer *out, size_t count);
void reply_map(struct buffer *out, size_t pairs, bool resp3); /* in RESP2: an array */
void reply_set(struct buffer *out, size_t count, bool resp3);
void reply_push(struct buffer *out, size_t count, bool resp3);
void reply_verbatim(struct buffer *out, const char *text, size_t length, bool resp3);

/*
 * An error. The text begins with the code, as "ERR ..." or "OOM ..."; line ends in it become
 * spaces.
 */
void reply_error(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
