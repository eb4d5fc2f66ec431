/*
 * A client of the tests and measurements: one connection, pipelined requests, replies read one by
 * one.
 */
#ifndef TEST_EXAMPLES_CACHE_WIRE_H
#define TEST_EXAMPLES_CACHE_WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WIRE_ROOM (256 * 1024)

struct wire {
	int fd;
	char out[WIRE_ROOM], in[WIRE_ROOM];
	size_t out_length, start, end;
};

/*
 * One reply. A bulk's text is valid until the next call. An array has its count here; its elements
 * follow.
 */
struct wire_reply {
	char type;
	int64_t number; /* integer, count, or length; -1: null */
	char *text;     /* status, error or bulk */
};

static inline uint64_t wire_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void wire_die(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* -1: refused. */
static inline int wire_connect(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct timeval patience = {.tv_sec = 30};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static inline struct wire *wire_open(int port)
{
	struct wire *w = calloc(1, sizeof(*w));
	if (w == NULL || (w->fd = wire_connect(port)) < 0)
		wire_die("connect");
	return w;
}

static inline void wire_close(struct wire *w)
{
	close(w->fd);
	free(w);
}

static inline void wire_flush(struct wire *w)
{
	for (size_t sent = 0; sent < w->out_length;) {
		ssize_t n = send(w->fd, w->out + sent, w->out_length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			wire_die("send");
		sent += (size_t)n;
	}
	w->out_length = 0;
}

/* Adds a request to what wire_flush sends. Words are separated by one space each. */
static inline void wire_add_line(struct wire *w, const char *format, va_list list)
{
	char line[1024];
	vsnprintf(line, sizeof(line), format, list);
	size_t count = 1;
	for (char *at = line; *at != 0; at++)
		count += *at == ' ';
	if (w->out_length + 2 * sizeof(line) > WIRE_ROOM)
		wire_flush(w);
	w->out_length += (size_t)sprintf(w->out + w->out_length, "*%zu\r\n", count);
	for (char *at = line, *end; at != NULL; at = end != NULL ? end + 1 : NULL) {
		end = strchr(at, ' ');
		int length = end != NULL ? (int)(end - at) : (int)strlen(at);
		w->out_length +=
		    (size_t)sprintf(w->out + w->out_length, "$%d\r\n%.*s\r\n", length, length, at);
	}
}

static inline void wire_add(struct wire *w, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	wire_add_line(w, format, list);
	va_end(list);
}

/* False: the connection has ended, or nothing came for half a minute. */
static inline bool wire_fill(struct wire *w)
{
	if (w->start > 0) {
		memmove(w->in, w->in + w->start, w->end - w->start);
		w->end -= w->start;
		w->start = 0;
	}
	ssize_t n;
	do
		n = recv(w->fd, w->in + w->end, WIRE_ROOM - w->end, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	w->end += (size_t)n;
	return true;
}

static inline bool wire_try_read(struct wire *w, struct wire_reply *r)
{
	char *line_end;
	while ((line_end = memmem(w->in + w->start, w->end - w->start, "\r\n", 2)) == NULL)
		if (!wire_fill(w))
			return false;
	char *line = w->in + w->start;
	size_t used = (size_t)(line_end - line) + 2;
	*line_end = 0;
	*r = (struct wire_reply){
	    .type = line[0], .number = strtoll(line + 1, NULL, 10), .text = line + 1};
	if (r->type == '$' && r->number >= 0) {
		size_t whole = used + (size_t)r->number + 2;
		while (w->end - w->start < whole)
			if (!wire_fill(w))
				return false;
		r->text = w->in + w->start + used;
		r->text[r->number] = 0;
		used = whole;
	}
	w->start += used;
	return true;
}

static inline struct wire_reply wire_read(struct wire *w)
{
	struct wire_reply r;
	if (!wire_try_read(w, &r))
		wire_die("no reply");
	return r;
}

/* The number behind NAME: in INFO's text. */
static inline uint64_t wire_info(struct wire *w, const char *name)
{
	wire_add(w, "INFO");
	wire_flush(w);
	struct wire_reply r = wire_read(w);
	char *at = strstr(r.text, name);
	return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Sends one request and reads its reply. */
#define wire_ask(w, ...) (wire_add((w), __VA_ARGS__), wire_flush(w), wire_read(w))

#endif
