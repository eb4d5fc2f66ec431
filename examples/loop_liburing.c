/*
 * Timers of a server on io_uring. Its thread serves them through one poll request. Any thread
 * schedules and cancels.
 *
 * A poll request ends with its answer. A new one is answered immediately if the descriptor is still
 * readable. So each is made again when its descriptor has been served.
 *
 * Sockets first: a turn takes all answers that are there, and calls tw_service_advance after the
 * last one.
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

/* A turn: the sockets that have answers, then the timers if they have one. False: an error. */
static bool turn(struct io_uring *ring, struct connection *connection)
{
	int timers_fd = tw_service_fd(connection->timers);
	struct io_uring_cqe *done;
	bool due = false, well = true;
	while (well && io_uring_peek_cqe(ring, &done) == 0) {
		bool is_timers = io_uring_cqe_get_data64(done) == (unsigned)timers_fd;
		io_uring_cqe_seen(ring, done);
		due |= is_timers;
		if (!is_timers) {
			connection_readable(connection);
			well = poll_again(ring, connection->fd);
		}
	}
	if (well && due) {
		connection_timers_due(connection);
		well = poll_again(ring, timers_fd);
	}
	return well;
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
	bool well =
	    poll_again(&ring, connection.fd) && poll_again(&ring, tw_service_fd(connection.timers));
	while (well && !connection_done(&connection)) {
		struct io_uring_cqe *first;
		io_uring_submit(&ring);
		if (io_uring_wait_cqe(&ring, &first) == 0) /* else a signal */
			well = turn(&ring, &connection);
	}
	io_uring_queue_exit(&ring);
	return connection_end(&connection) || !well ? 1 : 0;
}
