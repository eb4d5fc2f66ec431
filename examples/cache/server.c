/*
 * tickcache: a cache that speaks the Redis protocol, and whose keys end on time. README.md says
 * what it shows.
 *
 * SIGTERM, SIGINT or SHUTDOWN end it: no new connections, replies are sent, all timers are
 * dropped, and the ledgers of timers and keys are checked; the exit status tells.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/table.h"

#define MAX_THREADS 64
#define WANTED_CLIENTS 10000
#define SPARE_DESCRIPTORS 32
#define MAX_TIMERS (1u << 26)
#define LEAST_TRIM (1u << 20)

struct cache cache = {
    .port = 6379, .bind = "127.0.0.1", .loop_count = 1, .max_clients = WANTED_CLIENTS};

static const char usage[] =
    "usage: tickcache [OPTION]...\n"
    "  --port N           listen on this port; default 6379, 0: any free port\n"
    "  --bind ADDR        IPv4 address to listen on; default 127.0.0.1\n"
    "  --unixsocket PATH  listen on this socket, too\n"
    "  --threads N        event loops; default 1, at most 64\n"
    "  --help             print this\n";

static unsigned long number(const char *text, unsigned long most)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno == 0 && *text >= '0' && *text <= '9' && *end == 0 && n <= most)
		return n;
	fprintf(stderr, "tickcache: '%s' is not a number up to %lu\n", text, most);
	exit(2);
}

static void take_options(int argc, char **argv)
{
	static const struct option names[] = {
	    {"port", required_argument, NULL, 'p'},
	    {"bind", required_argument, NULL, 'b'},
	    {"unixsocket", required_argument, NULL, 'u'},
	    {"threads", required_argument, NULL, 't'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int option;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			cache.port = (unsigned)number(optarg, UINT16_MAX);
		else if (option == 'b')
			cache.bind = optarg;
		else if (option == 'u')
			cache.unix_path = optarg;
		else if (option == 't')
			cache.loop_count = (unsigned)number(optarg, MAX_THREADS);
		else
			cache.loop_count = 0;
		if (option == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
	}
	if (optind < argc || cache.loop_count == 0) {
		fputs(usage, stderr);
		exit(2);
	}
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "tickcache: %s: %s\n", what, strerror(error));
	return 1;
}

/* Raises the limit of descriptors for the wanted clients, or takes fewer clients. */
static void fit_clients(void)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	rlim_t spare = SPARE_DESCRIPTORS + 4 * cache.loop_count;
	rlim_t had = files.rlim_cur, needed = cache.max_clients + spare;
	if (had >= needed)
		return;
	files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
	if (setrlimit(RLIMIT_NOFILE, &files) == 0)
		had = files.rlim_cur;
	unsigned usable = had > spare ? (unsigned)(had - spare) : 1;
	if (usable >= cache.max_clients)
		return;
	fprintf(stderr, "tickcache: %lu descriptors allow for %u clients instead of %u\n",
		(unsigned long)had, usable, cache.max_clients);
	cache.max_clients = usable;
}

/* Callbacks are short, and run on the tick thread. */
static int make_service(void)
{
	struct tw_service_config config = {
	    .size = sizeof(config), .max_timers = MAX_TIMERS, .thread_name = "cache"};
	struct timespec now;
	config.executor = tw_executor_inline();
	int error = tw_service_create(&cache.service, &config);
	if (error != 0)
		return error;
	clock_gettime(CLOCK_REALTIME, &now);
	cache.started_ns = tw_service_now(cache.service);
	cache.unix_offset_ns =
	    (uint64_t)now.tv_sec * TW_SECOND + (uint64_t)now.tv_nsec - cache.started_ns;
	return 0;
}

/* All sockets, then the loops. The first socket decides whether the port is free. */
static int start_loops(void)
{
	int fds[MAX_THREADS], unix_fd = -1;
	struct sockaddr_in address = {0};
	socklen_t length = sizeof(address);
	for (unsigned i = 0; i < cache.loop_count; i++) {
		fds[i] = i == 0 ? loop_listen(cache.bind, cache.port) : loop_listen_beside(fds[0]);
		if (fds[i] < 0)
			return fds[i];
	}
	getsockname(fds[0], (struct sockaddr *)&address, &length);
	cache.port = ntohs(address.sin_port);
	if (cache.unix_path != NULL && (unix_fd = loop_listen_unix(cache.unix_path)) < 0)
		return unix_fd;
	for (unsigned i = 0; i < cache.loop_count; i++)
		if (!loop_start(&cache.loops[i], i, fds[i], unix_fd))
			return fail("no event loop", errno);
	return 0;
}

