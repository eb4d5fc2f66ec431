/*
 * A small multithreaded HTTP/1.1 server whose timeouts are tickwheel timers: the time for a head,
 * the time for a request, and keep-alive's idle time (moved by each request).
 *
 *   GET /                the answer comes immediately
 *   GET /slow?ms=N       after N milliseconds
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

#include "examples/server/loop.h"
#include "tickwheel/layers.h"

#define MAX_LOOPS 64
#define SPARE_DESCRIPTORS 64

static const char usage[] =
    "usage: server [--port N] [--loops N] [--head-ms N] [--request-ms N] [--idle-ms N]\n";

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

static void take_options(struct server *s, uint16_t *port, int argc, char **argv)
{
	static const struct option names[] = {
	    {"port", required_argument, NULL, 'p'},    {"loops", required_argument, NULL, 'l'},
	    {"head-ms", required_argument, NULL, 'h'}, {"request-ms", required_argument, NULL, 'r'},
	    {"idle-ms", required_argument, NULL, 'i'}, {NULL, 0, NULL, 0},
	};
	struct limits *limits = &s->limits;
	int option;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t *limit = option == 'h'   ? &limits->head_ns
				  : option == 'r' ? &limits->request_ns
				  : option == 'i' ? &limits->idle_ns
						  : NULL;
		if (limit != NULL)
			*limit = number(optarg, 86400000) * TW_MILLISECOND;
		else if (option == 'p')
			*port = (uint16_t)number(optarg, UINT16_MAX);
		else
			s->loop_count = option == 'l' ? number(optarg, MAX_LOOPS) : 0;
	}
	if (optind < argc || s->loop_count == 0) {
		fputs(usage, stderr);
		exit(2);
	}
}

/*
 * Adds up the loops' figures while they work. Each number is true; together they may differ by what
 * is in flight.
 */
bool report(const struct server *server, FILE *out)
{
	static const char *const names[] = {"accepted",         "closed",        "requests",
					    "malformed",        "full",          "timeouts_head",
					    "timeouts_request", "timeouts_idle", "answers_slow"};
	struct tw_service_stats s = {.size = sizeof(s)};
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < server->loop_count; i++)
			sum += (&server->loops[i].figures.accepted)[k];
		fprintf(out, "%s %" PRIu64 "\n", names[k], sum);
	}
	tw_service_stats(server->service, &s);
	fprintf(out,
		"scheduled %" PRIu64 "\nruns %" PRIu64 "\npending %" PRIu64 "\nmoved %" PRIu64
		"\nrejected %" PRIu64 "\nwakeups %" PRIu64 "\n",
		s.scheduled, s.runs, s.pending, s.resets, s.rejected, s.wakeups);
	fprintf(out,
		"lateness_p50_ns %" PRIu64 "\nlateness_p99_ns %" PRIu64 "\nlateness_max_ns %" PRIu64
		"\ntimer_bytes %" PRIu64 "\n",
		s.lateness.p50_ns, s.lateness.p99_ns, s.lateness.max_ns, s.memory_bytes);
	return true;
}

bool metrics(const struct server *server, FILE *out)
{
	return tw_service_stats_prometheus(server->service, out) == 0;
}

bool page(const struct server *server, page_fn *write, char **text, size_t *length)
{
	FILE *out = open_memstream(text, length);
	return out != NULL && write(server, out) & (fclose(out) == 0);
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

/* The first socket may choose the port, the others share it. 0, or an error's number. */
static int start_loops(struct server *s, uint16_t port)
{
	size_t room = connections_per_loop(s->loop_count);
	for (size_t i = 0; i < s->loop_count; i++) {
		struct sockaddr_in address = {0};
		socklen_t length = sizeof(address);
		int fd = loop_listen(port);
		if (fd < 0)
			return -fd;
		if (!loop_init(&s->loops[i], s, fd, room))
			return ENOMEM;
		getsockname(fd, (struct sockaddr *)&address, &length);
		port = ntohs(address.sin_port);
	}
	printf("listening on 127.0.0.1:%u\n", port);
	fflush(stdout);
	for (unsigned i = 0; i < s->loop_count; i++)
		if (!loop_start(&s->loops[i], i))
			return EAGAIN;
	return 0;
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
 * The order matters. First the loops end, and disarm what they have. Then the service goes, whose
 * timers use the loops' queues. Only then the loops' memory is freed.
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
	return closed == 0 && balanced;
}

int main(int argc, char **argv)
{
	struct server server = {.limits = {.head_ns = 10 * TW_SECOND,
					   .request_ns = 30 * TW_SECOND,
					   .idle_ns = 60 * TW_SECOND},
				.loop_count = 2};
	uint16_t port = 0;
	sigset_t end;
	int which;
	take_options(&server, &port, argc, argv);
	/* Before any thread is made: they inherit the mask, so the signals wait for sigwait. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	int error = -tw_service_create(&server.service, NULL);
	if (error != 0)
		return fail("no timer service", error);
	server.loops = calloc(server.loop_count, sizeof(*server.loops));
	error = server.loops != NULL ? start_loops(&server, port) : ENOMEM;
	if (error != 0)
		return fail("cannot serve", error);
	sigwait(&end, &which);
	return stop(&server) ? 0 : 1;
}
