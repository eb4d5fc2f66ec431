/*
 * --metrics: a thread of its own answers scrapers, one after the other, so that none of them
 * holds up a loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "examples/cache/cache.h"
#include "examples/cache/info.h"

static pthread_t thread;
static int listen_fd = -1;

static void figure(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	fprintf(out, "# HELP tickcache_%s %s\n# TYPE tickcache_%s %s\ntickcache_%s %" PRIu64 "\n",
		name, help, name, type, name, value);
}

static void own_figures(FILE *out)
{
	struct totals t;
	totals_get(&t);
	figure(out, "connections_total", "counter", "Clients accepted.", t.connections);
	figure(out, "rejected_connections_total", "counter", "Clients refused at the limit.",
	       t.rejected);
	figure(out, "clients", "gauge", "Clients connected.", t.clients);
	figure(out, "commands_total", "counter", "Commands run.", t.commands);
	figure(out, "errors_total", "counter", "Commands answered by an error.", t.errors);
	figure(out, "keyspace_hits_total", "counter", "Reads that found their key.", t.hits);
	figure(out, "keyspace_misses_total", "counter", "Reads that did not.", t.misses);
	figure(out, "keys", "gauge", "Keys in the table.", t.keys);
	figure(out, "volatile_keys", "gauge", "Keys with a deadline.", t.volatile_keys);
	figure(out, "expired_keys_total", "counter", "Keys removed at their deadline.", t.expired);
	figure(out, "evicted_keys_total", "counter", "Keys removed for want of memory.", t.evicted);
	figure(out, "slow_subscribers_total", "counter", "Subscribers disconnected.",
	       t.slow_subscribers);
	figure(out, "key_bytes", "gauge", "Memory of keys and of the table.", t.key_bytes);
	figure(out, "resident_bytes", "gauge", "Resident memory of the process.",
	       info_resident_bytes());
}

/* The cache's own figures, and then those of its timers. */
static void answer(int fd)
{
	char *page = NULL, head[160];
	size_t length = 0;
	FILE *out = open_memstream(&page, &length);
	if (out == NULL)
		return;
	own_figures(out);
	bool complete = tw_service_stats_prometheus(cache.service, out) == 0;
	if (fclose(out) == 0 && complete) {
		int n = snprintf(head, sizeof(head),
				 "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
				 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
				 length);
		if (send(fd, head, (size_t)n, MSG_NOSIGNAL | MSG_MORE) == n)
			send(fd, page, length, MSG_NOSIGNAL);
	}
	free(page);
}

/* Waits for input until the service's time is end_ns. False: none has come. */
static bool has_input(int fd, uint64_t end_ns)
{
	uint64_t now = tw_service_now(cache.service);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return now < end_ns && poll(&p, 1, (int)((end_ns - now) / TW_MILLISECOND) + 1) == 1;
}

/* Reads a request's head. All of it must come within a second, however it is cut. */
static bool read_head(int fd)
{
	char head[4096];
	size_t length = 0;
	uint64_t end_ns = tw_service_now(cache.service) + TW_SECOND;
	struct timeval patience = {.tv_sec = 1};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (length < sizeof(head) && memmem(head, length, "\r\n\r\n", 4) == NULL) {
		if (!has_input(fd, end_ns))
			return false;
		ssize_t n = recv(fd, head + length, sizeof(head) - length, MSG_DONTWAIT);
		if (n <= 0)
			return false;
		length += (size_t)n;
	}
	return memmem(head, length, "GET /metrics ", 13) == head;
}

static void *serve(void *arg)
{
	static const char missing[] =
	    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	(void)arg;
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINVAL || errno == EBADF))
			return NULL; /* metrics_stop */
		if (fd < 0) {
			usleep(10000);
			continue;
		}
		if (read_head(fd))
			answer(fd);
		else
			send(fd, missing, sizeof(missing) - 1, MSG_NOSIGNAL);
		close(fd);
	}
}

int metrics_start(int fd)
{
	listen_fd = fd;
	fcntl(listen_fd, F_SETFL, 0); /* blocking: the thread has nothing else to do */
	return -pthread_create(&thread, NULL, serve, NULL);
}

void metrics_stop(void)
{
	if (listen_fd < 0)
		return;
	shutdown(listen_fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listen_fd);
}
