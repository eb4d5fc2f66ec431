/*
 * A server whose timeouts are tickwheel timers, under load from wrk and from thousands of clients
 * that are silent, slow or half-dead. It shows a live table and ends with a verdict, which is also
 * the exit status.
 *
 *   demo path/to/server
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "examples/demo/clients.h"
#include "examples/demo/control.h"
#include "examples/demo/instant.h"
#include "examples/demo/page.h"
#include "examples/demo/process.h"
#include "examples/demo/table.h"
#include "examples/demo/verdict.h"

#define TICK_NS NS_PER_MS /* the service's default */
#define LOAD_CONNECTIONS 256
#define LAST_MOMENT_NS (22 * NS_PER_S)

static const struct time_limits limits = {.head_ns = 2 * NS_PER_S,
					  .request_ns = 1 * NS_PER_S,
					  .idle_ns = 3 * NS_PER_S,
					  .ban_ns = 2 * NS_PER_S};

struct demo {
	struct process server, load;
	struct clients clients;
	struct control control;
	struct table table;
	struct page page;
	uint16_t port;
	int stats_fd;
};

static _Noreturn void give_up(const char *why, const struct process *p)
{
	fprintf(stderr, "demo: %s\n%s", why, p != NULL ? p->output : "");
	exit(2);
}

static size_t raise_descriptors(void)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
	setrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur;
}

static void start_server(struct demo *d, char *path)
{
	static const char says[] = "listening on 127.0.0.1:";
	char *argv[] = {path,   "--port",    "0",    "--head-ms", "2000", "--request-ms",
			"1000", "--idle-ms", "3000", "--ban-ms",  "2000", NULL};
	if (!process_start(&d->server, argv) || !process_wait_for(&d->server, "\n", 5000) ||
	    strstr(d->server.output, says) == NULL)
		give_up("the server does not start", &d->server);
	d->port = (uint16_t)atoi(strstr(d->server.output, says) + sizeof(says) - 1);
	d->stats_fd = page_connect(d->port, 0);
}

static void start_load(struct demo *d)
{
	char url[64], connections[16];
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", d->port);
	snprintf(connections, sizeof(connections), "-c%d", LOAD_CONNECTIONS);
	char *argv[] = {"wrk", "-t1", connections, "-d12s", url, NULL};
	if (!process_start(&d->load, argv))
		give_up("cannot start wrk", NULL);
}

static void announce(const struct demo *d)
{
	printf("server on 127.0.0.1:%u; timeouts: head %.0f s, request %.0f s, idle %.0f s, ban "
	       "%.0f s\n"
	       "wrk with %d connections, and %zu clients of other kinds\n\n",
	       d->port, in_ms(limits.head_ns) / 1e3, in_ms(limits.request_ns) / 1e3,
	       in_ms(limits.idle_ns) / 1e3, in_ms(limits.ban_ns) / 1e3, LOAD_CONNECTIONS,
	       d->clients.count);
}

static void read_page(struct demo *d)
{
	if (!page_read(d->stats_fd, &d->page))
		give_up("the server does not tell its figures", &d->server);
}

static bool is_over(struct demo *d)
{
	bool load_ended = process_has_ended(&d->load);
	return load_ended && atomic_load(&d->clients.unfinished) == 0;
}

/*
 * A row a second, until all bad clients are cut off and wrk has ended, or until no more waiting
 * makes sense.
 */
static void watch(struct demo *d)
{
	uint64_t row_ns = d->clients.started_ns;
	d->table.before = d->page;
	while (!is_over(d) && row_ns < d->clients.started_ns + LAST_MOMENT_NS) {
		row_ns += NS_PER_S;
		sleep_until_ns(row_ns);
		read_page(d);
		table_show(&d->table, &d->page, &d->clients);
	}
}

/* wrk's last connections end when it does; the server notices that a little later. */
static void settle(struct demo *d)
{
	unsigned active = 0;
	for (unsigned k = 0; k < CLIENT_KINDS; k++)
		active += client_is_active(k) ? d->clients.kinds[k].count : 0;
	for (int tries = 0; tries < 50; tries++) {
		read_page(d);
		if (page_value(&d->page, "open") <= active + 1)
			return;
		sleep_until_ns(instant_ns() + 20 * NS_PER_MS);
	}
}

static bool judge(struct demo *d)
{
	struct evidence e = {.tick_ns = TICK_NS,
			     .clients = &d->clients,
			     .oversleep = &d->control.oversleep,
			     .page = &d->page,
			     .load = &d->load,
			     .server = &d->server};
	e.load_status = process_stop(&d->load, 1000);
	settle(d);
	clients_stop(&d->clients);
	control_stop(&d->control);
	e.server_status = process_stop(&d->server, 5000);
	return verdict(&e);
}

int main(int argc, char **argv)
{
	static struct demo d;
	if (argc != 2)
		give_up("usage: demo path/to/server", NULL);
	signal(SIGPIPE, SIG_IGN);
	d.table.in_place = isatty(STDOUT_FILENO);
	size_t descriptors = raise_descriptors();
	start_server(&d, argv[1]);
	if (d.stats_fd < 0 || !clients_init(&d.clients, d.port, &limits, descriptors / 2))
		give_up("no connection or no memory", NULL);
	announce(&d);
	read_page(&d);
	if (!control_start(&d.control, TICK_NS))
		give_up("no thread for the control", NULL);
	start_load(&d);
	if (!clients_start(&d.clients))
		give_up("no thread for the clients", NULL);
	watch(&d);
	bool holds = judge(&d);
	printf("\n%s\n", holds ? "All of it holds." : "IT DOES NOT HOLD.");
	clients_free(&d.clients);
	sample_free(&d.control.oversleep);
	return holds ? 0 : 1;
}
