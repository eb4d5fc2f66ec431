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
#ifndef EXAMPLES_SERVER_CONNECTION_H
#define EXAMPLES_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "examples/server/http.h"
#include "tickwheel.h"

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

#endif
