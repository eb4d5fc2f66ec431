/*
 * The clients' loop. Each turn reads what the server has sent, then lets a bounded number of
 * clients act whose time has come. So no end of a connection is seen late for long.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/demo/clients.h"
#include "examples/demo/instant.h"
#include "examples/demo/page.h"
#include "examples/demo/script.h"

#define EVENTS_PER_TURN 256
#define ACTS_PER_TURN 64
#define TURN_MS 2

/*
 * Source addresses: one for each villain, so that a ban affects nobody else, and one for each other
 * kind.
 */
#define ADDRESS_OF_KINDS 0x7f000002u    /* 127.0.0.2 and on */
#define ADDRESS_OF_VILLAINS 0x7f000101u /* 127.0.1.1 and on */

static const struct kind population[CLIENT_KINDS] = {
    [CLIENT_SILENT] = {"connect, say nothing", 1200, .from_ns = 0, .over_ns = 8000 * NS_PER_MS},
    [CLIENT_CROWD] = {"the same, all at once", 500, .from_ns = 4000 * NS_PER_MS, .over_ns = 0},
    [CLIENT_HALF_HEAD] = {"send half a head", 800, .from_ns = 0, .over_ns = 8000 * NS_PER_MS},
    [CLIENT_TRICKLE] = {"send a head byte by byte", 400, .from_ns = 0, .over_ns = 8000 * NS_PER_MS},
    [CLIENT_QUIET] = {"1 to 3 requests, silence", 1200, .from_ns = 0, .over_ns = 7000 * NS_PER_MS},
    [CLIENT_OVERLONG] = {"ask for 8 s of work", 500, .from_ns = 0, .over_ns = 9000 * NS_PER_MS},
    [CLIENT_DEAF] = {"ask for much, never read", 60, .from_ns = 0, .over_ns = 9000 * NS_PER_MS},
    [CLIENT_STEADY] = {"a request each 500 ms", 300, .from_ns = 0, .over_ns = 2000 * NS_PER_MS},
    [CLIENT_HALTING] = {"heads in pieces, in time", 200, .from_ns = 0, .over_ns = 2000 * NS_PER_MS},
    [CLIENT_PATIENT] = {"ask for 300 ms of work", 200, .from_ns = 0, .over_ns = 2000 * NS_PER_MS},
    [CLIENT_VILLAIN] = {"misbehave, are banned", 20, .from_ns = 1000 * NS_PER_MS,
			.over_ns = 4000 * NS_PER_MS},
};

static void set_timeouts(struct clients *c)
{
	c->kinds[CLIENT_SILENT].timeout_ns = c->limits.head_ns;
	c->kinds[CLIENT_CROWD].timeout_ns = c->limits.head_ns;
	c->kinds[CLIENT_HALF_HEAD].timeout_ns = c->limits.head_ns;
	c->kinds[CLIENT_TRICKLE].timeout_ns = c->limits.head_ns;
	c->kinds[CLIENT_QUIET].timeout_ns = c->limits.idle_ns;
	c->kinds[CLIENT_OVERLONG].timeout_ns = c->limits.request_ns;
	c->kinds[CLIENT_DEAF].timeout_ns = c->limits.request_ns;
}

static void fit(struct clients *c, size_t most)
{
	size_t wanted = 0;
	for (unsigned k = 0; k < CLIENT_KINDS; k++)
		wanted += c->kinds[k].count;
	for (unsigned k = 0; k < CLIENT_KINDS; k++) {
		if (wanted > most)
			c->kinds[k].count = 1 + (unsigned)(c->kinds[k].count * most / wanted);
		c->count += c->kinds[k].count;
	}
}

static void fill(struct clients *c)
{
	size_t i = 0;
	for (unsigned k = 0; k < CLIENT_KINDS; k++) {
		const struct kind *kind = &c->kinds[k];
		for (unsigned number = 0; number < kind->count; number++, i++) {
			c->all[i] = (struct client){
			    .kind = k, .number = number, .fd = -1, .soonest_ns = NEVER};
			c->next_ns[i] = kind->from_ns + kind->over_ns * number / kind->count;
		}
		if (!client_is_active(k))
			c->unfinished += kind->count;
	}
}

