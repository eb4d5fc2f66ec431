/*
 * Channels, patterns, and the mail of subscribers.
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

#include <stdbool.h>
#include <stddef.h>

#include "examples/cache/buffer.h"

#define PUBSUB_MAX_MAIL (32u * 1024 * 1024)

struct client;
struct loop;
struct subscriber;

/* What a loop has to look at; empty for a start. */
struct pubsub_ready {
	struct subscriber *first;
};

bool pubsub_has_subscribers(void);

/* How many clients get it. Any thread, under a shard's lock too. */
size_t pubsub_publish(struct slice channel, struct slice message);

/* By the client's own loop: */

/* Adds or removes a subscription, and tells how many the client has now. */
size_t pubsub_subscribe(struct client *c, struct slice name, bool is_pattern);
size_t pubsub_unsubscribe(struct client *c, struct slice name, bool is_pattern);

/* One of the client's channels or patterns, copied to `name`. False: it has none. */
bool pubsub_any(struct client *c, bool is_pattern, struct buffer *name);
size_t pubsub_count(struct client *c);

/* RESP2 or RESP3 for what is published from now on. */
void pubsub_set_resp3(struct client *c, bool resp3);

/* Ends all subscriptions of a client that goes. */
void pubsub_leave(struct client *c);

/*
 * Moves mail to the client's output. False: the client has let too much mail come up, and must
 * go.
 */
bool pubsub_collect(struct client *c);

/* A client of this loop that has got mail; NULL: none. */
struct client *pubsub_next_ready(struct loop *loop);

/* For PUBSUB: */
void pubsub_list(struct slice pattern, struct buffer *out);
size_t pubsub_subscribers(struct slice channel);
size_t pubsub_patterns(void);
size_t pubsub_channels(void);

#endif
