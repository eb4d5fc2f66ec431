/*
 * metrics TIMERS: runs TIMERS timers on a service, then blocks one callback for each of some names.
 * Writes the service's figures (tw_service_stats_prometheus). The names need escapes, and some
 * differ only in what is escaped.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tickwheel/layers.h"

enum { BYTES = 255 };

static char every_byte[BYTES + 1];
static const char *const names[] = {every_byte, "\x01", "\\x01",    "\\x5cx01", "\\\\x01", "\xff",
				    "\\xff",    "a\nb", "a\\nb",    "\"",       "\\\"",    "\\",
				    "",         NULL,   "\xc3\xa9", "\xc3\xc3"};
enum { NAMES = sizeof names / sizeof *names };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int blocked;
static bool written;

static void check(int r)
{
	if (r < 0) {
		fprintf(stderr, "metrics: %s\n", tw_strerror(r));
		exit(1);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

static void block(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	blocked++;
	pthread_cond_broadcast(&changed);
	while (!written)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* The page, while a callback of each name runs. */
static void write_page(tw_service *service)
{
	struct tw_task task = TW_INIT(tw_task);
	task.fn = block;
	task.when_ns = TW_MILLISECOND;
	for (int i = 0; i < NAMES; i++) {
		task.name = names[i];
		check(tw_schedule_task(service, &task, NULL));
	}
	pthread_mutex_lock(&lock);
	while (blocked < NAMES)
		pthread_cond_wait(&changed, &lock);
	tw_strand *strands[NAMES];
	for (int i = 0; i < NAMES; i++) {
		check(tw_strand_create(&strands[i], service, NULL));
		check(tw_strand_set_name(strands[i], names[i]));
	}
	check(tw_service_stats_prometheus(service, stdout));
	for (int i = 0; i < NAMES; i++)
		check(tw_strand_destroy(strands[i]));
	written = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	tw_service *service;
	struct tw_service_config config = TW_INIT(tw_service_config);
	int timers = argc == 2 ? atoi(argv[1]) : 0;
	for (int i = 0; i < BYTES; i++)
		every_byte[i] = (char)(i + 1);
	config.workers = config.max_workers = NAMES;
	config.name = every_byte;
	check(tw_service_create(&service, &config));
	for (int n = 0; n < timers; n++)
		check(tw_schedule(service, TW_MILLISECOND, nothing, NULL, NULL));
	struct tw_service_stats stats = TW_INIT(tw_service_stats);
	do
		check(tw_service_stats(service, &stats));
	while (stats.fired < (uint64_t)timers);
	write_page(service);
	check(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER));
	check(tw_service_destroy(service));
	return 0;
}