bool clients_init(struct clients *c, uint16_t port, const struct time_limits *limits, size_t most)
{
	*c = (struct clients){.port = port, .limits = *limits};
	memcpy(c->kinds, population, sizeof(population));
	set_timeouts(c);
	fit(c, most);
	c->all = calloc(c->count, sizeof(*c->all));
	c->next_ns = calloc(c->count, sizeof(*c->next_ns));
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->all == NULL || c->next_ns == NULL || c->epoll_fd < 0)
		return false;
	fill(c);
	return true;
}

bool clients_connect(struct clients *all, struct client *c)
{
	bool villain = c->kind == CLIENT_VILLAIN;
	c->fd = page_connect(all->port, villain ? ADDRESS_OF_VILLAINS + c->number
						: ADDRESS_OF_KINDS + c->kind);
	if (c->fd < 0)
		return false;
	/*
	 * epoll reports a reset to a deaf client, too. That is how the server ends its connection.
	 */
	struct epoll_event event = {.events = c->kind == CLIENT_DEAF ? 0 : EPOLLIN, .data.ptr = c};
	if (epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0) {
		clients_disconnect(c);
		return false;
	}
	return true;
}

void clients_disconnect(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

static void set_next(struct clients *all, const struct client *c, uint64_t next_ns)
{
	all->next_ns[c - all->all] = next_ns;
}

/*
 * A client has at most one request under way, and answers are small: one read gets a whole answer.
 */
static void hear(struct clients *all, struct client *c, uint64_t seen_ns)
{
	char text[2048];
	ssize_t n = c->kind == CLIENT_DEAF ? 0 : recv(c->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		set_next(all, c, script_ended(all, c, seen_ns));
		return;
	}
	text[n] = 0;
	c->answered++;
	if (sscanf(text, "HTTP/1.1 %d", &c->status) != 1)
		c->status = 0;
	uint64_t next_ns = script_answered(all, c, seen_ns);
	if (next_ns != NEVER)
		set_next(all, c, next_ns);
}

static size_t act(struct clients *all, size_t from, uint64_t now_ns)
{
	unsigned acts = 0;
	size_t i = from;
	for (; i < all->count && acts < ACTS_PER_TURN; i++) {
		if (all->next_ns[i] > now_ns)
			continue;
		struct client *c = &all->all[i];
		bool first = c->since_ns == 0;
		all->next_ns[i] = script_act(all, c);
		if (first)
			atomic_fetch_add(&all->kinds[c->kind].came, 1);
		acts++;
	}
	return i < all->count ? i : 0;
}

/* Returns where the next turn's acts go on. */
static size_t turn(struct clients *all, size_t from)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int n = epoll_wait(all->epoll_fd, events, EVENTS_PER_TURN, from > 0 ? 0 : TURN_MS);
	uint64_t seen_ns = instant_ns();
	for (int i = 0; i < n; i++)
		hear(all, events[i].data.ptr, seen_ns);
	from = act(all, from, instant_ns());
	uint64_t took_ns = instant_ns() - seen_ns;
	if (took_ns > all->longest_turn_ns)
		all->longest_turn_ns = took_ns;
	return from;
}

static void *run(void *arg)
{
	struct clients *all = arg;
	size_t from = 0;
	while (!atomic_load(&all->stop))
		from = turn(all, from);
	return NULL;
}

bool clients_start(struct clients *c)
{
	c->started_ns = instant_ns();
	for (size_t i = 0; i < c->count; i++)
		c->next_ns[i] += c->started_ns;
	return pthread_create(&c->thread, NULL, run, c) == 0;
}

void clients_stop(struct clients *c)
{
	atomic_store(&c->stop, true);
	pthread_join(c->thread, NULL);
}

void clients_free(struct clients *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->all[i].fd >= 0)
			clients_disconnect(&c->all[i]);
	close(c->epoll_fd);
	free(c->all);
	free(c->next_ns);
}
