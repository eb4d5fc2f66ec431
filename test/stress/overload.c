/*
 * stress_overload SECONDS [SEED]: four times as many producers as processors, each as fast as it
 * can, with short lanes and few timers.
 *
 * The bounds must hold: no more timers than max_timers and the magazines hold, and no more memory
 * than lanes and slots may take. Refusals must be true: while a producer is refused, its lane is
 * full or the timers are used up. A producer that has cancelled all its timers is accepted
 * immediately, or after the next poll of the tick thread. Nothing accepted is lost: the ledger
 * balances at the end. The program prints and checks how far the resident memory grew.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "test/stress/stress.h"
#include "tickwheel.h"

enum { PRODUCERS_MOST = 256, WINDOW = 4096, MAX_TIMERS = 200000, LANE_ENTRIES = 16384 };

/* The workers, as many as the pool may grow to; the tick thread; the main one. */
enum { WORKERS_MOST = 8, OTHER_THREADS = WORKERS_MOST + 2 };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

struct producer {
	uint64_t seed;
	tw_timer window[WINDOW];
	uint64_t scheduled, cancelled, refused;
	pthread_t thread;
};

static tw_service *service;
static atomic_bool stop;
static atomic_ullong ran, released;

static long resident_kib(void)
{
	long unused, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld %ld", &unused, &pages) != 2)
		violation("no /proc/self/statm", 0);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run(void *arg)
{
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static void release(void *arg, enum tw_fate fate)
{
	atomic_fetch_add_explicit(&released, 1, memory_order_relaxed);
}

static void cancel_window(struct producer *p)
{
	for (int i = 0; i < WINDOW; i++) {
		if (p->window[i].id && tw_cancel(service, p->window[i]) == TW_CANCELLED)
			p->cancelled++;
		p->window[i].id = 0;
	}
}

/*
 * Refused: after the producer has cancelled all its timers there must be room again. Other
 * producers may take the slots that it gave back, and the tick thread may be about to drain. So it
 * may have to try again, within a bound.
 */
static void be_refused(struct producer *p, int answer)
{
	if (answer != -EAGAIN)
		violation("a schedule answers", answer);
	p->refused++;
	cancel_window(p);
	for (int tries = 0;; tries++) {
		if (tw_schedule(service, TW_SECOND, run, NULL, &p->window[0]) == 0)
			break;
		if (tries == 5000)
			violation("refused for ever, with nothing of its own pending", tries);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	p->scheduled++;
}

/* Now and then many with extension records. */
static int schedule_some(struct producer *p, size_t i)
{
	size_t n = random_percent(&p->seed, 5) ? 1 + random_below(&p->seed, 64) : 0;
	uint64_t delay_ns = random_below(&p->seed, 2 * TW_SECOND);
	if (n == 0) {
		int answer = tw_schedule(service, delay_ns, run, NULL, &p->window[i % WINDOW]);
		p->scheduled += answer == 0;
		return answer;
	}
	int answer = 0;
	for (size_t k = 0; k < n && answer == 0; k++) {
		struct tw_task task = {.size = sizeof(task),
				       .fn = run,
				       .when_ns = delay_ns,
				       .release = k % 4 ? NULL : release};
		answer = tw_schedule_task(service, &task, NULL);
		p->scheduled += answer == 0;
	}
	return answer;
}

static void *produce(void *arg)
{
	struct producer *p = arg;
	for (size_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		tw_timer *old = &p->window[i % WINDOW];
		if (old->id && random_percent(&p->seed, 50))
			p->cancelled += tw_cancel(service, *old) == TW_CANCELLED;
		old->id = 0;
		int answer = schedule_some(p, i);
		if (answer != 0)
			be_refused(p, answer);
	}
	return NULL;
}

/*
 * Words, records, locations and extension records of the slots there may be; full lanes; chunks for
 * what is live, dead and on its way; workers.
 */
static long bound_kib(unsigned producers)
{
	long slots = MAX_TIMERS + (long)(producers + OTHER_THREADS) * 256,
	     lane = LANE_ENTRIES + 2 * 255;
	long per_slot = 8 + 24 + 24 + 128, chunks = 3L * slots * 8 * 2;
	return (slots * per_slot + chunks + (long)producers * lane * 16) / 1024 + 32 * 1024;
}

static void check_now(unsigned producers, long base_kib, long *peak_kib)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	if (tw_service_stats(service, &stats) != 0)
		violation("no stats", 0);
	if (stats.pending > MAX_TIMERS + (producers + OTHER_THREADS) * 256)
		violation("pending timers", (long long)stats.pending);
	long grown = resident_kib() - base_kib;
	if (grown > *peak_kib)
		*peak_kib = grown;
	if (grown > bound_kib(producers) && !SANITIZED) /* whose shadows are resident too */
		violation("KiB resident", grown);
}

static void check_ledger(struct producer *producers, unsigned n)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[256] = "";
	uint64_t scheduled = 0, cancelled = 0, refused = 0;
	for (unsigned i = 0; i < n; i++) {
		scheduled += producers[i].scheduled;
		cancelled += producers[i].cancelled;
		refused += producers[i].refused;
	}
	tw_service_stats(service, &stats);
	if (stats.scheduled != scheduled || stats.cancelled != cancelled || stats.fired != ran ||
	    stats.pending != 0 ||
	    stats.scheduled != stats.fired + stats.cancelled + stats.dropped) {
		tw_service_stats_print(&stats, stderr);
		violation("the ledger does not balance", (long long)scheduled);
	}
	if (stats.rejected < refused)
		violation("refusals counted", (long long)stats.rejected);
	if (tw_service_validate(service, why, sizeof(why)) != 0)
		violation(why, 0);
	printf("ok: %" PRIu64 " timers, %" PRIu64 " cancelled, %llu ran, %" PRIu64
	       " times refused\n",
	       scheduled, cancelled, atomic_load(&ran), refused);
}

int main(int argc, char **argv)
{
	uint64_t seed = stress_begin(argc, argv);
	long cores = sysconf(_SC_NPROCESSORS_ONLN), base_kib, peak_kib = 0;
	unsigned n = cores * 4 < PRODUCERS_MOST ? (unsigned)cores * 4 : PRODUCERS_MOST;
	printf("%u producers\n", n);
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.max_timers = MAX_TIMERS,
					.lane_entries = LANE_ENTRIES,
					.workers = 2,
					.max_workers = WORKERS_MOST};
	struct producer *producers = calloc(n, sizeof(*producers));
	if (!producers || tw_service_create(&service, &cfg) != 0)
		violation("no service", 0);
	base_kib = resident_kib();
	for (unsigned i = 0; i < n; i++) {
		producers[i].seed = random_next(&seed);
		if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
			violation("no thread", i);
	}
	for (unsigned looks = 1; stress_goes_on(); looks++) {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		check_now(n, base_kib, &peak_kib);
		if (looks % 20 == 0) {
			printf("  ... %ld KiB resident at most, %ld allowed\n", peak_kib,
			       bound_kib(n));
			fflush(stdout);
		}
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(producers[i].thread, NULL);
	if (tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER) != 0)
		violation("a close", 0);
	check_ledger(producers, n);
	printf("resident memory grew by %ld KiB at most; %ld were allowed\n", peak_kib,
	       bound_kib(n));
	tw_service_destroy(service);
	free(producers);
	return 0;
}
