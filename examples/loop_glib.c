/* Timers of a program on GLib: its main loop serves them, through one source for a descriptor; any thread schedules and cancels. */
#include <glib-unix.h>

#include "loop_connection.h"

struct server {
	struct connection connection;
	GMainLoop *loop;
};

static gboolean on_socket(gint fd, GIOCondition condition, gpointer arg)
{
	struct server *server = arg;
	(void)fd;
	(void)condition;
	connection_readable(&server->connection);
	return G_SOURCE_CONTINUE;
}

static gboolean on_timers(gint fd, GIOCondition condition, gpointer arg)
{
	struct server *server = arg;
	(void)fd;
	(void)condition;
	connection_timers_due(&server->connection);
	if (connection_done(&server->connection))
		g_main_loop_quit(server->loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	struct server server = {.loop = g_main_loop_new(NULL, FALSE)};
	if (!connection_open(&server.connection))
		return 1;
	guint socket = g_unix_fd_add(server.connection.fd, G_IO_IN, on_socket, &server);
	guint timers = g_unix_fd_add(tw_fd(server.connection.timers), G_IO_IN, on_timers, &server);
	g_main_loop_run(server.loop);
	g_source_remove(timers); /* before the service goes, whose descriptor it is */
	g_source_remove(socket);
	g_main_loop_unref(server.loop);
	return connection_end(&server.connection);
}
