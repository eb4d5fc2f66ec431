/*
 * Timers of a server on io_uring: its thread serves them, through one poll request; any thread schedules and cancels. A poll request is done
 * once it has answered, and a new one answers at once if the descriptor is still readable: so each is made again when what it told of is served.
 */
#include <liburing.h>
#include <poll.h>
#include <string.h>

#include "loop_connection.h"

static bool poll_again(struct io_uring *ring, int fd)
{
	struct io_uring_sqe *request = io_uring_get_sqe(ring);
	if (!request)
		return false;
	io_uring_prep_poll_add(request, fd, POLLIN);
	io_uring_sqe_set_data64(request, (unsigned)fd);
	return true;
}

static int serve(struct io_uring *ring, struct connection *connection)
{
	int timers_fd = tw_fd(connection->timers);
	if (!poll_again(ring, connection->fd) || !poll_again(ring, timers_fd))
		return -1;
	while (!connection_done(connection)) {
		struct io_uring_cqe *done;
		io_uring_submit(ring);
		if (io_uring_wait_cqe(ring, &done) != 0)
			continue; /* a signal */
		int fd = (int)io_uring_cqe_get_data64(done);
		io_uring_cqe_seen(ring, done);
		if (fd == timers_fd)
			connection_timers_due(connection);
		else
			connection_readable(connection);
		if (!poll_again(ring, fd))
			return -1;
	}
	return 0;
}

int main(void)
{
	struct connection connection;
	struct io_uring ring;
	int r = io_uring_queue_init(8, &ring, 0);
	if (r != 0) {
		printf("io_uring cannot be had here: %s\n", strerror(-r));
		return 0;
	}
	if (!connection_open(&connection))
		return 1;
	int failed = serve(&ring, &connection);
	io_uring_queue_exit(&ring);
	return connection_end(&connection) || failed ? 1 : 0;
}
