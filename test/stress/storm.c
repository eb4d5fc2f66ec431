/*
 * stress_storm SECONDS [SEED]: storms, and a trickle between them while memory goes back.
 *
 * Each thread arms a great many timers, cancels most, then goes on a little at a time: slow enough
 * for the tick thread to take this for quiet, and to give back what the storm has left (after a
 * second), while the thread takes slots, extension records and segments and returns them. A record
 * that goes while its slot is in use would call a wrong function, or none: each run says whose it
 * is.
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

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STORM = 20000 }; /* all is slower there */
#else
enum { STORM = 100000 };
#endif

enum { THREADS = 3, TRICKLE_MS = 2500, KEEP_EVERY = 5000 };

struct owned {
	tw_timer timer;
	struct owned *self; /* what its runs must find */
	atomic_uint runs, releases;
	bool with_release;
};

struct storm {
	uint64_t seed;
	struct owned *owned;
	uint64_t scheduled;
	pthread_t thread;
};

static tw_service *service;
static atomic_bool stop;
static atomic_ullong ran;
static uint64_t least_bytes = UINT64_MAX, most_bytes;

static void run(void *arg)
{
	struct owned *owned = arg;
	if (owned->self != owned)
		violation("a run with an argument that is nobody's", (long long)(uintptr_t)arg);
	atomic_fetch_add(&owned->runs, 1);
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static void release(void *arg, enum tw_fate fate)
{
	struct owned *owned = arg;
	if (owned->self != owned)
		violation("a release with an argument that is nobody's", (long long)(uintptr_t)arg);
	atomic_fetch_add(&owned->releases, 1);
}

static void arm(struct storm *storm, size_t i, uint64_t delay_ns)
{
	struct owned *owned = &storm->owned[i];
	owned->self = owned;
	owned->with_release = random_percent(&storm->seed, 30);
	atomic_store(&owned->runs, 0);
	atomic_store(&owned->releases, 0);
	struct tw_task task = {.size = sizeof(task),
			       .fn = run,
			       .arg = owned,
			       .when_ns = delay_ns,
			       .release = owned->with_release ? release : NULL};
	int answer = tw_schedule_task(service, &task, &owned->timer);
	if (answer != 0)
		violation("a schedule", answer);
	storm->scheduled++;
}

static void end_owned(struct owned *owned)
{
	if (!owned->timer.id)
		return;
	int answer = tw_cancel_wait(service, owned->timer, TW_FOREVER);
	if (atomic_load(&owned->runs) != (answer != TW_CANCELLED))
		violation("runs of a timer", atomic_load(&owned->runs));
	if (atomic_load(&owned->releases) != owned->with_release)
		violation("releases of a timer", atomic_load(&owned->releases));
	if (tw_cancel(service, owned->timer) != TW_GONE)
		violation("a stale handle", (long long)owned->timer.id);
	owned->timer.id = 0;
}

static void trickle(struct storm *storm)
{
	for (int ms = 0; ms < TRICKLE_MS && !atomic_load(&stop); ms++) {
		for (int k = 0; k < 4; k++) {
			size_t i = random_below(&storm->seed, STORM);
			end_owned(&storm->owned[i]);
			arm(storm, i, random_below(&storm->seed, 50 * TW_MILLISECOND));
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void *weather(void *arg)
{
	struct storm *storm = arg;
	while (!atomic_load(&stop)) {
		for (size_t i = 0; i < STORM; i++) {
			end_owned(&storm->owned[i]);
			arm(storm, i, 20 * TW_SECOND + random_below(&storm->seed, 60 * TW_SECOND));
		}
		for (size_t i = 0; i < STORM; i++)
			if (i % KEEP_EVERY)
				end_owned(&storm->owned[i]);
		trickle(storm);
	}
	for (size_t i = 0; i < STORM; i++)
		end_owned(&storm->owned[i]);
	return NULL;
}

static void look(void)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(service, &stats);
	if (stats.memory_bytes > most_bytes) {
		most_bytes = stats.memory_bytes;
		least_bytes = UINT64_MAX;
	}
	if (stats.memory_bytes < least_bytes)
		least_bytes = stats.memory_bytes;
}

int main(int argc, char **argv)
{
	uint64_t seed = stress_begin(argc, argv), scheduled = 0;
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2, .max_timers = 1000000};
	struct storm storms[THREADS] = {{0}};
	if (tw_service_create(&service, &cfg) != 0)
		violation("no service", 0);
	for (int i = 0; i < THREADS; i++) {
		storms[i].seed = random_next(&seed);
		storms[i].owned = calloc(STORM, sizeof(*storms[i].owned));
		if (!storms[i].owned ||
		    pthread_create(&storms[i].thread, NULL, weather, &storms[i]) != 0)
			violation("no thread", i);
	}
	for (unsigned looks = 1; stress_goes_on(); looks++) {
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		look();
		if (looks % 50)
			continue;
		printf("  ... %llu runs, %" PRIu64 " KiB at most, %" PRIu64 " KiB since then\n",
		       atomic_load(&ran), most_bytes / 1024, least_bytes / 1024);
		fflush(stdout);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(storms[i].thread, NULL);
		scheduled += storms[i].scheduled;
	}
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[256] = "";
	tw_service_stats(service, &stats);
	if (stats.scheduled != scheduled || stats.fired != ran ||
	    stats.fired + stats.cancelled != scheduled)
		violation("the ledger does not balance", (long long)scheduled);
	if (tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER) != 0 ||
	    tw_service_validate(service, why, sizeof(why)) != 0)
		violation(why, 0);
	tw_service_destroy(service);
	for (int i = 0; i < THREADS; i++)
		free(storms[i].owned);
	printf("ok: %" PRIu64 " timers; %" PRIu64 " KiB held at most, %" PRIu64
	       " KiB at least after that\n",
	       scheduled, most_bytes / 1024, least_bytes / 1024);
	return 0;
}
