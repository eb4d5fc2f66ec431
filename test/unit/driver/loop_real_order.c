/*
 * Sockets first: a timer that closes a peer, and the peer's socket, are ready in one epoll batch,
 * the timer first. test/examples/recipes/sockets_first.c does the same with memory that is freed,
 * under AddressSanitizer; here a flag stands for that.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/rig.h"

TestSuite(driver_loop_real_order, .timeout = 30);

enum order { SOCKETS_FIRST, AS_THEY_COME };

struct peer {
	int fd, clients_fd, epoll_fd;
	tw_service *service;
	bool closed;
	int read, used_after_close;
};

static void on_idle(void *arg)
{
	struct peer *peer = arg;
	peer->closed = true; /* where a server frees it */
}

static void on_socket(struct peer *peer)
{
	char byte;
	peer->used_after_close += peer->closed;
	peer->read += (int)recv(peer->fd, &byte, 1, MSG_DONTWAIT);
}

static void watch(const struct peer *peer, int fd, const void *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)tag};
	expect_eq(epoll_ctl(peer->epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
}

static void open_peer(struct peer *peer)
{
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	int fds[2];
	*peer = (struct peer){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	expect_eq(tw_service_create(&peer->service, &cfg), 0);
	expect_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	peer->fd = fds[0];
	peer->clients_fd = fds[1];
	watch(peer, tw_service_fd(peer->service), peer->service);
	watch(peer, peer->fd, peer);
}

/* epoll names what has become ready in that order, so the timers come first. */
static void make_both_ready(struct peer *peer)
{
	expect_eq(tw_schedule(peer->service, 0, on_idle, peer, NULL), 0);
	struct pollfd timers = {.fd = tw_service_fd(peer->service), .events = POLLIN};
	expect_eq(poll(&timers, 1, -1), 1);
	uint64_t due_ns = tw_service_now(peer->service) + 3 * MS;
	while (tw_service_now(peer->service) < due_ns)
		usleep(1000);
	expect_eq(send(peer->clients_fd, "!", 1, 0), 1);
}

static void turn(struct peer *peer, enum order order)
{
	struct epoll_event events[8];
	bool due = false;
	int n = epoll_wait(peer->epoll_fd, events, 8, -1);
	expect_eq(n, 2);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr != peer->service)
			on_socket(peer);
		else if (order == AS_THEY_COME)
			tw_service_advance(peer->service, TW_NO_LIMIT);
		else
			due = true;
	}
	if (due)
		tw_service_advance(peer->service, TW_NO_LIMIT);
}

static struct peer after_a_turn(enum order order)
{
	struct peer peer;
	open_peer(&peer);
	make_both_ready(&peer);
	turn(&peer, order);
	expect_eq(peer.read, 1);
	cr_assert(peer.closed);
	expect_eq(tw_service_destroy(peer.service), 0);
	close(peer.epoll_fd);
	close(peer.fd);
	close(peer.clients_fd);
	return peer;
}

Test(driver_loop_real_order, sockets_first_uses_no_peer_that_a_timer_has_closed)
{
	expect_eq(after_a_turn(SOCKETS_FIRST).used_after_close, 0);
}

Test(driver_loop_real_order, advance_in_the_middle_of_a_batch_closes_a_peer_that_comes_later)
{
	expect_eq(after_a_turn(AS_THEY_COME).used_after_close, 1);
}
