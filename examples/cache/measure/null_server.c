/*
 * null_server PORT THREADS: a server that does nothing but answer. It counts requests by their "*",
 * replies +OK to each, and keeps nothing. What redis-benchmark reaches with it, no server exceeds
 * on this machine: the client and the kernel take the rest.
 *
 * Its loops are those of tickcache: an epoll each, listening sockets that share a port, polls
 * before a sleep, replies of several clients sent in one go. SIGTERM ends it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 512
#define INPUT (64 * 1024)
#define ANSWER_INPUT 4096
#define BACKLOG 511
#define MOST_POLLS 32

struct answer {
	int fd;
	size_t requests;
};

static int port;

static void die(const char *what)
{
	fprintf(stderr, "null_server: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int listen_on_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 || listen(fd, BACKLOG) < 0)
		die("listen");
	return fd;
}

static void watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll_ctl");
}

static void accept_all(int epoll_fd, int listen_fd)
{
	int fd, one = 1;
	while ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		watch(epoll_fd, fd);
	}
}

/* How many requests begin in these bytes: redis-benchmark's arguments hold no "*". */
static size_t count_requests(const char *at, size_t length)
{
	const char *end = at + length;
	size_t count = 0;
	while ((at = memchr(at, '*', (size_t)(end - at))) != NULL) {
		at++;
		count++;
	}
	return count;
}

static void answer_all(struct answer *answers, size_t *count)
{
	static const char ok[] = "+OK\r\n";
	char text[INPUT];
	for (size_t i = 0; i < *count; i++) {
		size_t length = 0;
		for (size_t k = 0; k < answers[i].requests && length + 5 <= sizeof(text); k++) {
			memcpy(text + length, ok, 5);
			length += 5;
		}
		if (send(answers[i].fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
			close(answers[i].fd);
	}
	*count = 0;
}

/* As tickcache does: polls before it sleeps, while that pays. */
static int wait_for_events(int epoll_fd, struct epoll_event *events, unsigned *polls)
{
	int n = 0;
	for (unsigned i = 0; n == 0 && i < *polls; i++) {
		if (i > 0)
			sched_yield();
		n = epoll_wait(epoll_fd, events, EVENTS, 0);
	}
	if (n > 0) {
		*polls = *polls < MOST_POLLS ? 2 * *polls : MOST_POLLS;
		return n;
	}
	*polls = *polls > 1 ? *polls / 2 : 1;
	return epoll_wait(epoll_fd, events, EVENTS, -1);
}

static void *serve(void *arg)
{
	struct epoll_event events[EVENTS];
	struct answer answers[EVENTS];
	char input[INPUT];
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), listen_fd = listen_on_port();
	size_t count = 0, bytes = 0;
	unsigned polls = 1;
	watch(epoll_fd, listen_fd);
	for (;;) {
		int n = wait_for_events(epoll_fd, events, &polls);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == listen_fd) {
				accept_all(epoll_fd, listen_fd);
				continue;
			}
			ssize_t got = recv(fd, input, sizeof(input), 0);
			if (got <= 0) {
				close(fd);
				continue;
			}
			answers[count++] = (struct answer){fd, count_requests(input, (size_t)got)};
			bytes += (size_t)got;
			if (bytes >= ANSWER_INPUT) {
				answer_all(answers, &count);
				bytes = 0;
			}
		}
		answer_all(answers, &count);
		bytes = 0;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc != 3) {
		fputs("usage: null_server PORT THREADS\n", stderr);
		return 2;
	}
	port = atoi(argv[1]);
	for (int i = 1; i < atoi(argv[2]); i++)
		if ((errno = pthread_create(&thread, NULL, serve, NULL)) != 0)
			die("thread");
	serve(NULL);
	return 0;
}
