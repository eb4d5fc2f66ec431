/* Timers of a server on libev: the loop's thread serves them, through one ev_io; any thread schedules and cancels. */
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

static void watch(struct ev_loop *loop, ev_io *watcher, int fd, void (*callback)(struct ev_loop *, ev_io *, int),
		  struct connection *connection)
{
	ev_init(watcher, callback);
	ev_io_set(watcher, fd, EV_READ);
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
	watch(loop, &socket, connection.fd, on_socket, &connection);
	watch(loop, &timers, tw_fd(connection.timers), on_timers, &connection);
	ev_run(loop, 0);
	ev_io_stop(loop, &timers); /* before the service goes, whose descriptor it is */
	ev_io_stop(loop, &socket);
	ev_loop_destroy(loop);
	return connection_end(&connection);
}
