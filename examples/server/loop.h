/*
 * An event loop: one thread, one epoll, one listening socket of the shared port, and a table of
 * connections.
 */
#ifndef EXAMPLES_SERVER_LOOP_H
#define EXAMPLES_SERVER_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "examples/server/http.h"
#include "tickwheel.h"

/* ------------------------------------------------------------------ connections */

/*
 * One client of one loop. It reads heads, answers, and at any time has the timeouts that belong to
 * what it is doing.
 *
 * Timeouts: the pattern to copy. A slot for connections has a persistent timer of each kind, made
 * with the slot. Its callback runs in the loop, since the timers name the loop's queue as their
 * executor, and the loop pumps the queue. So the callback may close the connection, and needs no
 * lock against what the sockets bring. To disarm or move a timer wins also when it has expired and
 * waits in the queue: what is cleared never runs, and a slot that is used again gets no timeout of
 * the client before.
 */

enum timeout_kind {
	TIMEOUT_HEAD,    /* from accept, or from a head's first byte, to its last */
	TIMEOUT_REQUEST, /* from the end of the head until the kernel has the answer */
	TIMEOUT_IDLE,    /* keep-alive: touched by each request */
	TIMEOUT_ANSWER,  /* no timeout but work: the answer to /slow is due */
	TIMEOUT_KINDS
};

struct loop;

struct timeout {
	struct connection *connection;
	enum timeout_kind kind;
	bool is_set;
	tw_timer timer;
};

struct connection {
	struct loop *loop;
	struct connection *next_free;
	int fd;
	uint32_t watched;    /* epoll events */
	bool closing;        /* ends when all answers are sent */
	struct bytes unread; /* the start of a head, or requests that wait */
	struct bytes unsent;
	struct timeout timeouts[TIMEOUT_KINDS];
};

/* False: the service has no room for its timers. */
bool connection_init(struct connection *c, struct loop *loop);
void connection_open(struct connection *c, int fd, uint64_t now_ns);
void connection_on_event(struct connection *c, uint32_t events);
void connection_close(struct connection *c);

/* ------------------------------------------------------------------ loops */

#define LOOP_INPUT (2 * HTTP_MAX_HEAD)

struct limits {
	uint64_t head_ns, request_ns, idle_ns;
};

struct server {
	tw_service *service;
	struct limits limits;
	struct loop *loops;
	size_t loop_count;
};

/* Written by the loop, read by reports. Nothing but counters: server.c adds them up. */
struct loop_figures {
	_Atomic uint64_t accepted, closed, requests, malformed;
	_Atomic uint64_t full; /* no slot was free */
	_Atomic uint64_t timeouts[TIMEOUT_KINDS];
};

/* For counters with one writer: cheaper than a locked addition, and never torn for readers. */
static inline void count_up(_Atomic uint64_t *counter)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, old + 1, memory_order_relaxed);
}

struct loop {
	const struct server *server;
	pthread_t thread;
	_Atomic bool stop;
	int epoll_fd, listen_fd;
	tw_manual *queue; /* of timeouts: they run in the loop */

	/*
	 * The loop's time: read once a turn, when epoll_wait has returned. That is never before
	 * the arrival of what ended the wait. Deadlines count from it. What arrives during a turn
	 * may be read with a time older than itself.
	 */
	uint64_t now_ns;

	struct connection *connections; /* reused, never moved: timeouts point here */
	struct connection *free;
	size_t used, room;

	char input[LOOP_INPUT];
	struct bytes output;

	struct loop_figures figures;
};

/*
 * A socket of that port (0: any) on 127.0.0.1, or a negative errno. The kernel spreads a port's
 * connections over its sockets.
 */
int loop_listen(uint16_t port);

bool loop_init(struct loop *l, const struct server *server, int listen_fd, size_t room);
bool loop_start(struct loop *l, unsigned number);
void loop_stop(struct loop *l); /* waits for its thread, which closes its connections */
/* after the service is destroyed, whose timers use its queue */
void loop_free(struct loop *l);

/* Pages that server.c makes of figures. */

typedef bool page_fn(const struct server *server, FILE *out);

/* GET /stats: one "name value" a line, for programs and for people. */
page_fn report;

/* GET /metrics: the service's figures in the text format of Prometheus; the library writes it. */
page_fn metrics;

/* *text is the caller's to free, in any case. False: out of memory. */
bool page(const struct server *server, page_fn *write, char **text, size_t *length);

#endif
