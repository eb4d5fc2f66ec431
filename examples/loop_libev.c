/*
 * Timers of a server on libev. The loop's thread serves them through one ev_io. Any thread
 * schedules and cancels.
 *
 * Sockets first: the ev_io of tw_service_fd has the lowest priority. In each turn libev calls all
 * watchers that are ready, by priority.
 */
#include <ev.h>

#include "loop_connection.h"

static void on_socket(struct ev_loop *loop, ev_io *watcher, int events)
{
	(void)loop;
	(void)events;
	connection_readable(watcher->data);
}

static void on_timers(struct ev_loop *loop, ev_io *watcher, int events)
{
	(void)events;
	connection_timers_due(watcher->data);
	if (connection_done(watcher->data))
		ev_break(loop, EVBREAK_ALL);
}

static void watch(struct ev_loop *loop, ev_io *watcher, int fd, int priority,
		  void (*callback)(struct ev_loop *, ev_io *, int), struct connection *connection)
{
	ev_init(watcher, callback);
	ev_io_set(watcher, fd, EV_READ);
	ev_set_priority(watcher, priority);
	watcher->data = connection;
	ev_io_start(loop, watcher);
}

int main(void)
{
	struct connection connection;
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_io socket, timers;
	if (!loop || !connection_open(&connection))
		return 1;
	watch(loop, &socket, connection.fd, 0, on_socket, &connection);
	watch(loop, &timers, tw_service_fd(connection.timers), EV_MINPRI, on_timers, &connection);
	ev_run(loop, 0);
	ev_io_stop(loop, &timers); /* before the service is destroyed: it owns the descriptor */
	ev_io_stop(loop, &socket);
	ev_loop_destroy(loop);
	return connection_end(&connection);
}
