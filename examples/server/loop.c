/*
 * A turn: wait, read the clock once, serve the sockets, then the timeouts, then accept.
 *
 * - Sockets come before the timeouts, so a request that comes together with its timeout is served.
 * - Accepting comes last. So an event of this turn cannot mistake a new connection for one whose
 *   slot was freed in the same turn.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/server/loop.h"

#define EVENTS_PER_TURN 256
#define ACCEPTS_PER_TURN 64
#define BACKLOG 4096

/* Limits what a client that never reads holds in the kernel's memory. */
#define SEND_BUFFER 65536

int loop_listen(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, size = SEND_BUFFER,
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int error = errno;
	close(fd);
	return -error;
}

static struct connection *take_slot(struct loop *l)
{
	struct connection *c = l->free;
	if (c != NULL) {
		l->free = c->next_free;
	} else if (l->used < l->room) {
		c = &l->connections[l->used];
		if (!connection_init(c, l))
			return NULL;
		l->used++;
	}
	return c;
}

static void admit(struct loop *l, int fd)
{
	struct connection *c = take_slot(l);
	if (c == NULL) {
		count_up(&l->figures.full);
		close(fd);
		return;
	}
	count_up(&l->figures.accepted);
	/*
	 * Reads the clock again: the client may have come after the turn began, and would be cut
	 * off too early.
	 */
	connection_open(c, fd, tw_service_now(l->server->service));
}

static void accept_some(struct loop *l)
{
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		admit(l, fd);
	}
}

static void turn(struct loop *l)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int n = epoll_wait(l->epoll_fd, events, EVENTS_PER_TURN, -1);
	bool has_callers = false;
	l->now_ns = tw_service_now(l->server->service);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == &l->listen_fd)
			has_callers = true;
		else if (events[i].data.ptr != l->queue)
			connection_on_event(events[i].data.ptr, events[i].events);
	}
	tw_manual_pump(l->queue, TW_NO_LIMIT);
	if (has_callers)
		accept_some(l);
}

static void *run(void *arg)
{
	struct loop *l = arg;
	while (!atomic_load_explicit(&l->stop, memory_order_acquire))
		turn(l);
	for (size_t i = 0; i < l->used; i++)
		if (l->connections[i].fd >= 0)
			connection_close(&l->connections[i]);
	return NULL;
}

static bool add_to_epoll(struct loop *l, int fd, void *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool loop_init(struct loop *l, const struct server *server, int listen_fd, size_t room)
{
	l->server = server;
	l->listen_fd = listen_fd;
	l->room = room;
	l->connections = calloc(room, sizeof(*l->connections));
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return l->connections != NULL && l->epoll_fd >= 0 &&
	       tw_manual_create(&l->queue, NULL) == 0 &&
	       add_to_epoll(l, tw_manual_fd(l->queue), l->queue) &&
	       add_to_epoll(l, listen_fd, &l->listen_fd);
}

bool loop_start(struct loop *l, unsigned number)
{
	char name[16];
	snprintf(name, sizeof(name), "loop-%u", number);
	if (pthread_create(&l->thread, NULL, run, l) != 0)
		return false;
	pthread_setname_np(l->thread, name);
	return true;
}

void loop_stop(struct loop *l)
{
	atomic_store_explicit(&l->stop, true, memory_order_release);
	shutdown(l->listen_fd, SHUT_RDWR); /* an event of the socket: the loop wakes */
	pthread_join(l->thread, NULL);
}

void loop_free(struct loop *l)
{
	tw_manual_destroy(l->queue);
	close(l->listen_fd);
	close(l->epoll_fd);
	bytes_free(&l->output);
	free(l->connections);
}
