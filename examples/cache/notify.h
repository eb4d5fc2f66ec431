/*
 * Keyspace notifications: what happens to keys, published on channels, if notify-keyspace-events
 * asks for it.
 */
#ifndef EXAMPLES_CACHE_NOTIFY_H
#define EXAMPLES_CACHE_NOTIFY_H

#include <stdbool.h>

#include "examples/cache/buffer.h"

enum notify_flags {
	NOTIFY_KEYSPACE = 1 << 0, /* K */
	NOTIFY_KEYEVENT = 1 << 1, /* E */
	NOTIFY_GENERIC = 1 << 2,  /* g */
	NOTIFY_STRING = 1 << 3,   /* $ */
	NOTIFY_LIST = 1 << 4,     /* l, and so on: types that this cache does not have */
	NOTIFY_SET = 1 << 5,
	NOTIFY_HASH = 1 << 6,
	NOTIFY_ZSET = 1 << 7,
	NOTIFY_EXPIRED = 1 << 8, /* x */
	NOTIFY_EVICTED = 1 << 9, /* e */
	NOTIFY_STREAM = 1 << 10,
	NOTIFY_MISS = 1 << 11, /* m */
	NOTIFY_MODULE = 1 << 13,
	NOTIFY_NEW = 1 << 14, /* n */
	NOTIFY_ALL = NOTIFY_GENERIC | NOTIFY_STRING | NOTIFY_LIST | NOTIFY_SET | NOTIFY_HASH |
		     NOTIFY_ZSET | NOTIFY_EXPIRED | NOTIFY_EVICTED | NOTIFY_STREAM | NOTIFY_MODULE
};

/* Publishes an event of a key. Any thread, also under a shard's lock. */
void notify(unsigned kind, const char *event, struct slice key);

/*
 * The letters of notify-keyspace-events. False: an unknown letter. `out` has room for 24
 * characters.
 */
bool notify_parse(struct slice letters, unsigned *flags);
void notify_letters(unsigned flags, char *out);

#endif
