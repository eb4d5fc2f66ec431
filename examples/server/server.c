/*
 * A small multithreaded HTTP/1.1 server whose timeouts are tickwheel timers: the time for a head,
 * the time for a request, keep-alive's idle time (moved by each request), and the length of a ban.
 *
 *   GET /                the answer comes immediately
 *   GET /slow?ms=N       after N milliseconds
 *   GET /big?bytes=N     with N bytes
 *   GET /stats           figures of the server
 *   GET /metrics         figures of the timer service, for Prometheus
 *
 * It listens on loopback only. It is an example of timeouts: no TLS, no request bodies, no files.
 *
 * SIGTERM or SIGINT stops it. It then checks the timer service's ledger; the exit status is 0 if
 * the ledger balances.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "examples/server/ban.h"
#include "examples/server/loop.h"

#define MAX_LOOPS 64
#define SPARE_DESCRIPTORS 64

struct options {
	struct limits limits;
	unsigned long port, loops;
};

static const char usage[] =
    "usage: server [--port N] [--loops N] [--head-ms N] [--request-ms N] [--idle-ms N] "
    "[--ban-ms N]\n";

static unsigned long number(const char *text, unsigned long most)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno == 0 && *text >= '0' && *text <= '9' && *end == 0 && n <= most)
		return n;
	fprintf(stderr, "server: '%s' is not a number up to %lu\n%s", text, most, usage);
	exit(2);
}

static uint64_t milliseconds(const char *text)
{
	return number(text, 86400000) * TW_MILLISECOND;
}

static void take_option(struct options *o, int option, const char *value)
{
	switch (option) {
	case 'p':
		o->port = number(value, UINT16_MAX);
		break;
	case 'l':
		o->loops = number(value, MAX_LOOPS);
		break;
	case 'h':
		o->limits.head_ns = milliseconds(value);
		break;
	case 'r':
		o->limits.request_ns = milliseconds(value);
		break;
	case 'i':
		o->limits.idle_ns = milliseconds(value);
		break;
	case 'b':
		o->limits.ban_ns = milliseconds(value);
		break;
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static struct options take_options(int argc, char **argv)
{
	static const struct option names[] = {
	    {"port", required_argument, NULL, 'p'},
	    {"loops", required_argument, NULL, 'l'},
	    {"head-ms", required_argument, NULL, 'h'},
	    {"request-ms", required_argument, NULL, 'r'},
	    {"idle-ms", required_argument, NULL, 'i'},
	    {"ban-ms", required_argument, NULL, 'b'},
	    {NULL, 0, NULL, 0},
	};
	struct options o = {.limits = {.head_ns = 10 * TW_SECOND,
				       .request_ns = 30 * TW_SECOND,
				       .idle_ns = 60 * TW_SECOND,
				       .ban_ns = 60 * TW_SECOND},
			    .loops = 2};
	int option;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		take_option(&o, option, optarg);
	if (optind < argc || o.loops == 0)
		take_option(&o, '?', NULL);
	return o;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "server: %s: %s\n", what, strerror(error));
	return 1;
}

/*
 * Takes as many descriptors as the system allows, shared by the loops, so accept never lacks one.
 */
static size_t connections_per_loop(size_t loops)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
	setrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NOFILE, &files);
	size_t usable = files.rlim_cur > SPARE_DESCRIPTORS ? files.rlim_cur - SPARE_DESCRIPTORS : 0;
	return usable / loops > 0 ? usable / loops : 1;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in address = {0};
	socklen_t length = sizeof(address);
	getsockname(fd, (struct sockaddr *)&address, &length);
	return ntohs(address.sin_port);
}

/* The first socket may choose the port, the others share it. 0, or an error's number. */
static int open_loops(struct server *s, uint16_t port)
{
	size_t room = connections_per_loop(s->loop_count);
	for (size_t i = 0; i < s->loop_count; i++) {
		int fd = loop_listen(port);
		if (fd < 0)
			return -fd;
		if (!loop_init(&s->loops[i], s, fd, room))
			return ENOMEM;
		port = port_of(fd);
	}
	printf("listening on 127.0.0.1:%u\n", port);
	fflush(stdout);
	return 0;
}

static int start_loops(struct server *s)
{
	for (unsigned i = 0; i < s->loop_count; i++)
		if (!loop_start(&s->loops[i], i))
			return EAGAIN;
	return 0;
}

static void wait_for_end(void)
{
	sigset_t end;
	int which;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	sigwait(&end, &which);
}

/*
 * Before any thread is created: the threads inherit the mask, so the signals wait for wait_for_end.
 */
static void block_signals(void)
{
	sigset_t end;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/*
 * When the service is closed nothing changes any more, so the equation must hold to the last timer.
 */
static bool ledger_balances(tw_service *service)
{
	struct tw_service_stats s = {.size = sizeof(s)};
	char why[160] = "";
	tw_service_stats(service, &s);
	bool balanced = s.pending == 0 && s.scheduled == s.fired + s.cancelled + s.dropped;
	bool valid = tw_service_validate(service, why, sizeof(why)) == 0;
	printf("ledger: %" PRIu64 " scheduled, %" PRIu64 " fired, %" PRIu64 " cancelled, %" PRIu64
	       " dropped, %" PRIu64 " pending: %s%s\n",
	       s.scheduled, s.fired, s.cancelled, s.dropped, s.pending,
	       balanced && valid ? "balanced" : "NOT BALANCED ", why);
	return balanced && valid;
}

/*
 * The order matters. First the loops end, and cancel what they have. Then close waits for callbacks
 * that still run. Only then is the loops' memory freed, because callbacks post into it.
 */
static bool stop(struct server *s)
{
	for (size_t i = 0; i < s->loop_count; i++)
		loop_stop(&s->loops[i]);
	int closed = tw_service_close(s->service, TW_CLOSE_DROP, TW_FOREVER);
	bool balanced = ledger_balances(s->service);
	tw_service_destroy(s->service);
	for (size_t i = 0; i < s->loop_count; i++)
		loop_free(&s->loops[i]);
	free(s->loops);
	ban_free();
	return closed == 0 && balanced;
}

int main(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct server server = {.limits = o.limits, .loop_count = o.loops};
	block_signals();
	int error = -tw_service_create(&server.service, NULL);
	if (error != 0)
		return fail("no timer service", error);
	ban_init(server.service, o.limits.ban_ns);
	server.loops = calloc(o.loops, sizeof(*server.loops));
	error = server.loops != NULL ? open_loops(&server, (uint16_t)o.port) : ENOMEM;
	if (error == 0)
		error = start_loops(&server);
	if (error != 0)
		return fail("cannot serve", error);
	wait_for_end();
	return stop(&server) ? 0 : 1;
}
