/*
 * soak SECONDS [SEED]: a service at steady work. Producers schedule, cancel and reset; series beat;
 * groups come and go; threads end and are replaced. Resident memory, lateness of callbacks, open
 * descriptors and threads are looked at again and again: the second half of the run must be like
 * its first half.
 *
 * Memory may grow by 4 MiB and an eighth between the halves, lateness (the median of the samples'
 * worst) to one and a half times and 20 ms more: other load on the machine may do as much.
 * Descriptors and threads may not grow at all.
 */
#include <dirent.h>

#include "test/stress/stress.h"

enum { PRODUCERS = 2, SAMPLES = 200, HELD = 512, WARM_UP_PERCENT = 20 };

struct sample {
	double rss_mib, late_ms;
	unsigned descriptors, threads;
};

static struct {
	tw_service *service;
	atomic_ullong operations, runs, worst_ns;
	struct sample samples[SAMPLES];
	unsigned count;
	uint64_t next_ns, step_ns; /* of the samples */
} soak;

static void on_timer(void *arg)
{
	soak.runs++;
}

/* Its arg is the instant that it is due. */
static void on_measured(void *arg)
{
	uint64_t due_ns = (uint64_t)(uintptr_t)arg, now_ns = tw_service_now(soak.service);
	uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0, worst_ns = soak.worst_ns;
	if (now_ns < due_ns)
		violation("a callback came early, ns", (long long)(due_ns - now_ns));
	while (late_ns > worst_ns &&
	       !atomic_compare_exchange_weak(&soak.worst_ns, &worst_ns, late_ns))
		;
	soak.runs++;
}

static void work_on_group(uint64_t *seed)
{
	tw_group group;
	wanted("a group", tw_group_create(&group, soak.service), 0);
	for (int i = 0; i < 20; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = on_timer,
				       .when_ns = random_below(seed, TW_SECOND),
				       .group = group};
		wanted("a member", tw_schedule_task(soak.service, &task, NULL), 0);
	}
	wanted("the end of a group", tw_group_destroy(soak.service, group), 0);
}

static void work(uint64_t *seed, tw_timer held[HELD])
{
	tw_timer *timer = &held[random_below(seed, HELD)];
	uint64_t dice = random_below(seed, 1000);
	if (dice < 600) {
		tw_cancel(soak.service, *timer);
		wanted("a schedule",
		       tw_schedule(soak.service, random_below(seed, 30 * TW_SECOND), on_timer, NULL,
				   timer),
		       0);
	} else if (dice < 900) {
		tw_reset(soak.service, *timer, random_below(seed, 60 * TW_SECOND));
	} else if (dice < 998) {
		uint64_t due_ns = tw_service_now(soak.service) + random_below(seed, 2 * TW_SECOND);
		wanted("a deadline",
		       tw_schedule_at(soak.service, due_ns, on_measured, (void *)(uintptr_t)due_ns,
				      NULL),
		       0);
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
	while (!atomic_load(&stress_stop) && tw_service_now(soak.service) < until_ns) {
		for (int i = 0; i < 200; i++)
			work(&seed, held);
		soak.operations += 200;
		stress_sleep(2 * TW_MILLISECOND);
	}
	for (int i = 0; i < HELD; i++)
		tw_cancel(soak.service, held[i]);
	return NULL;
}

static void keep_producing(unsigned number, uint64_t seed)
{
	while (!atomic_load(&stress_stop)) {
		pthread_t thread;
		wanted(
		    "a thread",
		    pthread_create(&thread, NULL, produce, (void *)(uintptr_t)random_next(&seed)),
		    0);
		pthread_join(thread, NULL);
	}
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

static void take_sample(void)
{
	if (soak.count == SAMPLES || stress_now_ns() < soak.next_ns)
		return;
	soak.next_ns += soak.step_ns;
	struct sample *s = &soak.samples[soak.count++];
	s->rss_mib = (double)resident_kib() / 1024;
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
	static double rss[SAMPLES], late[SAMPLES];
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

static void verdict(void)
{
	unsigned from = soak.count * WARM_UP_PERCENT / 100, middle = (from + soak.count) / 2;
	if (middle == from)
		violation("too short to say anything: give it ten seconds", 0);
	struct half a = sum(from, middle), b = sum(middle, soak.count);
	const char *grew = b.rss_mib > a.rss_mib * 1.125 + 4  ? "memory grew"
			   : b.late_ms > 1.5 * a.late_ms + 20 ? "lateness grew"
			   : b.descriptors > a.descriptors    ? "descriptors grew"
			   : b.threads > a.threads            ? "threads grew"
							      : NULL;
	printf("first and second half: memory %.1f, %.1f MiB; latest callback of a sample %.2f, "
	       "%.2f ms; descriptors %u, %u; threads %u, %u\n",
	       a.rss_mib, b.rss_mib, a.late_ms, b.late_ms, a.descriptors, b.descriptors, a.threads,
	       b.threads);
	if (grew)
		violation(grew, 0);
}

static void round_of(uint64_t *seed)
{
	struct tw_period beat = {
	    .size = sizeof beat, .period_ns = 10 * TW_MILLISECOND, .first_ns = TW_MILLISECOND};
	char why[128] = "";
	soak.service = open_service((struct tw_service_config){.workers = 2});
	for (int i = 0; i < 20; i++)
		wanted("a series", tw_schedule_every(soak.service, &beat, on_timer, NULL, NULL), 0);
	start_threads(PRODUCERS, keep_producing, seed);
	soak.next_ns = stress_now_ns();
	soak.step_ns = (stress_until_ns - soak.next_ns) / SAMPLES;
	watch_threads(take_sample);
	verdict();
	close_service(soak.service);
	wanted(why, tw_service_validate(soak.service, why, sizeof why), 0);
	wanted("the end", tw_service_destroy(soak.service), 0);
}

static void report(const char *word)
{
	printf("%s %.1f M operations, %.1f M runs\n", word, (double)soak.operations / 1e6,
	       (double)soak.runs / 1e6);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
