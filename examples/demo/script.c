/*
 * Each act takes its time stamp first, and makes its system call after that. So the server's
 * timeout cannot have begun before the stamp.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "examples/demo/instant.h"
#include "examples/demo/script.h"

#define REQUEST "GET / HTTP/1.1\r\nHost: demo\r\n\r\n"
#define OVERLONG_REQUEST "GET /slow?ms=8000 HTTP/1.1\r\nHost: demo\r\n\r\n"
#define PATIENT_REQUEST "GET /slow?ms=300 HTTP/1.1\r\nHost: demo\r\n\r\n"
#define BIG_REQUEST "GET /big?bytes=600000 HTTP/1.1\r\nHost: demo\r\n\r\n"
#define MALFORMED_REQUEST "GET\r\n\r\n"

#define PATIENT_ANSWER_NS (300 * NS_PER_MS)
#define TRICKLE_EVERY_NS (150 * NS_PER_MS)
#define QUIET_EVERY_NS (600 * NS_PER_MS)
#define STEADY_EVERY_NS (500 * NS_PER_MS)
#define PIECE_EVERY_NS (250 * NS_PER_MS)
#define KNOCK_EVERY_NS (20 * NS_PER_MS)
#define PIECES 5

/* An error shows as the end of the connection later. */
static void say(const struct client *c, const char *text, size_t length)
{
	ssize_t n = send(c->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)n;
}

static void ask(struct client *c, const char *request)
{
	c->asked++;
	c->asked_ns = instant_ns();
	say(c, request, strlen(request));
}

static uint64_t half_head(struct client *c)
{
	static const char half[] = "GET / HTTP/1.1\r\nHost: de";
	say(c, half, sizeof(half) - 1);
	return NEVER;
}

/* Counted from the connect: further bytes must not move the timeout. */
static uint64_t trickle(struct client *c)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: demo\r\nX: ";
	char byte = c->step < sizeof(head) - 1 ? head[c->step] : 'x';
	c->step++;
	say(c, &byte, 1);
	return instant_ns() + TRICKLE_EVERY_NS;
}

static uint64_t quiet(struct client *c)
{
	ask(c, REQUEST);
	c->since_ns = c->asked_ns;
	return ++c->step <= c->number % 3 ? c->asked_ns + QUIET_EVERY_NS : NEVER;
}

static uint64_t ask_once(struct client *c, const char *request)
{
	ask(c, request);
	c->since_ns = c->asked_ns;
	return NEVER;
}

/*
 * How long it left the server without a byte since `then`: active ones must stay within the limits
 * themselves.
 */
static void note_pause(struct client *c, uint64_t then_ns)
{
	uint64_t pause_ns = instant_ns() - then_ns;
	if (then_ns != 0 && pause_ns > c->slowest_ns)
		c->slowest_ns = pause_ns;
}

static uint64_t steady(struct client *c)
{
	uint64_t last_ns = c->asked_ns;
	ask(c, REQUEST);
	note_pause(c, last_ns);
	return c->asked_ns + STEADY_EVERY_NS;
}

/* A head in pieces. The first piece starts the server's timeout, the last one ends it. */
static uint64_t halting(struct client *c)
{
	static const char request[] = REQUEST;
	size_t length = sizeof(request) - 1, piece = length / PIECES + 1, at = c->step * piece;
	bool last = ++c->step == PIECES;
	if (at == 0) {
		c->asked++;
		c->asked_ns = instant_ns();
	}
	say(c, request + at, last ? length - at : piece);
	if (!last)
		return instant_ns() + PIECE_EVERY_NS;
	note_pause(c, c->asked_ns);
	c->step = 0;
	return NEVER;
}

static uint64_t patient(struct client *c)
{
	ask(c, PATIENT_REQUEST);
	return NEVER;
}

/*
 * Misdeeds 1 to 3, then knocks, each on a connection of its own. The server ends those of the
 * misdeeds.
 */
static uint64_t villain(struct client *c)
{
	bool knocks = c->step >= 3;
	ask(c, knocks ? REQUEST : MALFORMED_REQUEST);
	if (!knocks)
		c->since_ns = c->asked_ns;
	return NEVER;
}

static uint64_t act_connected(struct client *c)
{
	switch (c->kind) {
	case CLIENT_HALF_HEAD:
		return half_head(c);
	case CLIENT_TRICKLE:
		return trickle(c);
	case CLIENT_QUIET:
		return quiet(c);
	case CLIENT_OVERLONG:
		return ask_once(c, OVERLONG_REQUEST);
	case CLIENT_DEAF:
		return ask_once(c, BIG_REQUEST);
	case CLIENT_STEADY:
		return steady(c);
	case CLIENT_HALTING:
		return halting(c);
	case CLIENT_PATIENT:
		return patient(c);
	case CLIENT_VILLAIN:
		return villain(c);
	default:
		return NEVER;
	}
}

uint64_t script_act(struct clients *all, struct client *c)
{
	if (c->since_ns == 0)
		c->since_ns = instant_ns();
	if (c->fd < 0 && !clients_connect(all, c)) {
		atomic_fetch_add(&all->failed, 1);
		return NEVER;
	}
	return act_connected(c);
}

static uint64_t patient_answered(struct client *c, uint64_t seen_ns)
{
	uint64_t took_ns = seen_ns - c->asked_ns;
	if (c->soonest_ns > took_ns)
		c->soonest_ns = took_ns;
	return seen_ns + PATIENT_ANSWER_NS;
}

/*
 * The answer to a misdeed is an error, and the connection ends. The answer to a knock ends the ban.
 */
static uint64_t villain_answered(struct clients *all, struct client *c, uint64_t seen_ns)
{
	if (c->step < 3)
		return NEVER;
	c->welcomed_ns = seen_ns;
	atomic_fetch_sub(&all->unfinished, 1);
	atomic_fetch_add(&all->kinds[CLIENT_VILLAIN].ended, 1);
	clients_disconnect(c);
	return NEVER;
}

uint64_t script_answered(struct clients *all, struct client *c, uint64_t seen_ns)
{
	switch (c->kind) {
	case CLIENT_PATIENT:
		return patient_answered(c, seen_ns);
	case CLIENT_HALTING:
		return seen_ns;
	case CLIENT_VILLAIN:
		return villain_answered(all, c, seen_ns);
	default:
		return NEVER;
	}
}

uint64_t script_ended(struct clients *all, struct client *c, uint64_t seen_ns)
{
	clients_disconnect(c);
	if (c->kind != CLIENT_VILLAIN) {
		c->ended_ns = seen_ns;
		atomic_fetch_add(&all->kinds[c->kind].ended, 1);
		if (all->kinds[c->kind].timeout_ns != 0)
			atomic_fetch_sub(&all->unfinished, 1);
		return NEVER;
	}
	if (c->step < 3) {
		c->step++;
		return seen_ns;
	}
	c->refusals++;
	return seen_ns + KNOCK_EVERY_NS;
}
