/*
 * overload SECONDS [SEED]: four times as many producers as processors, each as fast as it
 * can, with short lanes and few timers.
 *
 * The bounds must hold: no more timers than max_timers and the magazines hold, and no more memory
 * than lanes and slots may take. Refusals must be true: while a producer is refused, its lane is
 * full or the timers are used up. A producer that has cancelled all its timers is accepted
 * immediately, or after the next poll of the tick thread. Nothing accepted is lost: the ledger
 * balances at the end. The program prints and checks how far the resident memory grew.
 */
#include "test/stress/stress.h"

enum { PRODUCERS_MOST = 256, WINDOW = 4096, MAX_TIMERS = 200000, LANE_ENTRIES = 16384 };

/* The workers, as many as the pool may grow to; the tick thread; the main one. */
enum { WORKERS_MOST = 8, OTHER_THREADS = WORKERS_MOST + 2 };

struct producer {
	uint64_t seed;
	tw_timer window[WINDOW];
	uint64_t scheduled, cancelled, refused;
};

static tw_service *service;
static struct producer *producers;
static unsigned count;
static long base_kib, peak_kib;
static atomic_ullong ran, released;

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
		stress_sleep(TW_MILLISECOND);
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

static void produce(unsigned number, uint64_t seed)
{
	struct producer *p = &producers[number];
	p->seed = seed;
	for (size_t i = 0; !atomic_load_explicit(&stress_stop, memory_order_relaxed); i++) {
		tw_timer *old = &p->window[i % WINDOW];
		if (old->id && random_percent(&p->seed, 50))
			p->cancelled += tw_cancel(service, *old) == TW_CANCELLED;
		old->id = 0;
		int answer = schedule_some(p, i);
		if (answer != 0)
			be_refused(p, answer);
	}
}

/*
 * Words, records, locations and extension records of the slots there may be; full lanes; chunks for
 * what is live, dead and on its way; workers.
 */
static long bound_kib(void)
{
	long slots = MAX_TIMERS + (long)(count + OTHER_THREADS) * 256,
	     lane = LANE_ENTRIES + 2 * 255;
	long per_slot = 8 + 24 + 24 + 128, chunks = 3L * slots * 8 * 2;
	return (slots * per_slot + chunks + (long)count * lane * 16) / 1024 + 32 * 1024;
}

static void check_now(void)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	wanted("stats", tw_service_stats(service, &stats), 0);
	if (stats.pending > MAX_TIMERS + (count + OTHER_THREADS) * 256)
		violation("pending timers", (long long)stats.pending);
	long grown = resident_kib() - base_kib;
	peak_kib = grown > peak_kib ? grown : peak_kib;
	if (grown > bound_kib() && !STRESS_SANITIZED) /* whose shadows are resident too */
		violation("KiB resident", grown);
}

static void check_ledger(void)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	uint64_t refused = 0;
	struct stress_ledger ledger = {.fired = ran, .runs = ran};
	for (unsigned i = 0; i < count; i++) {
		ledger.scheduled += producers[i].scheduled;
		ledger.cancelled += producers[i].cancelled;
		refused += producers[i].refused;
	}
	tw_service_stats(service, &stats);
	if (stats.rejected < refused)
		violation("refusals counted", (long long)stats.rejected);
	end_service(service, ledger);
}

static void round_of(uint64_t *seed)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	count = cores * 4 < PRODUCERS_MOST ? (unsigned)cores * 4 : PRODUCERS_MOST;
	producers = calloc(count, sizeof(*producers));
	service = open_service((struct tw_service_config){.max_timers = MAX_TIMERS,
							  .lane_entries = LANE_ENTRIES,
							  .workers = 2,
							  .max_workers = WORKERS_MOST});
	base_kib = resident_kib();
	start_threads(count, produce, seed);
	watch_threads(check_now);
	close_service(service);
	check_ledger();
	free(producers);
}

static void report(const char *word)
{
	printf("%s %u producers, %llu runs; %ld KiB resident at most, %ld allowed\n", word, count,
	       ran, peak_kib, bound_kib());
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
