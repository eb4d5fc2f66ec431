/*
 * Timers in your own epoll loop: no tick thread, no pool. Callbacks run in the loop. Another thread
 * schedules and cancels.
 *
 * Sockets first: a turn handles all that are ready, and calls tw_service_advance once, last.
 */
#include <sys/epoll.h>

#include "loop_connection.h"

static bool watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* No timeout: tw_service_fd is readable when a timer is due. */
static void turn(int epoll_fd, struct connection *connection)
{
	struct epoll_event events[16];
	int n = epoll_wait(epoll_fd, events, 16, -1);
	bool due = false;
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == connection->fd)
			connection_readable(connection);
		else
			due = true;
	}
	if (due)
		connection_timers_due(connection);
}

int main(void)
{
	struct connection connection;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || !connection_open(&connection) || !watch(epoll_fd, connection.fd) ||
	    !watch(epoll_fd, tw_service_fd(connection.timers)))
		return 1;
	while (!connection_done(&connection))
		turn(epoll_fd, &connection);
	close(epoll_fd);
	return connection_end(&connection);
}
