/*
 * What epoll_loop.c and loop_*.c share: a connection with an idle timeout, and a client that sends
 * a few bytes and falls silent. The client's thread schedules and cancels timers of the same
 * service.
 *
 * The service has no thread. The loop watches tw_service_fd() beside its sockets, and calls
 * tw_service_advance() when it is readable. So callbacks run in the loop's thread, and need no
 * lock.
 *
 * A loop does four things:
 * 1. It calls connection_open.
 * 2. It watches connection.fd and tw_service_fd(connection.timers) for reading.
 * 3. In each turn it calls connection_readable for the socket, then connection_timers_due once,
 *    until connection_done.
 * 4. It calls connection_end.
 *
 * Sockets come first in a turn: a callback may free a connection, and an event of the same turn
 * would name it afterwards. Each example says how its loop keeps that order.
 */
#ifndef EXAMPLES_LOOP_CONNECTION_H
#define EXAMPLES_LOOP_CONNECTION_H

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tickwheel.h"

#define IDLE_NS (60 * TW_MILLISECOND)

struct connection {
	tw_service *timers;
	tw_timer idle;
	int fd, clients_fd;
	int bytes, notices; /* touched by the loop's thread only: no lock */
	bool is_idle, in_wrong_thread;
	int cancelled; /* the answer of the client's cancel */
	pthread_t loop, client;
};

static void on_idle(void *arg)
{
	struct connection *c = arg;
	printf("silent for %d ms after %d bytes: closed\n", (int)(IDLE_NS / TW_MILLISECOND),
	       c->bytes);
	c->is_idle = true;
	c->in_wrong_thread |= !pthread_equal(c->loop, pthread_self());
}

static void on_notice(void *arg)
{
	struct connection *c = arg;
	printf("a timer of the client's thread, in the loop's\n");
	c->notices++;
	c->in_wrong_thread |= !pthread_equal(c->loop, pthread_self());
}

/*
 * Another thread: its timers are earlier than what the loop sleeps for, so the descriptor wakes the
 * loop.
 */
static void *client(void *arg)
{
	struct connection *c = arg;
	tw_timer never;
	tw_schedule(c->timers, 5 * TW_MILLISECOND, on_notice, c, NULL);
	tw_schedule(c->timers, TW_SECOND, on_notice, c, &never);
	for (int i = 0; i < 5; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		send(c->clients_fd, "!", 1, MSG_NOSIGNAL);
	}
	c->cancelled = tw_cancel(c->timers, never);
	return NULL;
}

/* Called when connection.fd is readable. */
static inline void connection_readable(struct connection *c)
{
	char buffer[64];
	ssize_t n = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
	if (n <= 0)
		return;
	c->bytes += (int)n;
	/* with a loop time: tw_reset_at, which reads no clock */
	tw_reset(c->timers, c->idle, IDLE_NS);
}

/*
 * Called when tw_service_fd(connection.timers) is readable: once a turn, after all sockets of the
 * turn.
 */
static inline void connection_timers_due(struct connection *c)
{
	tw_service_advance(c->timers, TW_NO_LIMIT);
}

static inline bool connection_done(const struct connection *c)
{
	return c->is_idle && c->notices > 0;
}

static inline bool connection_open(struct connection *c)
{
	struct tw_service_config config = {
	    .size = sizeof config, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	int fds[2];
	*c = (struct connection){.loop = pthread_self()};
	if (tw_service_create(&c->timers, &config) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	c->fd = fds[0];
	c->clients_fd = fds[1];
	return tw_schedule(c->timers, IDLE_NS, on_idle, c, &c->idle) == 0 &&
	       tw_service_fd(c->timers) >= 0 && pthread_create(&c->client, NULL, client, c) == 0;
}

/* For main to return: 0 if all went well. */
static inline int connection_end(struct connection *c)
{
	pthread_join(c->client, NULL);
	tw_service_destroy(c->timers);
	close(c->fd);
	close(c->clients_fd);
	return connection_done(c) && !c->in_wrong_thread && c->cancelled == TW_CANCELLED ? 0 : 1;
}

#endif
