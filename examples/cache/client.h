/*
 * A client: its socket, what has arrived and is no whole request yet, what it has not taken yet.
 *
 * It belongs to its loop's thread. Other threads see it in CLIENT LIST only, under the registry's
 * lock, and by its subscriber (pubsub.h).
 *
 * Memory is bounded. A client whose output waits gets no further command run, and nothing is read
 * from it, until it has taken that. One that sends no whole request holds what it has sent, at
 * most CLIENT_MAX_INPUT.
 */
#ifndef EXAMPLES_CACHE_CLIENT_H
#define EXAMPLES_CACHE_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/resp.h"

#define CLIENT_PAUSE_OUTPUT (1024 * 1024)
#define CLIENT_MAX_INPUT (1024u * 1024 * 1024)

struct loop;
struct subscriber;

struct client {
	struct loop *loop;
	int fd;
	uint32_t watched; /* epoll's events that are asked for */
	uint64_t id, made_ns;
	struct resp_parser parser;
	struct buffer in, out;
	struct buffer *reply;          /* where commands write: the loop's buffer, or `out` */
	size_t reply_start;            /* length of that buffer before the client's replies */
	bool resp3, closing;           /* closing: when the output has been sent */
	struct subscriber *subscriber; /* NULL: has never subscribed */
	char peer[64];

	/* For CLIENT LIST. The names change under the registry's lock. */
	char *name, *library, *library_version;
	_Atomic uint64_t seen_ns;
	_Atomic(const char *) last_command;
	struct client *next, *previous;
};

/* Takes the descriptor over. */
struct client *client_open(struct loop *loop, int fd, const char *peer);
void client_close(struct client *c);

/*
 * Handles an event in two halves, so that the loop can send the replies of several clients in one
 * go. client_event runs requests and adds their replies to the loop's output; false: the client
 * must go. client_answer sends these replies, and may free the client.
 */
bool client_event(struct client *c, uint32_t events);
void client_answer(struct client *c, struct slice replies, bool stays);

/* Sends what has been published for the client, and may free the client. */
void client_mail(struct client *c);

/* At the end of its loop: sends the replies that wait. Closes the client that has taken all. */
void client_finish(struct client *c);

/* All clients, any thread. The visitor runs under the registry's lock. */
typedef void client_visit(void *arg, struct client *c);
void clients_each(client_visit *visit, void *arg);

/* The loop's own thread: calls `end`, which may close the client, for each client of the loop. */
void clients_of_loop(struct loop *loop, void (*end)(struct client *c));
bool clients_left(struct loop *loop);

/* Replaces a name of the client, which may be NULL. */
void client_set_name(char **name, struct slice value);

/* The line of CLIENT INFO and CLIENT LIST. */
void client_describe(struct client *c, struct buffer *out);

#endif
