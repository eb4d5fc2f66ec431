/*
 * soak SECONDS: a service at steady work. Producers schedule, cancel and reset; series beat; groups
 * come and go; threads end and are replaced. Resident memory, lateness of callbacks, open
 * descriptors and threads are looked at again and again: the second half of the run must be like
 * its first half.
 *
 * The verdict is one line. Memory may grow by 4 MiB and an eighth between the halves, lateness (the
 * median of the samples' p99) to twice and 20 ms more: other load on the machine may do as much.
 * Descriptors and threads may not grow at all.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"

enum { PRODUCERS = 2, SAMPLES_MOST = 4096, HELD = 512, WARM_UP_PERCENT = 20 };

struct sample {
	double rss_mib, late_ms;
	unsigned descriptors, threads;
};

static struct {
	tw_service *service;
	atomic_bool stop;
	atomic_ullong operations, runs, worst_ns;
	struct sample samples[SAMPLES_MOST];
	unsigned count;
} soak;

static void die(const char *what)
{
	fprintf(stderr, "soak: FAILED: %s\n", what);
	exit(1);
}

static void nap(uint64_t ns)
{
	const struct timespec span = {.tv_sec = (time_t)(ns / TW_SECOND),
				      .tv_nsec = (long)(ns % TW_SECOND)};
	nanosleep(&span, NULL);
}

static void on_timer(void *arg)
{
	(void)arg;
	soak.runs++;
}

/* Its arg is the instant that it is due. */
static void on_measured(void *arg)
{
	uint64_t due_ns = (uint64_t)(uintptr_t)arg, now_ns = tw_service_now(soak.service);
	uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0, worst_ns = soak.worst_ns;
	if (now_ns < due_ns)
		die("a callback came early");
	while (late_ns > worst_ns &&
	       !atomic_compare_exchange_weak(&soak.worst_ns, &worst_ns, late_ns))
		;
	soak.runs++;
}

static void work_on_group(uint64_t *seed)
{
	tw_group group;
	if (tw_group_create(&group, soak.service) != 0)
		die("a group");
	for (int i = 0; i < 20; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = on_timer,
				       .when_ns = random_below(seed, TW_SECOND),
				       .group = group};
		if (tw_schedule_task(soak.service, &task, NULL) != 0)
			die("a member");
	}
	if (tw_group_destroy(soak.service, group) != 0)
		die("the end of a group");
}

static void work(uint64_t *seed, tw_timer held[HELD])
{
	tw_timer *timer = &held[random_below(seed, HELD)];
	uint64_t dice = random_below(seed, 1000);
	if (dice < 600) {
		tw_cancel(soak.service, *timer);
		if (tw_schedule(soak.service, random_below(seed, 30 * TW_SECOND), on_timer, NULL,
				timer) != 0)
			die("a schedule");
	} else if (dice < 900) {
		tw_reset(soak.service, *timer, random_below(seed, 60 * TW_SECOND));
	} else if (dice < 998) {
		uint64_t due_ns = tw_service_now(soak.service) + random_below(seed, 2 * TW_SECOND);
		if (tw_schedule_at(soak.service, due_ns, on_measured, (void *)(uintptr_t)due_ns,
				   NULL) != 0)
			die("a deadline");
	} else {
		work_on_group(seed);
	}
}

/* A producer's life: some seconds; then the next one takes over. */
static void *produce(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg,
		 until_ns = tw_service_now(soak.service) + 3 * TW_SECOND;
	tw_timer held[HELD] = {{0}};
	while (!soak.stop && tw_service_now(soak.service) < until_ns) {
		for (int i = 0; i < 200; i++)
			work(&seed, held);
		soak.operations += 200;
		nap(2 * TW_MILLISECOND);
	}
	for (int i = 0; i < HELD; i++)
		tw_cancel(soak.service, held[i]);
	return NULL;
}

static void *keep_producing(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg;
	while (!soak.stop) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, produce, (void *)(uintptr_t)random_next(&seed)) !=
		    0)
			die("a thread");
		pthread_join(thread, NULL);
	}
	return NULL;
}

