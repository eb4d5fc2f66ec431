/*
 * storm SECONDS [SEED]: storms, and a trickle between them while memory goes back.
 *
 * Each thread arms a great many timers, cancels most, then goes on a little at a time: slow enough
 * for the tick thread to take this for quiet, and to give back what the storm has left (after a
 * second), while the thread takes slots, extension records and segments and returns them. A record
 * that goes while its slot is in use would call a wrong function, or none: each run says whose it
 * is.
 */
#include "test/stress/stress.h"

enum {
	STORM = STRESS_SANITIZED ? 20000 : 100000, /* all is slower there */
	THREADS = 3,
	TRICKLE_MS = 2500,
	KEEP_EVERY = 5000
};

struct owned {
	tw_timer timer;
	struct owned *self; /* what its runs must find */
	atomic_uint runs, releases;
	bool with_release;
};

static struct storm {
	uint64_t seed, scheduled, cancelled;
	struct owned *owned;
} storms[THREADS];

static tw_service *service;
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
	wanted("a schedule", tw_schedule_task(service, &task, &owned->timer), 0);
	storm->scheduled++;
}

static void end_owned(struct storm *storm, struct owned *owned)
{
	if (!owned->timer.id)
		return;
	int answer = tw_cancel_wait(service, owned->timer, TW_FOREVER);
	storm->cancelled += answer == TW_CANCELLED;
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
	for (int ms = 0; ms < TRICKLE_MS && !atomic_load(&stress_stop); ms++) {
		for (int k = 0; k < 4; k++) {
			size_t i = random_below(&storm->seed, STORM);
			end_owned(storm, &storm->owned[i]);
			arm(storm, i, random_below(&storm->seed, 50 * TW_MILLISECOND));
		}
		stress_sleep(TW_MILLISECOND);
	}
}

static void weather(unsigned number, uint64_t seed)
{
	struct storm *storm = &storms[number];
	*storm = (struct storm){.seed = seed, .owned = calloc(STORM, sizeof(struct owned))};
	while (!atomic_load(&stress_stop)) {
		for (size_t i = 0; i < STORM; i++) {
			end_owned(storm, &storm->owned[i]);
			arm(storm, i, 20 * TW_SECOND + random_below(&storm->seed, 60 * TW_SECOND));
		}
		for (size_t i = 0; i < STORM; i++)
			if (i % KEEP_EVERY)
				end_owned(storm, &storm->owned[i]);
		trickle(storm);
	}
	for (size_t i = 0; i < STORM; i++)
		end_owned(storm, &storm->owned[i]);
	free(storm->owned);
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

static void round_of(uint64_t *seed)
{
	struct stress_ledger ledger = {0};
	service = open_service((struct tw_service_config){.workers = 2, .max_timers = 1000000});
	start_threads(THREADS, weather, seed);
	watch_threads(look);
	for (int i = 0; i < THREADS; i++) {
		ledger.scheduled += storms[i].scheduled;
		ledger.cancelled += storms[i].cancelled;
	}
	close_service(service);
	ledger.fired = ledger.runs = ran;
	wanted("runs", (long long)ran, (long long)(ledger.scheduled - ledger.cancelled));
	end_service(service, ledger);
}

static void report(const char *word)
{
	printf("%s %llu runs, %" PRIu64 " KiB at most, %" PRIu64 " KiB since then\n", word, ran,
	       most_bytes / 1024, least_bytes / 1024);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
