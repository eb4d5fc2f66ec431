/* The commands of a client. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store.h"

enum { CHUNK = 256, CANARY_MS = 5, PAUSE_MS = 10 };

static void sleep_ms(int64_t ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&pause, NULL);
}

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* --------------------------------------------------------------------- submit */

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

int client_submit(const char *prefix, int count, int64_t within_ms, const char *payload)
{
	struct submission jobs[CHUNK];
	int64_t begun_us = now_us();
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
	int64_t took_us = now_us() - begun_us + 1;
	fprintf(stderr, "durable: %d jobs submitted in %.2f s, %.0f a second\n", count,
		(double)took_us / 1e6, count * 1e6 / (double)took_us);
	return 0;
}

/* ---------------------------------------------------------------------- others */

int client_cancel(const char *id)
{
	int r = store_cancel(id);
	puts(r < 0 ? "no answer" : r ? "cancelled" : "too late");
	return r < 0;
}

int client_left(void)
{
	int64_t n = store_left();
	if (n < 0)
		return 1; /* the store has said why */
	printf("%" PRId64 "\n", n);
	return 0;
}

static volatile sig_atomic_t ended;

static void end(int signal_number)
{
	(void)signal_number;
	ended = 1;
}

/*
 * Prints the longest time in which this process could not write to Redis: what the machine adds to
 * lateness.
 */
int client_canary(void)
{
	int64_t last_us = now_us(), longest_us = 0;
	signal(SIGTERM, end);
	while (!ended) {
		if (store_touch() == 0) {
			int64_t at_us = now_us();
			longest_us = at_us - last_us > longest_us ? at_us - last_us : longest_us;
			last_us = at_us;
		}
		sleep_ms(CANARY_MS);
	}
	printf("%" PRId64 "\n", longest_us / 1000);
	return 0;
}
