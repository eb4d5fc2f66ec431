/* An event loop: one thread, one epoll, listening sockets, its clients. */
#ifndef EXAMPLES_CACHE_LOOP_H
#define EXAMPLES_CACHE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

#define LOOP_INPUT (64 * 1024)

/* Written by the loop, read by anyone. */
struct loop_figures {
	_Atomic uint64_t connections, rejected, commands, hits, misses, errors;
	_Atomic uint64_t input_bytes, output_bytes, protocol_errors, slow_subscribers;
};

#define LOOP_EVENTS 512 /* at most, in one turn */

/* The replies of one client: the loop's output up to `end`, from where the answer before ends. */
struct loop_answer {
	struct client *client;
	size_t end;
	bool stays; /* false: the client must go */
};

struct loop {
	_Alignas(128) pthread_t thread;
	_Atomic bool stop;
	int epoll_fd, event_fd;
	int listen_fd, unix_fd; /* -1: none */
	int service_fd;         /* of a service that this loop drives; -1: it does not */
	int spare_fd;           /* closed for a moment when descriptors are used up */
	unsigned polls;         /* of epoll, before the loop sleeps */
	struct pubsub_ready ready;
	uint64_t now_ns;          /* the service's time at the begin of the turn */
	struct buffer output;     /* replies that are to be sent in this turn */
	struct resp_parser ahead; /* reads requests that will be run soon */
	struct loop_answer answers[LOOP_EVENTS];
	size_t answer_count, unanswered_bytes; /* the latter: input of these clients */
	char input[LOOP_INPUT];
	struct loop_figures figures;
};

/*
 * Listening sockets. loop_listen fails while any other socket listens on the port; port 0 means
 * any free port. loop_listen_beside makes one more socket for the port of `fd`, so that each loop
 * accepts its share of the connections. Each returns a descriptor, or prints why and returns the
 * negative errno.
 */
int loop_listen(const char *address, unsigned port);
int loop_listen_beside(int fd);
int loop_listen_unix(const char *path);

/* Takes the sockets over. False: no descriptors. */
bool loop_init(struct loop *l, int listen_fd, int unix_fd, int service_fd);
bool loop_start(struct loop *l, unsigned number);
void loop_wake(struct loop *l);
void loop_stop(struct loop *l); /* asks: sends the replies that wait, closes all clients */
void loop_join(struct loop *l); /* waits for the thread's end */
void loop_free(struct loop *l);

/* Changes what epoll reports of a client. */
struct client;
void loop_watch(struct client *c, uint32_t events);

#endif
