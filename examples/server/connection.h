/*
 * One client of one loop. It reads heads, answers, and at any time has the timeouts that belong to
 * what it is doing.
 */
#ifndef EXAMPLES_SERVER_CONNECTION_H
#define EXAMPLES_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "examples/server/http.h"
#include "examples/server/timeout.h"

enum timeout_kind {
	TIMEOUT_HEAD,    /* from accept, or from a head's first byte, to its last */
	TIMEOUT_REQUEST, /* from the end of the head until the kernel has the answer */
	TIMEOUT_IDLE,    /* keep-alive: touched by each request */
	TIMEOUT_ANSWER,  /* no timeout but work: the answer to /slow is due */
	TIMEOUT_KINDS
};

struct loop;

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

void connection_init(struct connection *c, struct loop *loop);
void connection_open(struct connection *c, int fd, uint64_t now_ns);
void connection_on_event(struct connection *c, uint32_t events);
void connection_on_notice(const struct notice *n);
void connection_close(struct connection *c);

#endif
