/*
 * Timers of a server on libuv. The loop's thread serves them through one uv_poll_t. Any thread
 * schedules and cancels.
 *
 * Sockets first: the poll callback only remembers that timers are due. A uv_check_t runs them,
 * after all poll callbacks of the turn.
 */
#include <uv.h>

#include "loop_connection.h"

struct server {
	struct connection connection;
	uv_poll_t socket, timers;
	uv_check_t after_sockets;
	bool due;
};

static void go_on(struct server *server)
{
	if (!connection_done(&server->connection))
		return;
	uv_close((uv_handle_t *)&server->socket, NULL); /* uv_run returns when no handle is left */
	uv_close((uv_handle_t *)&server->timers, NULL);
	uv_close((uv_handle_t *)&server->after_sockets, NULL);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;
	(void)status;
	(void)events;
	connection_readable(&server->connection);
}

static void on_timers(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;
	(void)status;
	(void)events;
	server->due = true;
}

static void after_sockets(uv_check_t *check)
{
	struct server *server = check->data;
	if (!server->due)
		return;
	server->due = false;
	connection_timers_due(&server->connection);
	go_on(server);
}

static int watch(uv_loop_t *loop, uv_poll_t *poll, int fd, uv_poll_cb callback,
		 struct server *server)
{
	poll->data = server;
	int r = uv_poll_init(loop, poll, fd);
	return r ? r : uv_poll_start(poll, UV_READABLE, callback);
}

int main(void)
{
	static struct server server;
	uv_loop_t loop;
	if (!connection_open(&server.connection) || uv_loop_init(&loop) != 0)
		return 1;
	if (watch(&loop, &server.socket, server.connection.fd, on_socket, &server) != 0 ||
	    watch(&loop, &server.timers, tw_service_fd(server.connection.timers), on_timers,
		  &server) != 0)
		return 1;
	server.after_sockets.data = &server;
	if (uv_check_init(&loop, &server.after_sockets) != 0 ||
	    uv_check_start(&server.after_sockets, after_sockets) != 0)
		return 1;
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return connection_end(&server.connection);
}
