/*
 * Timers of a server on libevent. The base's thread serves them through one persistent event. Any
 * thread schedules and cancels.
 *
 * Sockets first: the event of tw_service_fd only activates another event. That event is appended to
 * the queue of active events, and is called after all sockets of the turn. Events of a low
 * priority would starve.
 */
#include <event2/event.h>

#include "loop_connection.h"

struct server {
	struct connection connection;
	struct event_base *base;
	struct event *after_sockets; /* never added, only activated */
};

static void on_socket(evutil_socket_t fd, short events, void *arg)
{
	struct server *server = arg;
	(void)fd;
	(void)events;
	connection_readable(&server->connection);
}

static void on_timers(evutil_socket_t fd, short events, void *arg)
{
	struct server *server = arg;
	(void)fd;
	(void)events;
	event_active(server->after_sockets, EV_TIMEOUT, 1);
}

static void after_sockets(evutil_socket_t fd, short events, void *arg)
{
	struct server *server = arg;
	(void)fd;
	(void)events;
	connection_timers_due(&server->connection);
	if (connection_done(&server->connection))
		event_base_loopbreak(server->base);
}

int main(void)
{
	struct server server = {.base = event_base_new()};
	if (!server.base || !connection_open(&server.connection))
		return 1;
	struct event *socket =
	    event_new(server.base, server.connection.fd, EV_READ | EV_PERSIST, on_socket, &server);
	struct event *timers = event_new(server.base, tw_service_fd(server.connection.timers),
					 EV_READ | EV_PERSIST, on_timers, &server);
	server.after_sockets = event_new(server.base, -1, 0, after_sockets, &server);
	if (!socket || !timers || !server.after_sockets || event_add(socket, NULL) != 0 ||
	    event_add(timers, NULL) != 0)
		return 1;
	event_base_dispatch(server.base);
	event_free(timers); /* before the service is destroyed: it owns the descriptor */
	event_free(server.after_sockets);
	event_free(socket);
	event_base_free(server.base);
	return connection_end(&server.connection);
}
