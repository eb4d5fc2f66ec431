/*
 * ledger SECONDS [SEED]: the ledger stress.
 *
 * Round after round threads that come and go load a service with a random configuration: they
 * schedule, cancel, wait, move and look at their own and each other's timers, whose callbacks do
 * the same, and use handles of nobody, until the service is closed at a random moment in a random
 * mode. Then the ledger checks each timer by the rules of stress/record.h.
 *
 * Not good at: finding out how fast anything is.
 */
#include <pthread.h>
#include "test/stress/ledger.h"

enum { PRODUCERS_MOST = 6, RECORDS_EACH = 30000 /* a producer's share */ };

struct producer {
	struct record *records;
	size_t used;
	uint64_t seed;
	unsigned operations; /* until the thread ends and is replaced */
	pthread_t thread;
	atomic_bool ended;
};

static struct producer producers[PRODUCERS_MOST];
static unsigned producer_count;

static int visit_some(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg, uint64_t remaining_ns)
{
	if (fn != fire)
		violation_by(NULL, "tw_service_foreach shows a function that is nobody's");
	return --*(int *)arg == 0;
}

static void look_on(uint64_t *seed)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	int most = 1 + (int)random_below(seed, 500);
	if (random_percent(seed, 50))
		tw_service_stats(shared.service, &stats);
	else
		tw_service_foreach(shared.service, visit_some, &most);
}

static void operate(struct producer *p)
{
	unsigned dice = (unsigned)random_below(&p->seed, 1000);
	if (dice < 500 && p->used < RECORDS_EACH) {
		schedule(&p->records[p->used++], &p->seed);
	} else if (dice < 520) {
		meddle_with_nobody(&p->seed);
	} else if (dice < 970) {
		struct record *r = somebody(&p->seed);
		if (r)
			meddle(r, &p->seed, random_percent(&p->seed, 20));
	} else if (dice < 971) {
		look_on(&p->seed);
	} else if (dice < 991) {
		meddle_with_group(&p->seed, true);
	} else if (dice < 998) {
		stress_sleep(random_below(&p->seed, 1000000));
	} else {
		/* long enough for the service to go to sleep */
		stress_sleep(random_below(&p->seed, 10000000));
	}
	atomic_fetch_add_explicit(&round_now.operations, 1, memory_order_relaxed);
}

static void *produce(void *arg)
{
	struct producer *p = arg;
	for (unsigned i = 0; i < p->operations && !atomic_load(&shared.stop); i++)
		operate(p);
	atomic_store(&p->ended, true);
	return NULL;
}

static void producer_start(struct producer *p)
{
	p->operations =
	    200 + (unsigned)random_below(&p->seed, random_percent(&p->seed, 20) ? 2000 : 50000);
	atomic_store(&p->ended, false);
	if (pthread_create(&p->thread, NULL, produce, p) != 0)
		violation_by(NULL, "no thread for a producer");
}

static void replace_ended_producers(void)
{
	for (unsigned i = 0; i < producer_count; i++) {
		struct producer *p = &producers[i];
		if (!atomic_load(&p->ended))
			continue;
		pthread_join(p->thread, NULL);
		producer_start(p);
	}
}

static void stop_producers(void)
{
	atomic_store(&shared.stop, true);
	for (unsigned i = 0; i < producer_count; i++)
		pthread_join(producers[i].thread, NULL);
}

struct make {
	struct drawn drawn;
	struct foreign other;
	bool has_other;
};

static struct tw_service_config choose(uint64_t *seed)
{
	static const uint64_t ticks_ns[] = {0, 0, 50000, 333333, 1000000, 10000000};
	static const uint32_t buckets[] = {0, 64, 64, 256, 4096};
	return (struct tw_service_config){
	    .tick_ns = ticks_ns[random_below(seed, 6)],
	    .buckets = buckets[random_below(seed, 5)],
	    .max_timers = random_percent(seed, 25) ? 50 + (uint32_t)random_below(seed, 5000) : 0,
	    .lane_entries = random_percent(seed, 25) ? 1024 : 0};
}

static void start_round(struct make *make, uint64_t *seed)
{
	atomic_store(&round_now.closing, false);
	atomic_store(&round_now.resets, 0);
	atomic_store(&round_now.rejected, 0);
	atomic_store(&round_now.overruns_told, 0);
	make->has_other = random_percent(seed, 50);
	if (make->has_other)
		foreign_start(&make->other, 2, seed);
	shared.other = make->has_other ? &make->other.base : NULL;
	shared.service = drawn_open(&make->drawn, choose(seed), seed);
	shared.inline_callbacks = make->drawn.is_inline;
	shared.delay_most_ns = (random_percent(seed, 50) ? 20 : 200) * TW_MILLISECOND;
	memset(shared.shared_records, 0, SHARED_RECORDS * sizeof(struct record));
	atomic_store(&shared.shared_used, 0);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		atomic_store(&table[i], NULL);
	groups_begin(shared.service);
	atomic_store(&shared.stop, false);
	producer_count = 2 + (unsigned)random_below(seed, PRODUCERS_MOST - 1);
	for (unsigned i = 0; i < producer_count; i++) {
		struct producer *p = &producers[i];
		memset(p->records, 0, RECORDS_EACH * sizeof(struct record));
		p->used = 0;
		p->seed = random_next(seed);
		producer_start(p);
	}
}

