/*
 * Channels, patterns, the mail of subscribers, and keyspace notifications.
 *
 * A publisher, which may be the timer service's thread, never waits for a client: it adds the
 * message to the subscriber's mail and wakes its loop. The loop moves mail to the client's output
 * when the client has taken what was there before. A subscriber whose mail grows beyond
 * PUBSUB_MAX_MAIL is disconnected.
 *
 * One lock guards all of it. It is the innermost lock of the program.
 */
#ifndef EXAMPLES_CACHE_PUBSUB_H
#define EXAMPLES_CACHE_PUBSUB_H

#include "examples/cache/client.h"

#define PUBSUB_MAX_MAIL (32u * 1024 * 1024)

/* How many clients get it. Any thread, under a shard's lock too. */
size_t pubsub_publish(struct slice channel, struct slice message);

/* How many channels, or patterns, have subscribers. Any thread. */
size_t pubsub_topics(bool patterns);

/* The functions below are for the client's own loop. */

static inline size_t pubsub_total(const struct client *c)
{
	return c->counts[0] + c->counts[1];
}

/* RESP2 or RESP3 for what is published from now on. */
void pubsub_set_resp3(struct client *c, bool resp3);

/* Ends all subscriptions. The client gets no mail afterwards. */
void pubsub_leave(struct client *c);

/*
 * Moves mail to the client's output if that is empty, or `behind` its bytes. False: the client has
 * let too much mail come up, and must go.
 */
bool pubsub_collect(struct client *c, bool behind);

/* A client of this loop that has got mail; NULL: none. */
struct client *pubsub_next_ready(struct loop *loop);

/* ------------------------------------------------------------------ what happens to keys */

enum notify_flags {
	NOTIFY_KEYSPACE = 1 << 0, /* K */
	NOTIFY_KEYEVENT = 1 << 1, /* E */
	NOTIFY_GENERIC = 1 << 2,  /* g */
	NOTIFY_STRING = 1 << 3,   /* $ */
	NOTIFY_EXPIRED = 1 << 4,  /* x */
	NOTIFY_MISS = 1 << 5,     /* m */
	NOTIFY_NEW = 1 << 6,      /* n */
	NOTIFY_OTHERS = 7,        /* shift of l s h z e t d: types and events that are not here */
	NOTIFY_ALL = NOTIFY_GENERIC | NOTIFY_STRING | NOTIFY_EXPIRED | 0x7f << NOTIFY_OTHERS
};

/* Publishes an event of a key. Any thread, also under a shard's lock. */
void notify(unsigned kind, const char *event, struct slice key);

/* The letters of notify-keyspace-events. False: an unknown letter. `out`: 24 characters. */
bool notify_parse(struct slice letters, unsigned *flags);
void notify_letters(unsigned flags, char *out);

#endif