static unsigned entries_of(const char *folder)
{
	unsigned n = 0;
	DIR *dir = opendir(folder);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static double resident_mib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*s %lu", &pages) != 1)
		die("/proc/self/statm");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void take_sample(void)
{
	if (soak.count == SAMPLES_MOST)
		return;
	struct sample *s = &soak.samples[soak.count++];
	s->rss_mib = resident_mib();
	s->late_ms = (double)atomic_exchange(&soak.worst_ns, 0) / 1e6;
	s->descriptors = entries_of("/proc/self/fd");
	s->threads = entries_of("/proc/self/task");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct half {
	double rss_mib, late_ms;       /* medians */
	unsigned descriptors, threads; /* most */
};

static struct half sum(unsigned from, unsigned to)
{
	static double rss[SAMPLES_MOST], late[SAMPLES_MOST];
	struct half half = {0};
	for (unsigned i = from; i < to; i++) {
		const struct sample *s = &soak.samples[i];
		rss[i - from] = s->rss_mib;
		late[i - from] = s->late_ms;
		half.descriptors =
		    s->descriptors > half.descriptors ? s->descriptors : half.descriptors;
		half.threads = s->threads > half.threads ? s->threads : half.threads;
	}
	qsort(rss, to - from, sizeof *rss, compare);
	qsort(late, to - from, sizeof *late, compare);
	half.rss_mib = rss[(to - from) / 2];
	half.late_ms = late[(to - from) / 2];
	return half;
}

static int verdict(double seconds)
{
	unsigned from = soak.count * WARM_UP_PERCENT / 100, middle = (from + soak.count) / 2;
	if (middle == from)
		die("too short to say anything: give it ten seconds");
	struct half a = sum(from, middle), b = sum(middle, soak.count);
	const char *grew = b.rss_mib > a.rss_mib * 1.125 + 4  ? "memory grew"
			   : b.late_ms > 1.5 * a.late_ms + 20 ? "lateness grew"
			   : b.descriptors > a.descriptors    ? "descriptors grew"
			   : b.threads > a.threads            ? "threads grew"
							      : NULL;
	printf("soak: %s: %.0f s, %.1f M operations, %.1f M runs; first and second half: memory "
	       "%.1f, %.1f MiB; latest "
	       "callback of a sample %.2f, %.2f ms;"
	       " descriptors %u, %u; threads %u, %u\n",
	       grew ? grew : "ok, flat", seconds, (double)soak.operations / 1e6,
	       (double)soak.runs / 1e6, a.rss_mib, b.rss_mib, a.late_ms, b.late_ms, a.descriptors,
	       b.descriptors, a.threads, b.threads);
	return grew != NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 60;
	struct tw_service_config config = {.size = sizeof config, .workers = 2};
	struct tw_period beat = {
	    .size = sizeof beat, .period_ns = 10 * TW_MILLISECOND, .first_ns = TW_MILLISECOND};
	pthread_t producers[PRODUCERS];
	if (seconds <= 0 || tw_service_create(&soak.service, &config) != 0)
		die("usage: soak SECONDS");
	for (int i = 0; i < 20; i++)
		if (tw_schedule_every(soak.service, &beat, on_timer, NULL, NULL) != 0)
			die("a series");
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		if (pthread_create(&producers[i], NULL, keep_producing, (void *)(i + 1)) != 0)
			die("a producer");
	uint64_t step_ns = (uint64_t)(seconds * 1e9 / (seconds < 400 ? 100 : 2000));
	for (uint64_t until_ns = tw_service_now(soak.service) + (uint64_t)(seconds * 1e9);
	     tw_service_now(soak.service) < until_ns;) {
		nap(step_ns);
		take_sample();
	}
	soak.stop = true;
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	int failed = verdict(seconds);
	char why[128] = "";
	if (tw_service_close(soak.service, TW_CLOSE_DROP, TW_FOREVER) != 0 ||
	    tw_service_validate(soak.service, why, sizeof why) != 0)
		die(why);
	if (tw_service_destroy(soak.service) != 0)
		die("the end");
	return failed;
}