static void close_somehow(struct make *make, uint64_t *seed)
{
	enum tw_close_mode mode = (enum tw_close_mode)random_below(seed, 3);
	uint64_t timeout_ns = TW_FOREVER;
	if (mode == TW_CLOSE_DRAIN || random_percent(seed, 30))
		timeout_ns = random_below(seed, 100 * TW_MILLISECOND);
	atomic_store(&round_now.closing, true);
	drawn_close(&make->drawn, mode, timeout_ns);
}

/* No callback runs, although producers may still schedule. */
static void expect_quiet(struct record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (atomic_load(&records[i].inside) != 0)
			violation_by(&records[i], "a callback runs after close has ended");
}

static void check_ledger(const struct account *sum)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(shared.service, &stats);
	if (stats.scheduled != sum->scheduled ||
	    stats.cancelled + stats.fired + stats.dropped != sum->scheduled ||
	    stats.fired < sum->fired || stats.fired > sum->fired + sum->either ||
	    stats.dropped < sum->dropped || stats.dropped > sum->dropped + sum->unrun ||
	    stats.pending != 0 || stats.runs != sum->runs ||
	    stats.rejected != atomic_load(&round_now.rejected) ||
	    stats.resets != atomic_load(&round_now.resets) ||
	    stats.overruns < atomic_load(&round_now.overruns_told)) {
		tw_service_dump(shared.service, stderr);
		violation_by(NULL,
			     "the ledger does not balance: scheduled %" PRIu64 ", fired %" PRIu64
			     " to %" PRIu64 ", cancelled %" PRIu64 ", dropped %" PRIu64
			     ", runs %" PRIu64 ", rejected %llu, resets %llu"
			     ", overruns %llu",
			     sum->scheduled, sum->fired, sum->fired + sum->either, sum->cancelled,
			     sum->dropped, sum->runs, atomic_load(&round_now.rejected),
			     atomic_load(&round_now.resets), atomic_load(&round_now.overruns_told));
	}
}

static size_t shared_used(void)
{
	size_t used = atomic_load(&shared.shared_used);
	return used < SHARED_RECORDS ? used : SHARED_RECORDS;
}

static void account_all(struct account *sum)
{
	for (unsigned i = 0; i < producer_count; i++)
		for (size_t j = 0; j < producers[i].used; j++)
			account_record(sum, &producers[i].records[j]);
	for (size_t i = 0; i < shared_used(); i++)
		account_record(sum, &shared.shared_records[i]);
}

static struct account total;

static void round_of(uint64_t *seed_of_all)
{
	uint64_t seed = random_next(seed_of_all);
	struct make make;
	start_round(&make, &seed);
	uint64_t span_ns = random_below(&seed, 400 * TW_MILLISECOND);
	for (uint64_t passed_ns = 0; passed_ns < span_ns; passed_ns += 2 * TW_MILLISECOND) {
		stress_sleep(2 * TW_MILLISECOND);
		replace_ended_producers();
	}
	bool producers_first = random_percent(&seed, 30);
	if (producers_first)
		stop_producers();
	close_somehow(&make, &seed);
	expect_quiet(shared.shared_records, shared_used());
	for (unsigned i = 0; i < producer_count; i++)
		expect_quiet(producers[i].records, RECORDS_EACH);
	if (!producers_first)
		stop_producers();
	struct account sum = {0};
	account_all(&sum);
	check_ledger(&sum);
	groups_end();
	drawn_end(&make.drawn);
	if (make.has_other)
		foreign_stop(&make.other);
	total.scheduled += sum.scheduled;
	total.cancelled += sum.cancelled;
	total.dropped += sum.dropped;
	total.runs += sum.runs;
}

static void report(const char *word)
{
	printf("%s %lu rounds, %llu operations: %" PRIu64 " timers, %" PRIu64 " runs, %" PRIu64
	       " cancelled, %" PRIu64 " dropped, %" PRIu64 " completions of groups\n",
	       word, stress_rounds, round_now.operations, total.scheduled, total.runs,
	       total.cancelled, total.dropped, groups.completions);
}

static void abort_if_run(void *arg)
{
	violation("a stranger's timer runs", 0);
}

static struct record *records_of(size_t count)
{
	struct record *records = calloc(count, sizeof(*records));
	if (!records)
		abort();
	return records;
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < PRODUCERS_MOST; i++)
		producers[i].records = records_of(RECORDS_EACH);
	shared.shared_records = records_of(SHARED_RECORDS);
	groups.lives = calloc(LIVES, sizeof(struct life));
	if (!groups.lives)
		abort();
	tw_service *stranger = open_service((struct tw_service_config){0});
	for (int i = 0; i < STRANGERS; i++)
		wanted("a stranger",
		       tw_schedule(stranger, 3600 * TW_SECOND, abort_if_run, NULL,
				   &shared.strangers[i]),
		       0);
	stress_play(argc, argv, round_of, report);
	wanted("the strangers' service", tw_service_destroy(stranger), 0);
	return 0;
}
