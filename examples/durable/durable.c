/*
 * Timers that outlive a machine: jobs in Redis, run on time by whichever node holds their shard.
 * LEASE_MS and TICK_MS are read from the environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node.h"
#include "store.h"

enum { SHARDS = 8, WINDOW_MS = 60 * 1000, LEASE_MS = 1500, TICK_MS = 50 };
enum { CHUNK = 256, PAUSE_MS = 10 };

static int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	int64_t n = text ? strtoll(text, &end, 10) : otherwise;
	if (text && (*end || end == text || n <= 0)) {
		fprintf(stderr, "durable: %s=%s: must be a number above 0\n", name, text);
		exit(2);
	}
	return n;
}

/* --------------------------------------------------------------------- a node */

struct record {
	int file;
	const char *name;
	int64_t work_ms;
};

static void sleep_ms(int64_t ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&pause, NULL);
}

/* The job: takes its time, and writes a line with the instant of its start at the end. */
static void job(void *arg, const char *id, const char *payload)
{
	const struct record *record = arg;
	char line[128 + PAYLOAD_SIZE];
	struct timespec begun;
	clock_gettime(CLOCK_REALTIME, &begun);
	if (record->work_ms)
		sleep_ms(record->work_ms);
	int length =
	    snprintf(line, sizeof line, "%s %" PRId64 " %s %s\n", id,
		     (int64_t)begun.tv_sec * 1000000 + begun.tv_nsec / 1000, record->name, payload);
	if (write(record->file, line, (size_t)length) != length)
		perror("durable");
}

static void wait_for_end(void)
{
	int signal_number;
	sigset_t end;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	sigwait(&end, &signal_number);
}

static int run_node(const char *name, const char *file, int64_t work_ms)
{
	struct record record = {.file = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
				.name = name,
				.work_ms = work_ms};
	const struct node_config config = {.name = name,
					   .shards = SHARDS,
					   .lease_ms = setting("LEASE_MS", LEASE_MS),
					   .tick_ms = setting("TICK_MS", TICK_MS),
					   .window_ms = WINDOW_MS,
					   .job = job,
					   .arg = &record};
	struct node *node;
	if (record.file < 0) {
		perror(file);
		return 1;
	}
	int r = node_start(&node, &config);
	if (r) {
		fprintf(stderr, "durable: %s\n", strerror(-r));
		return 1;
	}
	wait_for_end();
	node_stop(node);
	return 0;
}

/* --------------------------------------------------------------------- clients */

/* The deadlines are spread over the time, and do not rise with the numbers. */
static void fill(struct submission *jobs, const char *prefix, int first, int count,
		 int64_t start_ms, int64_t step_us, int of)
{
	for (int i = 0; i < count; i++) {
		int64_t place = (int64_t)(first + i) * 7919 % of;
		snprintf(jobs[i].id, sizeof jobs[i].id, "%.24s-%d", prefix, first + i);
		jobs[i].deadline_ms = start_ms + place * step_us / 1000;
	}
}

/*
 * Submits a chunk again until all of it is safe. The deadlines move with the clock meanwhile, so
 * that no job runs between two attempts.
 */
static int submit_chunk(struct submission *jobs, const char *prefix, int first, int count,
			int64_t within_ms, int of)
{
	for (;;) {
		int64_t start_ms = store_now_ms();
		int r = (int)start_ms;
		if (start_ms >= 0) {
			fill(jobs, prefix, first, count, start_ms, within_ms * 1000 / of, of);
			r = store_submit(jobs, count);
		}
		if (r >= 0 || r == -ENOSPC)
			return r;
		sleep_ms(PAUSE_MS);
	}
}

static int client_submit(const char *prefix, int count, int64_t within_ms, const char *payload)
{
	struct submission jobs[CHUNK];
	for (int i = 0; i < CHUNK; i++)
		jobs[i].payload = payload;
	for (int first = 0; first < count; first += CHUNK) {
		int size = count - first < CHUNK ? count - first : CHUNK;
		int r = submit_chunk(jobs, prefix, first, size, within_ms, count);
		if (r < 0) {
			fprintf(stderr,
				"durable: the server is full; %d of %d jobs are submitted\n", first,
				count);
			return 1;
		}
		for (int i = 0; i < size; i++)
			printf("%s %" PRId64 "\n", jobs[i].id, jobs[i].deadline_ms);
	}
	return 0;
}

static int client_cancel(const char *id)
{
	int r = store_cancel(id);
	puts(r < 0 ? "no answer" : r ? "cancelled" : "too late");
	return r < 0;
}

static int client_left(void)
{
	int64_t n = store_left();
	if (n < 0)
		return 1; /* the store has said why */
	printf("%" PRId64 "\n", n);
	return 0;
}

/* ------------------------------------------------------------------------ main */

static int usage(FILE *to)
{
	fputs("usage: durable COMMAND SOCKET ...\n"
	      "\n"
	      "  node SOCKET NAME FILE [WORK_MS]             runs jobs until SIGTERM; each adds a "
	      "line to FILE\n"
	      "  submit SOCKET PREFIX COUNT MS [PAYLOAD]     adds jobs due within MS; prints ids "
	      "and deadlines\n"
	      "  cancel SOCKET ID                            takes back a job that does not run\n"
	      "  left SOCKET                                 prints how many jobs wait or run\n"
	      "\n"
	      "Environment: LEASE_MS (1500), TICK_MS (50).\n",
	      to);
	return to == stderr ? 2 : 0;
}

static int dispatch(int argc, char **argv)
{
	const char *what = argv[1];
	if (strcmp(what, "node") == 0 && argc >= 5)
		return run_node(argv[3], argv[4], argc > 5 ? atoi(argv[5]) : 0);
	if (strcmp(what, "submit") == 0 && argc >= 6 && atoi(argv[4]) > 0 &&
	    strtoll(argv[5], NULL, 10) > 0)
		return client_submit(argv[3], atoi(argv[4]), strtoll(argv[5], NULL, 10),
				     argc > 6 ? argv[6] : "hello");
	if (strcmp(what, "cancel") == 0 && argc == 4)
		return client_cancel(argv[3]);
	return strcmp(what, "left") == 0 ? client_left() : usage(stderr);
}

int main(int argc, char **argv)
{
	sigset_t end_signals;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout);
	if (argc < 3)
		return usage(stderr);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGTERM);
	sigaddset(&end_signals, SIGINT);
	if (strcmp(argv[1], "node") == 0)
		pthread_sigmask(SIG_BLOCK, &end_signals, NULL); /* for sigwait */
	store_configure(
	    &(struct store_config){.socket = argv[2],
				   .shards = SHARDS,
				   .timeout_ms = (int)setting("LEASE_MS", LEASE_MS) / 4});
	int status = dispatch(argc, argv);
	store_close();
	return status;
}
