/*
 * The commonest server: your own loop for sockets, and timers whose callbacks run in that loop. The
 * service has its tick thread. The tick thread hands due runs to a queue, whose descriptor wakes
 * the loop. Compare epoll_loop.c, where the loop advances the service itself.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tickwheel.h"

struct connection {
	tw_service *timers;
	tw_timer idle;
	int socket;
	int lines;
	int timed_out;
};

/* Runs in the loop, so it needs no lock against on_readable. */
static void on_idle(void *arg)
{
	struct connection *connection = arg;
	printf("idle for 40 ms: closing\n");
	connection->timed_out = 1;
}

static void on_readable(struct connection *connection)
{
	char line[16];
	if (read(connection->socket, line, sizeof line) > 0)
		printf("line %d\n", ++connection->lines);
	tw_reset(connection->timers, connection->idle, 40 * TW_MILLISECOND);
}

static void on_line_due(void *arg)
{
	if (write(*(int *)arg, "hello\n", 6) != 6)
		perror("write");
}

/* The five lines: watch tw_manual_fd, handle the sockets first, pump last. */
static int run(tw_manual *queue, struct connection *connection)
{
	struct epoll_event events[8], socket = {.events = EPOLLIN, .data.ptr = connection};
	struct epoll_event timers = {.events = EPOLLIN, .data.ptr = queue};
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->socket, &socket) != 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, tw_manual_fd(queue), &timers) != 0)
		return -1;
	while (!connection->timed_out) {
		int n = epoll_wait(epoll_fd, events, 8, -1);
		for (int i = 0; i < n; i++)
			if (events[i].data.ptr != queue)
				on_readable(events[i].data.ptr);
		tw_manual_pump(queue, TW_NO_LIMIT);
	}
	close(epoll_fd);
	return 0;
}

int main(void)
{
	tw_manual *queue;
	struct connection connection = {0};
	int pair[2];
	if (tw_manual_create(&queue, NULL) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return 1;
	struct tw_service_config config = {.size = sizeof config,
					   .executor = tw_manual_executor(queue)};
	struct tw_period lines = {
	    .size = sizeof lines, .period_ns = 10 * TW_MILLISECOND, .count = 3};
	if (tw_service_create(&connection.timers, &config) != 0)
		return 1;
	connection.socket = pair[0];
	tw_schedule_every(connection.timers, &lines, on_line_due, &pair[1], NULL);
	tw_schedule(connection.timers, TW_SECOND, on_idle, &connection, &connection.idle);
	int failed = run(queue, &connection);
	tw_service_destroy(connection.timers);
	tw_manual_destroy(queue);
	close(pair[0]);
	close(pair[1]);
	return failed || connection.lines == 0 ? 1 : 0;
}
