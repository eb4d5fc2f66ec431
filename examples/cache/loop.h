/* An event loop: one thread, one epoll, listening sockets, its clients. */
#ifndef EXAMPLES_CACHE_LOOP_H
#define EXAMPLES_CACHE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOOP_INPUT (64 * 1024)

struct subscriber;

/* Written by the loop, read by anyone. */
struct loop_figures {
	_Atomic uint64_t connections, rejected, commands, hits, misses, errors;
	_Atomic uint64_t input_bytes, output_bytes, protocol_errors, slow_clients;
};

struct loop {
	_Alignas(128) pthread_t thread;
	_Atomic bool stop;
	int epoll_fd, event_fd;
	int listen_fd, unix_fd;   /* -1: none */
	int spare_fd;             /* closed for a moment when descriptors are used up */
	struct subscriber *ready; /* those with mail; pubsub.h has the lock */
	uint64_t now_ns;          /* the service's time at the begin of the turn */
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
bool loop_init(struct loop *l, int listen_fd, int unix_fd);
bool loop_start(struct loop *l, unsigned number);
void loop_wake(struct loop *l);
void loop_stop(struct loop *l); /* asks: sends the replies that wait, closes all clients */
void loop_join(struct loop *l); /* waits for the thread's end */
void loop_free(struct loop *l);

struct client;

/* Changes what epoll reports of a client. */
void loop_watch(struct client *c, uint32_t events);

#endif
