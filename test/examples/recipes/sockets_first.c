/*
 * A timer that frees a peer, and that peer's socket, come ready in one epoll batch, the timer
 * first. WRONG: tw_service_advance where the batch names it, before the socket. /
 */
#include "sockets_first.h"
#include "support.h"

#include <poll.h>
#include <sys/socket.h>

struct peer {
	int fd, served;
};

static int served, closed;

static void on_socket(void *arg)
{
	struct peer *peer = arg;
	char byte;
	peer->served += (int)recv(peer->fd, &byte, 1, MSG_DONTWAIT);
	served++;
}

static void on_idle(void *arg)
{
	struct peer *peer = arg;
	close(peer->fd);
	free(peer);
	closed++;
}

static int wrong_turn(struct loop *l)
{
	struct epoll_event events[64];
	int n = epoll_wait(l->epoll_fd, events, 64, -1);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == l->timers)
			tw_service_advance(l->timers, TW_NO_LIMIT);
		else
			l->on_socket(events[i].data.ptr);
	}
	return n;
}

int main(int argc, char **argv)
{
	read_way(argc, argv);
	struct loop loop;
	int fds[2];
	struct peer *peer = zeroed(sizeof *peer);
	CHECK(loop_open(&loop, on_socket));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	peer->fd = fds[0];
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
	CHECK(epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, peer->fd, &event) == 0);

	/* epoll names what has become ready in that order: first the timers, then the socket. */
	CHECK(tw_schedule(loop.timers, 0, on_idle, peer, NULL) == 0);
	struct pollfd timers = {.fd = tw_service_fd(loop.timers), .events = POLLIN};
	CHECK(poll(&timers, 1, -1) == 1);
	usleep(5000); /* it is due by then */
	CHECK(send(fds[1], "!", 1, 0) == 1);

	while (!closed)
		CHECK((wrong ? wrong_turn : loop_turn)(&loop) >= 0);
	CHECK(served == 1);
	CHECK(tw_service_destroy(loop.timers) == 0);
	close(loop.epoll_fd);
	close(fds[1]);
	return 0;
}
