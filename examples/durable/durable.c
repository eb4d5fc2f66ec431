/*
 * Timers that outlive a machine: jobs in Redis, run on time by whichever node holds their shard.
 *
 *     durable node SOCKET NAME FILE [WORK_MS]   runs jobs until SIGTERM; each adds a line to FILE
 *     durable submit SOCKET PREFIX COUNT MS     adds jobs due within MS; prints ids, deadlines
 *     durable cancel SOCKET ID
 *     durable left SOCKET                       how many jobs have not run
 *     durable canary SOCKET                     prints the longest time without an answer
 *
 * LEASE_MS, TICK_MS in the environment: 1500 and 50 by default.
 */
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

enum { SHARDS = 8, WINDOW_MS = 60 * 1000, CANARY_MS = 5 };

static int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoll(text, NULL, 10) : otherwise;
}

static int64_t clock_us(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_ms(int64_t ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&pause, NULL);
}

/* --------------------------------------------------------------------- a node */

struct record {
	int file;
	const char *name;
	int64_t work_ms;
};

/* The job: takes its time, and has its effect at the end: a line with the instant of its start. */
static void job(void *arg, const char *id, const char *payload)
{
	const struct record *record = arg;
	char line[128 + PAYLOAD_SIZE];
	int64_t begun_us = clock_us(CLOCK_REALTIME);
	if (record->work_ms)
		sleep_ms(record->work_ms);
	int length = snprintf(line, sizeof line, "%s %" PRId64 " %s %s\n", id, begun_us, record->name, payload);
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
	struct record record = {
	    .file = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), .name = name, .work_ms = work_ms};
	const struct node_config config = {.name = name,
					   .shards = SHARDS,
					   .lease_ms = setting("LEASE_MS", 1500),
					   .tick_ms = setting("TICK_MS", 50),
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

/* ------------------------------------------------------------------- a client */

static int submit(const char *prefix, int count, int64_t within_ms)
{
	for (int i = 0; i < count; i++) {
		char id[ID_SIZE];
		int64_t now_ms = store_now_ms();
		int64_t at_ms = now_ms + (int64_t)((uint64_t)i * 7919 % (uint64_t)count) * within_ms / count;
		snprintf(id, sizeof id, "%.24s-%d", prefix, i);
		while (now_ms < 0 || store_submit(id, at_ms, "hello") < 0) { /* again, until it is safe */
			sleep_ms(10);
			now_ms = store_now_ms();
			at_ms = now_ms + within_ms;
		}
		printf("%s %" PRId64 "\n", id, at_ms);
	}
	return 0;
}

static int cancel(const char *id)
{
	int r = store_cancel(id);
	puts(r < 0 ? "no answer" : r ? "cancelled" : "too late");
	return r < 0;
}

static int left(void)
{
	int64_t n = store_left();
	printf("%" PRId64 "\n", n);
	return n < 0;
}

static volatile sig_atomic_t ended;

static void end(int signal_number)
{
	(void)signal_number;
	ended = 1;
}

/*
 * The longest time in which this process could not write to Redis: what the machine adds to
 * lateness.
 */
static int canary(void)
{
	int64_t last_us = clock_us(CLOCK_MONOTONIC), longest_us = 0;
	signal(SIGTERM, end);
	while (!ended) {
		if (store_touch() == 0) {
			int64_t now_us = clock_us(CLOCK_MONOTONIC);
			longest_us = now_us - last_us > longest_us ? now_us - last_us : longest_us;
			last_us = now_us;
		}
		sleep_ms(CANARY_MS);
	}
	printf("%" PRId64 "\n", longest_us / 1000);
	return 0;
}

/* ------------------------------------------------------------------------ main */

static int usage(void)
{
	fputs("usage: durable node SOCKET NAME FILE [WORK_MS] | submit SOCKET PREFIX COUNT MS | cancel SOCKET ID | "
	      "left SOCKET | canary SOCKET\n",
	      stderr);
	return 2;
}

static int dispatch(int argc, char **argv)
{
	const char *what = argv[1];
	if (strcmp(what, "node") == 0 && argc >= 5)
		return run_node(argv[3], argv[4], argc > 5 ? atoi(argv[5]) : 0);
	if (strcmp(what, "submit") == 0 && argc == 6 && atoi(argv[4]) > 0)
		return submit(argv[3], atoi(argv[4]), strtoll(argv[5], NULL, 10));
	if (strcmp(what, "cancel") == 0 && argc == 4)
		return cancel(argv[3]);
	if (strcmp(what, "left") == 0)
		return left();
	return strcmp(what, "canary") == 0 ? canary() : usage();
}

int main(int argc, char **argv)
{
	sigset_t end_signals;
	if (argc < 3)
		return usage();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGTERM);
	sigaddset(&end_signals, SIGINT);
	if (strcmp(argv[1], "node") == 0)
		pthread_sigmask(SIG_BLOCK, &end_signals, NULL); /* for sigwait */
	store_configure(&(struct store_config){
	    .socket = argv[2], .shards = SHARDS, .timeout_ms = (int)setting("LEASE_MS", 1500) / 4});
	int status = dispatch(argc, argv);
	store_close();
	return status;
}
