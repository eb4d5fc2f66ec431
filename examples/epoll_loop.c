/*
 * Timers in your own epoll loop: no tick thread, no pool. Callbacks run in the loop. Another thread
 * schedules, too.
 *
 * A turn handles its sockets first, and calls tw_service_advance once, last. The callback frees a
 * peer whose socket may be ready in the same turn. In the other order the socket's event would name
 * freed memory.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tickwheel.h"

enum { EVENTS = 16, PEERS = 3 };

struct loop {
	tw_service *timers;
	int epoll_fd;
	int open, bytes, greetings; /* touched by the loop's thread only: no lock */
};

struct peer {
	struct loop *loop;
	int fd;
};

/* The idle timeout. Nothing refers to the peer after this turn. */
static void on_idle(void *arg)
{
	struct peer *peer = arg;
	printf("a peer was idle: closed\n");
	peer->loop->open--;
	close(peer->fd); /* epoll forgets it */
	free(peer);
}

static void on_readable(struct peer *peer)
{
	char buffer[64];
	ssize_t n = recv(peer->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	peer->loop->bytes += n > 0 ? (int)n : 0;
}

static void on_greeting(void *arg)
{
	struct loop *loop = arg;
	printf("a greeting from the other thread\n");
	loop->greetings++;
}

/* This timer is earlier than what the loop sleeps for, so it wakes the loop. */
static void *other_thread(void *arg)
{
	struct loop *loop = arg;
	tw_schedule(loop->timers, 10 * TW_MILLISECOND, on_greeting, loop, NULL);
	return NULL;
}

static bool watch(struct loop *loop, int fd, void *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
	return fd >= 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* A peer that has sent a byte and falls silent. The process's exit closes the client's end. */
static bool add_peer(struct loop *loop, uint64_t idle_ns)
{
	struct peer *peer = malloc(sizeof(*peer));
	int fds[2];
	if (!peer || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	*peer = (struct peer){loop, fds[0]};
	loop->open++;
	return watch(loop, peer->fd, peer) && send(fds[1], "!", 1, MSG_NOSIGNAL) == 1 &&
	       tw_schedule(loop->timers, idle_ns, on_idle, peer, NULL) == 0;
}

static int turn(struct loop *loop)
{
	struct epoll_event events[EVENTS];
	int n =
	    /* no timeout: tw_service_fd is readable when a timer is due */
	    epoll_wait(loop->epoll_fd, events, EVENTS, -1);
	bool due = false;
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == loop->timers)
			due = true;
		else
			on_readable(events[i].data.ptr);
	}
	return due ? tw_service_advance(loop->timers, TW_NO_LIMIT) : 0; /* last: frees peers */
}

int main(void)
{
	struct loop loop = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	struct tw_service_config config = {
	    .size = sizeof(config), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	pthread_t other;
	if (loop.epoll_fd < 0 || tw_service_create(&loop.timers, &config) != 0 ||
	    !watch(&loop, tw_service_fd(loop.timers), loop.timers))
		return 1;
	for (int i = 0; i < PEERS; i++)
		if (!add_peer(&loop, (uint64_t)(i + 1) * 20 * TW_MILLISECOND))
			return 1;
	if (pthread_create(&other, NULL, other_thread, &loop) != 0)
		return 1;
	int r = 0;
	while (r >= 0 && (loop.open > 0 || loop.greetings < 1))
		r = turn(&loop);
	pthread_join(other, NULL);
	tw_service_destroy(loop.timers);
	close(loop.epoll_fd);
	return r >= 0 && loop.bytes == PEERS ? 0 : 1;
}
