/*
 * Timers of a program on GLib. Its main loop serves them through one source for a descriptor. Any
 * thread schedules and cancels.
 *
 * Sockets first: the source of tw_service_fd only adds an idle source of the usual priority. GLib
 * dispatches sources of one priority in the order in which they were added, so that source comes
 * after all sockets of the next turn. Sources of a low priority would starve.
 */
#include <glib-unix.h>

#include "loop_connection.h"

struct server {
	struct connection connection;
	GMainLoop *loop;
	guint after_sockets; /* the idle source; 0: none */
};

static gboolean on_socket(gint fd, GIOCondition condition, gpointer arg)
{
	struct server *server = arg;
	(void)fd;
	(void)condition;
	connection_readable(&server->connection);
	return G_SOURCE_CONTINUE;
}

static gboolean after_sockets(gpointer arg)
{
	struct server *server = arg;
	server->after_sockets = 0;
	connection_timers_due(&server->connection);
	if (connection_done(&server->connection))
		g_main_loop_quit(server->loop);
	return G_SOURCE_REMOVE;
}

static gboolean on_timers(gint fd, GIOCondition condition, gpointer arg)
{
	struct server *server = arg;
	(void)fd;
	(void)condition;
	if (!server->after_sockets)
		server->after_sockets =
		    g_idle_add_full(G_PRIORITY_DEFAULT, after_sockets, server, NULL);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	struct server server = {.loop = g_main_loop_new(NULL, FALSE)};
	if (!connection_open(&server.connection))
		return 1;
	guint socket = g_unix_fd_add(server.connection.fd, G_IO_IN, on_socket, &server);
	guint timers =
	    g_unix_fd_add(tw_service_fd(server.connection.timers), G_IO_IN, on_timers, &server);
	g_main_loop_run(server.loop);
	g_source_remove(timers); /* before the service is destroyed: it owns the descriptor */
	g_source_remove(socket);
	if (server.after_sockets)
		g_source_remove(server.after_sockets);
	g_main_loop_unref(server.loop);
	return connection_end(&server.connection);
}
