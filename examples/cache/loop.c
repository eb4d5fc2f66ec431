/*
 * A turn: wait, serve the clients, then the mail of subscribers, then accept. A client is freed
 * only by its own event, or after all events of the turn.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "examples/cache/pubsub.h"
#include "examples/cache/table.h"

#define ACCEPTS_PER_TURN 256
#define BACKLOG 511
#define KEEPALIVE_S 300
#define FINISH_MS 1000
#define LOOP_EVENTS 512 /* at most, in one turn */

/* ------------------------------------------------------------------ sockets */

/* Says which call has failed, in the words of redis-server, and returns the negative errno. */
static int refused(int fd, const char *what, const char *call)
{
	int error = errno;
	fprintf(stderr, "tickcache: %s: %s: %s\n", what, call, strerror(error));
	if (fd >= 0)
		close(fd);
	return -error;
}

static int listen_on(int fd, const struct sockaddr *address, socklen_t length, const char *what)
{
	if (bind(fd, address, length) < 0)
		return refused(fd, what, "bind");
	if (listen(fd, BACKLOG) < 0)
		return refused(fd, what, "listen");
	return fd;
}

static bool share_port(int fd)
{
	int one = 1;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == 0;
}

static int listen_tcp(const struct sockaddr_in *in, bool shares)
{
	char host[INET_ADDRSTRLEN], what[128];
	int one = 1;
	snprintf(what, sizeof(what), "Could not create server TCP listening socket %s:%u",
		 inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)), ntohs(in->sin_port));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refused(fd, what, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (shares && !share_port(fd))
		return refused(fd, what, "setsockopt");
	return listen_on(fd, (const struct sockaddr *)in, sizeof(*in), what);
}

int loop_listen(const char *address, unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
		return listen_tcp(&in, false);
	fprintf(stderr, "tickcache: '%s' is not an IPv4 address\n", address);
	return -EINVAL;
}

/*
 * Linux lets two sockets listen on one port if both have SO_REUSEPORT at that time. `fd` was bound
 * without the option, so no other socket was there. It gets the option now, and the new socket
 * joins it. The first socket of another process lacks the option: Linux refuses it at any time.
 */
int loop_listen_beside(int fd)
{
	struct sockaddr_in in = {0};
	socklen_t length = sizeof(in);
	if (getsockname(fd, (struct sockaddr *)&in, &length) < 0 || !share_port(fd))
		return refused(-1, "Could not share the listening socket", "setsockopt");
	return listen_tcp(&in, true);
}

