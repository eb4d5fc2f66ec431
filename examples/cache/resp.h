/*
 * The Redis protocol, from the client: requests in RESP (arrays of bulk strings) and inline
 * commands.
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

/* The whole slice as a number. False: it is no integer of 64 bits in its only form. */
bool slice_integer(struct slice s, int64_t *out);

#endif