/* Before any thread is made: they inherit the mask, so that the signals wait for main. */
static void block_signals(sigset_t *end)
{
	sigemptyset(end);
	sigaddset(end, SIGTERM);
	sigaddset(end, SIGINT);
	pthread_sigmask(SIG_BLOCK, end, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/*
 * The allocator maps each block of this size or more by itself, and unmaps it when it is freed.
 * Without this setting the limit rises to the size of each such block that is freed, up to 32 MiB.
 */
enum { OWN_PAGES = 256 * 1024 };

/*
 * The allocator keeps what is freed in the middle of its heap. When the keys have shrunk to half
 * of their former size, a call gives pages back to the system. It takes some milliseconds, so it
 * does not run on a thread that serves.
 */
static void give_memory_back(size_t *peak)
{
	size_t bytes = 0;
	for (size_t i = 0; i < SHARDS; i++)
		bytes += atomic_load_explicit(&shards[i].bytes, memory_order_relaxed);
	*peak = bytes > *peak ? bytes : *peak;
	if (*peak >= LEAST_TRIM && bytes < *peak / 2) {
		malloc_trim(0);
		*peak = bytes;
	}
}

static void wait_for_end(const sigset_t *end)
{
	const struct timespec second = {.tv_sec = 1};
	size_t peak = 0;
	while (sigtimedwait(end, NULL, &second) < 0) {
		info_sample();
		give_memory_back(&peak);
	}
}

void cache_shut_down(void)
{
	kill(getpid(), SIGTERM);
}

/* When nothing moves any more, both ledgers must balance to the last timer and key. */
static bool ledgers_balance(void)
{
	struct tw_service_stats s = {.size = sizeof(s)};
	char why[160] = "";
	uint64_t keys, present;
	tw_service_stats(cache.service, &s);
	struct shard_figures t = info_shards(&keys, &present);
	bool timers = s.pending == 0 && s.scheduled == s.fired + s.cancelled + s.dropped &&
		      tw_service_validate(cache.service, why, sizeof(why)) == 0;
	bool right = t.volatile_made == t.expired + t.volatile_ended + present;
	printf("timers: %" PRIu64 " scheduled, %" PRIu64 " fired, %" PRIu64 " cancelled, %" PRIu64
	       " dropped: %s%s\n",
	       s.scheduled, s.fired, s.cancelled, s.dropped, timers ? "balanced" : "NOT BALANCED ",
	       why);
	printf("deadlines: %" PRIu64 " made, %" PRIu64 " expired, %" PRIu64
	       " ended otherwise, %" PRIu64 " present: %s\n",
	       t.volatile_made, t.expired, t.volatile_ended, present,
	       right ? "balanced" : "NOT BALANCED");
	return timers && right;
}

static void free_entry(void *arg, struct shard *s, struct entry *e)
{
	(void)arg;
	(void)s;
	free(e);
}

/* Loops first: their clients use the table. Then the timers: their callbacks do. Then the table. */
static bool stop(void)
{
	for (unsigned i = 0; i < cache.loop_count; i++)
		loop_stop(&cache.loops[i]);
	for (unsigned i = 0; i < cache.loop_count; i++)
		loop_join(&cache.loops[i]);
	int closed = tw_service_close(cache.service, TW_CLOSE_DROP, TW_FOREVER);
	bool balanced = ledgers_balance();
	tw_service_destroy(cache.service);
	for (size_t i = 0; i < SHARDS; i++)
		table_clear(&shards[i], free_entry, NULL);
	free(cache.loops);
	table_free();
	if (cache.unix_path != NULL)
		unlink(cache.unix_path);
	return closed == 0 && balanced;
}

int main(int argc, char **argv)
{
	sigset_t end;
	take_options(argc, argv);
	mallopt(M_MMAP_THRESHOLD, OWN_PAGES);
	block_signals(&end);
	fit_clients();
	int error = make_service();
	if (error != 0)
		return fail("no timer service", -error);
	table_init();
	cache.loops = aligned_alloc(128, cache.loop_count * sizeof(struct loop));
	if (cache.loops == NULL)
		return fail("no loops", ENOMEM);
	memset(cache.loops, 0, cache.loop_count * sizeof(struct loop));
	if (start_loops() != 0)
		return 1;
	printf("ready on %s:%u, %u thread%s\n", cache.bind, cache.port, cache.loop_count,
	       cache.loop_count == 1 ? "" : "s");
	fflush(stdout);
	wait_for_end(&end);
	return stop() ? 0 : 1;
}
