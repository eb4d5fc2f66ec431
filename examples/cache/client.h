/*
 * A loop: one thread, one epoll, listening sockets, its clients. A client belongs to its loop's
 * thread. Other threads see it in CLIENT LIST only, under the lock of all lists, and as a
 * subscriber (pubsub.h).
 *
 * Memory is bounded. The server reads and runs what a client sends whether it takes the replies or
 * not, so a client may send a long pipeline before it reads. One whose replies wait beyond
 * CLIENT_MAX_OUTPUT is disconnected. One that sends no whole request holds what it has sent, at
 * most CLIENT_MAX_INPUT.
 */
#ifndef EXAMPLES_CACHE_CLIENT_H
#define EXAMPLES_CACHE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/resp.h"
#include "tickwheel.h"

#define REDIS_VERSION "7.0.15" /* clients choose features by it */
#define CLIENT_MAX_OUTPUT (128u * 1024 * 1024)
#define CLIENT_MAX_INPUT (1024u * 1024 * 1024)
#define LOOP_INPUT (64 * 1024)

/* What all parts of the program share: the timer service, time, and settings. */
struct cache {
	tw_service *service;
	uint64_t unix_offset_ns; /* Unix time less the service's time, as it was at the start */
	uint64_t started_ns;     /* the service's time */
	struct loop *loops;
	unsigned loop_count;

	_Atomic unsigned notify; /* enum notify_flags; CONFIG SET changes it */

	/* Settings of the command line. */
	unsigned port;
	unsigned max_clients;
	const char *bind, *unix_path;

	_Atomic unsigned clients; /* connected now */
	_Atomic uint64_t next_client_id;
};

extern struct cache cache;

/*
 * Unix time in milliseconds, the scale of deadlines. It goes on with the service's clock: a step
 * of the system's time of day moves no deadline.
 */
static inline uint64_t unix_ms(void)
{
	return (tw_service_now(cache.service) + cache.unix_offset_ns) / TW_MILLISECOND;
}

/*
 * The same rounded up: what times to live count from. So a key lives for its whole time to live,
 * and never reports more time than it was given.
 */
static inline uint64_t unix_ms_up(void)
{
	return (tw_service_now(cache.service) + cache.unix_offset_ns + TW_MILLISECOND - 1) /
	       TW_MILLISECOND;
}

/* Asks the process to end, as SIGTERM does. Any thread. */
void cache_shut_down(void);

/* Written by the loop, read by anyone. Nothing but counters: info.c adds them up. */
struct loop_figures {
	_Atomic uint64_t connections, rejected, commands, hits, misses, errors;
	_Atomic uint64_t input_bytes, output_bytes, protocol_errors, slow_clients;
};

struct loop {
	_Alignas(128) pthread_t thread;
	_Atomic bool stop;
	int epoll_fd, event_fd;
	int listen_fd, unix_fd; /* -1: none */
	struct client *clients;
	struct client *ready; /* those with mail; pubsub.c has the lock */
	uint64_t now_ns;      /* the service's time at the begin of the turn */
	char input[LOOP_INPUT];
	struct loop_figures figures;
};

struct client {
	struct loop *loop;
	int fd;
	uint32_t watched; /* epoll's events that are asked for */
	uint64_t id, made_ns;
	struct resp_parser parser;
	struct buffer in, out;
	bool resp3, closing;    /* closing: when the output has been sent */
	char peer[64], own[64]; /* the two addresses of the connection */

	/* Under the lock of pubsub.c. */
	struct subscription *subscriptions;
	size_t counts[2]; /* of channels, of patterns */
	struct buffer mail;
	bool queued, overflowed;
	struct client *next_ready;
	bool has_subscribed; /* of its loop: else it can have no mail */

	/* For CLIENT LIST. The names change under the lists' lock. */
	char *name, *library, *library_version;
	_Atomic uint64_t seen_ns;
	_Atomic(const char *) last_command;
	struct client *next, *previous;
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

/* Takes the sockets over, and makes the thread. False: no descriptors, or no thread. */
bool loop_start(struct loop *l, unsigned number, int listen_fd, int unix_fd);
void loop_wake(struct loop *l);
void loop_stop(struct loop *l); /* asks: sends the replies that wait, closes all clients */
void loop_join(struct loop *l); /* waits for the thread's end */

/* The loop's own thread calls the functions below. */

/* Changes what epoll reports of a client. */
void loop_watch(struct client *c, uint32_t events);

/* Takes the descriptor over. */
void client_open(struct loop *loop, int fd, const char *peer, const char *own);
void client_close(struct client *c);

/* Handles an event of epoll, and may free the client. */
void client_event(struct client *c, uint32_t events);

/* Sends what has been published for the client, and may free the client. */
void client_mail(struct client *c);

/* At the end of its loop: sends the replies that wait. Closes the client that has taken all. */
void client_finish(struct client *c);

#endif