int loop_listen_unix(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	static const char what[] = "Failed opening Unix socket";
	if (strlen(path) >= sizeof(un.sun_path)) {
		errno = ENAMETOOLONG;
		return refused(-1, what, path);
	}
	strcpy(un.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refused(fd, what, "socket");
	return listen_on(fd, (const struct sockaddr *)&un, sizeof(un), what);
}

/* A peer that has gone without a word is noticed after some minutes. */
static void set_options(int fd)
{
	int one = 1, idle = KEEPALIVE_S, interval = KEEPALIVE_S / 3, count = 3;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* ------------------------------------------------------------------ accepting */

static void refuse(struct loop *l, int fd)
{
	static const char text[] = "-ERR max number of clients reached\r\n";
	ssize_t ignored = write(fd, text, sizeof(text) - 1);
	(void)ignored;
	close(fd);
	figure_add(&l->figures.rejected, 1);
}

static void admit(struct loop *l, int fd, const struct sockaddr_in *peer)
{
	char name[64] = "unix:0", own[64] = "unix:0", text[INET_ADDRSTRLEN];
	if (atomic_fetch_add_explicit(&cache.clients, 1, memory_order_relaxed) >=
	    cache.max_clients) {
		atomic_fetch_sub_explicit(&cache.clients, 1, memory_order_relaxed);
		refuse(l, fd);
		return;
	}
	if (peer->sin_family == AF_INET) {
		set_options(fd);
		snprintf(name, sizeof(name), "%s:%u",
			 inet_ntop(AF_INET, &peer->sin_addr, text, sizeof(text)),
			 ntohs(peer->sin_port));
		snprintf(own, sizeof(own), "%s:%u", cache.bind, cache.port);
	}
	figure_add(&l->figures.connections, 1);
	client_open(l, fd, name, own);
}

static void accept_some(struct loop *l, int listen_fd)
{
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_in peer = {0};
		socklen_t length = sizeof(peer);
		int fd = accept4(listen_fd, (struct sockaddr *)&peer, &length,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		admit(l, fd, &peer);
	}
}

/* ------------------------------------------------------------------ turns */

static void read_mail(struct loop *l)
{
	uint64_t count;
	struct client *c;
	while (read(l->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	while ((c = pubsub_next_ready(l)) != NULL)
		client_mail(c);
}

static void turn(struct loop *l)
{
	struct epoll_event events[LOOP_EVENTS];
	bool has_mail = false, callers = false, unix_callers = false;
	int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS, -1);
	l->now_ns = tw_service_now(cache.service);
	for (int i = 0; i < n; i++) {
		void *who = events[i].data.ptr;
		if (who == &l->event_fd)
			has_mail = true;
		else if (who == &l->listen_fd)
			callers = true;
		else if (who == &l->unix_fd)
			unix_callers = true;
		else
			client_event(who, events[i].events);
	}
	if (has_mail)
		read_mail(l);
	if (callers)
		accept_some(l, l->listen_fd);
	if (unix_callers)
		accept_some(l, l->unix_fd);
}

/*
 * Sends the replies that wait and closes each client that has taken all of them. After FINISH_MS
 * the others are closed, too: a client that never reads does not hold up the end.
 */
static void finish_clients(struct loop *l)
{
	struct epoll_event events[LOOP_EVENTS];
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, l->event_fd, NULL);
	if (l->unix_fd >= 0)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, l->unix_fd, NULL);
	uint64_t end_ns = tw_service_now(cache.service) + FINISH_MS * TW_MILLISECOND, now;
	for (struct client *c = l->clients, *next; c != NULL; c = next) {
		next = c->next;
		client_finish(c);
	}
	while (l->clients != NULL && (now = tw_service_now(cache.service)) < end_ns) {
		int left_ms = (int)((end_ns - now) / TW_MILLISECOND) + 1;
		int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS, left_ms);
		for (int i = 0; i < n; i++)
			client_finish(events[i].data.ptr);
	}
	while (l->clients != NULL)
		client_close(l->clients);
}

static void *run(void *arg)
{
	struct loop *l = arg;
	while (!atomic_load_explicit(&l->stop, memory_order_acquire))
		turn(l);
	close(l->listen_fd);
	finish_clients(l);
	return NULL;
}

/* ------------------------------------------------------------------ life */

static bool watch(struct loop *l, int *fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = fd};
	return *fd < 0 || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, *fd, &event) == 0;
}

void loop_watch(struct client *c, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};
	if (c->watched == events)
		return;
	epoll_ctl(c->loop->epoll_fd, c->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd,
		  &event);
	c->watched = events;
}

bool loop_start(struct loop *l, unsigned number, int listen_fd, int unix_fd)
{
	char name[16];
	l->listen_fd = listen_fd;
	l->unix_fd = unix_fd;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->event_fd < 0 || !watch(l, &l->event_fd, EPOLLIN) ||
	    !watch(l, &l->listen_fd, EPOLLIN) || !watch(l, &l->unix_fd, EPOLLIN | EPOLLEXCLUSIVE) ||
	    pthread_create(&l->thread, NULL, run, l) != 0)
		return false;
	snprintf(name, sizeof(name), "loop-%u", number);
	pthread_setname_np(l->thread, name);
	return true;
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;
	while (write(l->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void loop_stop(struct loop *l)
{
	atomic_store_explicit(&l->stop, true, memory_order_release);
	loop_wake(l);
}

void loop_join(struct loop *l)
{
	pthread_join(l->thread, NULL);
	close(l->epoll_fd);
	close(l->event_fd);
}
