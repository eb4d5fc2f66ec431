/*
 * A client: its socket, what has arrived and is no whole request yet, what it has not taken yet.
 *
 * It belongs to its loop's thread. Other threads see it in CLIENT LIST only, under the registry's
 * lock, and by its subscriber (pubsub.h).
 *
 * Memory is bounded. The server reads and runs what a client sends whether it takes the replies or
 * not, so a client may send a long pipeline before it reads. One whose replies wait beyond
 * CLIENT_MAX_OUTPUT is disconnected. One that sends no whole request holds what it has sent, at
 * most CLIENT_MAX_INPUT.
 */
#ifndef EXAMPLES_CACHE_CLIENT_H
#define EXAMPLES_CACHE_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/resp.h"

#define CLIENT_MAX_OUTPUT (128u * 1024 * 1024)
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
	bool resp3, closing;           /* closing: when the output has been sent */
	struct subscriber *subscriber; /* NULL: has never subscribed */
	char peer[64], own[64];        /* the two addresses of the connection */

	/* For CLIENT LIST. The names change under the registry's lock. */
	char *name, *library, *library_version;
	_Atomic uint64_t seen_ns;
	_Atomic(const char *) last_command;
	struct client *next, *previous;
};

/* Takes the descriptor over. */
struct client *client_open(struct loop *loop, int fd, const char *peer, const char *own);
void client_close(struct client *c);

/* Handles an event of epoll, and may free the client. */
void client_event(struct client *c, uint32_t events);

/* Sends what has been published for the client, and may free the client. */
void client_mail(struct client *c);

/* At the end of its loop: sends the replies that wait. Closes the client that has taken all. */
void client_finish(struct client *c);

/* The loop's own thread: calls `end`, which may close the client, for each client of the loop. */
void clients_of_loop(struct loop *loop, void (*end)(struct client *c));
bool clients_left(struct loop *loop);

#endif
