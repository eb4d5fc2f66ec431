/*
 * The demo's own clients: thousands of connections on one thread. Most misbehave in a way that a
 * timeout is for. Some are slow or quiet, but within their rights.
 *
 * Each client that must be cut off is timed from just before the act that starts the server's
 * timeout, to the moment when epoll reports the end of the connection. The server can start
 * counting only after that act. So on this side "too early" needs no tolerance.
 */
#ifndef EXAMPLES_DEMO_CLIENTS_H
#define EXAMPLES_DEMO_CLIENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum client_kind {
	CLIENT_SILENT,    /* connects and says nothing */
	CLIENT_CROWD,     /* the same, all of them at one moment */
	CLIENT_HALF_HEAD, /* sends half a head and no more */
	CLIENT_TRICKLE,   /* sends a head byte by byte, without end */
	CLIENT_QUIET,     /* one to three requests, then silence */
	CLIENT_OVERLONG,  /* sends a request that takes longer than allowed */
	CLIENT_DEAF,      /* asks for much and never reads it */
	CLIENT_STEADY,    /* a request now and then */
	CLIENT_HALTING,   /* heads in pieces, each head in time */
	CLIENT_PATIENT,   /* sends requests that take long, but not too long */
	/* three malformed requests, then one after the other until the ban ends */
	CLIENT_VILLAIN,
	CLIENT_KINDS
};

#define FIRST_ACTIVE CLIENT_STEADY
#define NEVER UINT64_MAX

/* The settings of the server. */
struct time_limits {
	uint64_t head_ns, request_ns, idle_ns, ban_ns;
};

struct kind {
	const char *does;
	unsigned count;
	uint64_t timeout_ns;          /* what the server allows; 0: it must never be cut off */
	uint64_t from_ns, over_ns;    /* when they come, counted from the start */
	_Atomic unsigned came, ended; /* for the live table */
};

struct client {
	enum client_kind kind;
	unsigned number; /* within its kind */
	int fd;          /* -1: not connected */
	unsigned step;
	unsigned asked, answered;
	int status; /* of the last answer */

	uint64_t since_ns; /* before the act that starts the server's timeout */
	uint64_t ended_ns; /* 0: not cut off */

	uint64_t asked_ns;   /* before the latest request began */
	uint64_t slowest_ns; /* active ones: the longest that it left the server waiting */
	uint64_t soonest_ns; /* patient ones: the quickest answer; NEVER: none yet */

	unsigned refusals;    /* villains, while banned */
	uint64_t welcomed_ns; /* villains: when the first answer after the ban came */
};

struct clients {
	uint16_t port;
	struct time_limits limits;
	struct kind kinds[CLIENT_KINDS];

	struct client *all;
	uint64_t *next_ns; /* when each acts next; apart, since all are looked at often */
	size_t count;
	int epoll_fd;
	pthread_t thread;
	uint64_t started_ns;

	_Atomic bool stop;
	_Atomic unsigned failed;     /* could not connect */
	_Atomic unsigned unfinished; /* still to be cut off, or to be answered after a ban */
	uint64_t longest_turn_ns;
};

/* Fits the crowd to at most `most` descriptors. False: out of memory. */
bool clients_init(struct clients *c, uint16_t port, const struct time_limits *limits, size_t most);
bool clients_start(struct clients *c);

/* Waits for the thread. The active ones stay connected until clients_free. */
void clients_stop(struct clients *c);
void clients_free(struct clients *c);

static inline bool client_is_active(enum client_kind kind)
{
	return kind >= FIRST_ACTIVE && kind != CLIENT_VILLAIN;
}

#endif
