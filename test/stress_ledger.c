/*
 * stress_ledger SECONDS [SEED]: the ledger stress.
 *
 * Round after round threads that come and go load a service with a random configuration: they
 * schedule, cancel, wait, move and look at their own and each other's timers, whose callbacks do
 * the same, until the service is closed at a random moment in a random mode. Then each timer is
 * accounted for, one by one. The rules stand in stress/record.h.
 *
 * A seed repeats what is tried, not how the threads interleave. Not good at: finding out how fast
 * anything is.
 */
#include <pthread.h>
#include <time.h>

#include "test/stress/record.h"

enum {
	PRODUCERS_MOST = 6,
	RECORDS_EACH = 30000,   /* a producer's share */
	SHARED_RECORDS = 30000, /* for timers that callbacks schedule */
	TABLE_SIZE = 2048,
	GROUPS = 8
};

struct producer {
	struct record *records;
	size_t used;
	uint64_t seed;
	unsigned operations; /* until the thread ends and is replaced */
	pthread_t thread;
	atomic_bool ended;
};

/* What all threads of a round share. */
static struct {
	tw_service *service;
	bool inline_callbacks; /* a slow one would hold up the driver */
	tw_executor *other;    /* for timers to name; or NULL */
	uint64_t delay_most_ns;
	struct producer producers[PRODUCERS_MOST];
	unsigned producer_count;
	struct record *shared_records;
	atomic_size_t shared_used;
	_Atomic(struct record *) table[TABLE_SIZE]; /* timers for everybody to meddle with */
	_Atomic uint64_t groups[GROUPS];            /* their handles; 0 at first */
	atomic_bool stop;
} shared;

static void pause_ns(uint64_t ns)
{
	const struct timespec span = {.tv_nsec = (long)ns};
	nanosleep(&span, NULL);
}

/* ------------------------------------------------------------ scheduling */

static void fire(void *arg);

static uint64_t random_delay(uint64_t *seed)
{
	if (random_percent(seed, 3))
		return random_below(seed, 100 * 3600 * TW_SECOND);
	if (random_percent(seed, 10))
		return 0;
	if (random_percent(seed, 50))
		return random_below(seed, shared.delay_most_ns / 16 + 1);
	return random_below(seed, shared.delay_most_ns);
}

/* Whatever a task may have beside its instant. None of it may make a run come earlier. */
static void add_options(struct tw_task *task, struct record *r, uint64_t *seed)
{
	if (random_percent(seed, 30))
		task->executor = r->named = shared.other;
	if (random_percent(seed, 20))
		task->slack_ns = random_below(seed, shared.delay_most_ns / 4);
	if (random_percent(seed, 20))
		task->jitter_ns = random_below(seed, shared.delay_most_ns / 4);
	if (random_percent(seed, 30))
		task->max_lateness_ns = 1 + random_below(seed, 5 * TW_MILLISECOND);
	r->late_drop = task->max_lateness_ns && random_percent(seed, 50);
	if (r->late_drop)
		task->late = TW_LATE_DROP;
}

static int schedule_series(struct record *r, uint64_t delay_ns, bool absolute, uint64_t *seed)
{
	struct tw_period period = {
	    .size = sizeof(period),
	    .first_ns = absolute ? 0 : delay_ns,
	    .period_ns = r->period_ns,
	    .mode = r->kind == FIXED_RATE ? TW_FIXED_RATE : TW_FIXED_DELAY,
	    .count = r->runs_wanted,
	    .missed = (enum tw_missed_policy)random_below(seed, 3),
	};
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = fire,
	    .arg = r,
	    .when_ns = absolute ? atomic_load(&r->floor_ns) : 0,
	    .flags = absolute ? TW_TASK_AT : 0,
	    .period = &period,
	    .release = record_released,
	    .group = r->group,
	};
	if (random_percent(seed, 50))
		add_options(&task, r, seed);
	return tw_schedule_task(r->service, &task, &r->timer);
}

static int schedule_once(struct record *r, uint64_t delay_ns, bool absolute, uint64_t *seed)
{
	struct tw_task task = {
	    .size = sizeof(task),
	    .fn = fire,
	    .arg = r,
	    .when_ns = absolute ? atomic_load(&r->floor_ns) : delay_ns,
	    .flags = absolute ? TW_TASK_AT : 0,
	    .release = record_released,
	    .group = r->group,
	};
	if (r->has_release && random_percent(seed, 50))
		add_options(&task, r, seed);
	if (r->has_release)
		return tw_schedule_task(r->service, &task, &r->timer);
	if (absolute)
		return tw_schedule_at(r->service, task.when_ns, fire, r, &r->timer);
	return tw_schedule(r->service, delay_ns, fire, r, &r->timer);
}

static void schedule(struct record *r, uint64_t *seed)
{
	enum record_kind kind = ONE_SHOT;
	if (random_percent(seed, 25))
		kind = (enum record_kind)(1 + random_below(seed, 3));
	record_prepare(r, shared.service, kind, kind != ONE_SHOT || random_percent(seed, 40));
	r->seed = random_next(seed);
	if (r->has_release && random_percent(seed, 50))
		r->group.id = atomic_load(&shared.groups[random_below(seed, GROUPS)]);
	if (kind != ONE_SHOT)
		r->runs_wanted = 1 + (uint32_t)random_below(seed, 6);
	r->period_ns = 1 + random_below(seed, shared.delay_most_ns / 8);
	uint64_t delay_ns = random_delay(seed);
	bool absolute = random_percent(seed, 25);
	atomic_store(&r->floor_ns, tw_service_now(r->service) + delay_ns);
	bool series = kind == FIXED_RATE || kind == FIXED_DELAY;
	int answer = series ? schedule_series(r, delay_ns, absolute, seed)
			    : schedule_once(r, delay_ns, absolute, seed);
	if (answer == 0) {
		atomic_store(&r->accepted, true);
		atomic_store(&shared.table[random_below(seed, TABLE_SIZE)], r);
		return;
	}
	atomic_fetch_add(&round_now.rejected, 1);
	if (answer != -EAGAIN && (answer != -ENOENT || !r->group.id) &&
	    (answer != -ESHUTDOWN || !(r->group.id || atomic_load(&round_now.closing))))
		violation(r, "scheduling answers %d", answer);
	if (r->timer.id != 0)
		violation(r, "a refused schedule left a handle");
}

/* ------------------------------------------------------------ meddling */

static struct record *somebody(uint64_t *seed)
{
	return atomic_load(&shared.table[random_below(seed, TABLE_SIZE)]);
}

/*
 * Anything that may be done to a timer by someone else than its own callback. may_wait: without
 * bound.
 */
static void meddle(struct record *r, uint64_t *seed, bool may_wait)
{
	uint64_t left_ns;
	switch (random_below(seed, 10)) {
	case 0:
	case 1:
	case 2:
		record_cancel(r);
		break;
	case 3:
		record_cancel_wait(r, may_wait ? TW_FOREVER
					       : random_below(seed, 2) * TW_MICROSECOND * 50);
		break;
	case 4:
	case 5:
	case 6:
		record_reset(r, random_delay(seed), false);
		break;
	case 7:
		record_reset(r, random_delay(seed), true);
		break;
	case 8:
		tw_is_pending(r->service, r->timer);
		break;
	default:
		tw_remaining(r->service, r->timer, &left_ns);
		break;
	}
}

/* Cancels a group, and perhaps replaces it. */
static void meddle_with_group(uint64_t *seed, bool may_wait)
{
	_Atomic uint64_t *place = &shared.groups[random_below(seed, GROUPS)];
	tw_group group = {atomic_load(place)}, fresh = {0};
	unsigned dice = (unsigned)random_below(seed, 10);
	int answer = dice < 4 ? tw_group_cancel(shared.service, group)
		     : dice < 6
			 ? tw_group_cancel_wait(shared.service, group, may_wait ? TW_FOREVER : 0)
		     : dice < 8 ? tw_group_close(shared.service, group)
				: tw_group_destroy(shared.service, group);
	if (answer != 0 && answer != -ENOENT &&
	    (may_wait || (answer != TW_RUNNING && answer != TW_SELF)))
		violation(NULL, "a group call answers %d", answer);
	if (dice < 6 && group.id)
		return;
	tw_group_create(&fresh, shared.service);
	tw_group_destroy(shared.service, (tw_group){atomic_exchange(place, fresh.id)});
}

/* ------------------------------------------------------------ callbacks */

static void schedule_from_callback(uint64_t *seed)
{
	size_t place = atomic_fetch_add(&shared.shared_used, 1);
	if (place < SHARED_RECORDS)
		schedule(&shared.shared_records[place], seed);
}

static void cancel_self(struct record *r, bool wait)
{
	int answer = wait ? tw_cancel_wait(r->service, r->timer, TW_FOREVER)
			  : tw_cancel(r->service, r->timer);
	if (answer != (wait ? TW_SELF : TW_RUNNING))
		violation(r, "a cancel from its own callback answers %d", answer);
	note_running(r);
	answer = tw_reset(r->service, r->timer, 0);
	if (answer != -ECANCELED && answer != -ESHUTDOWN)
		violation(r, "a re-arm after a cancel answers %d", answer);
}

static void fire(void *arg)
{
	struct record *r = arg;
	record_enter(r);
	uint64_t seed = r->seed + r->runs;
	unsigned dice = (unsigned)random_below(&seed, 100);
	if (dice < 2)
		pause_ns(random_below(&seed, shared.inline_callbacks ? 200000 : 3000000));
	else if (dice < 5)
		cancel_self(r, dice == 2);
	else if (dice < 15)
		schedule_from_callback(&seed);
	else if (dice < 25) {
		struct record *other = somebody(&seed);
		if (other && other != r)
			meddle(other, &seed, false);
	}
	if (r->kind == RE_ARMING && r->runs < r->runs_wanted && !(dice >= 2 && dice < 5))
		record_re_arm(r, random_below(&seed, shared.delay_most_ns / 4 + 1));
	record_leave(r);
}

/* ------------------------------------------------------------ producers */

static int visit_some(void *arg, tw_timer timer, tw_fn *fn, void *timer_arg, uint64_t remaining_ns)
{
	(void)timer, (void)timer_arg, (void)remaining_ns;
	if (fn != fire)
		violation(NULL, "tw_service_foreach shows a function that is nobody's");
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
	} else if (dice < 990) {
		struct record *r = somebody(&p->seed);
		if (r)
			meddle(r, &p->seed, random_percent(&p->seed, 20));
	} else if (dice < 991) {
		look_on(&p->seed);
	} else if (dice < 992) {
		meddle_with_group(&p->seed, random_percent(&p->seed, 20));
	} else if (dice < 998) {
		pause_ns(random_below(&p->seed, 1000000));
	} else {
		/* long enough for the service to go to sleep */
		pause_ns(random_below(&p->seed, 10000000));
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
		violation(NULL, "no thread for a producer");
}

static void replace_ended_producers(void)
{
	for (unsigned i = 0; i < shared.producer_count; i++) {
		struct producer *p = &shared.producers[i];
		if (!atomic_load(&p->ended))
			continue;
		pthread_join(p->thread, NULL);
		producer_start(p);
	}
}

static void stop_producers(void)
{
	atomic_store(&shared.stop, true);
	for (unsigned i = 0; i < shared.producer_count; i++)
		pthread_join(shared.producers[i].thread, NULL);
}

/* ------------------------------------------------------------ one round */

struct make {
	struct tw_service_config cfg;
	struct foreign foreign, other;
	bool has_foreign, has_other;
	pthread_t driver;
};

static void *drive(void *arg)
{
	uint64_t seed = 1;
	int answer = 0;
	while (answer >= 0 || answer == -EBUSY) {
		answer = tw_service_advance(
		    arg, random_percent(&seed, 50) ? TW_NO_LIMIT : 1 + random_below(&seed, 20));
		pause_ns(random_below(&seed, 1000000));
	}
	return NULL;
}

static void choose_make(struct make *make, uint64_t *seed)
{
	static const uint64_t ticks_ns[] = {0, 0, 50000, 333333, 1000000, 10000000};
	static const uint32_t buckets[] = {0, 64, 64, 256, 4096};
	*make = (struct make){.cfg.size = sizeof(struct tw_service_config)};
	struct tw_service_config *cfg = &make->cfg;
	cfg->tick_ns = ticks_ns[random_below(seed, 6)];
	cfg->buckets = buckets[random_below(seed, 5)];
	cfg->max_timers = random_percent(seed, 25) ? 50 + (uint32_t)random_below(seed, 5000) : 0;
	cfg->lane_entries = random_percent(seed, 25) ? 1024 : 0;
	cfg->drive = random_percent(seed, 20) ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	cfg->on_refused = (enum tw_on_refused)random_below(seed, 3);
	unsigned executor = (unsigned)random_below(seed, 4);
	shared.inline_callbacks = executor == 0 || cfg->on_refused == TW_REFUSED_INLINE;
	if (executor == 0) {
		cfg->executor = tw_executor_inline();
	} else if (executor == 1) {
		make->has_foreign = true;
		foreign_start(&make->foreign, random_next(seed),
			      1 + (unsigned)random_below(seed, FOREIGN_THREADS_MOST));
		make->foreign.refuse_percent = random_percent(seed, 50) ? 20 : 0;
		make->foreign.give_back_percent = random_percent(seed, 50) ? 5 : 0;
		cfg->executor = &make->foreign.base;
	} else {
		cfg->workers = 1 + (uint32_t)random_below(seed, 4);
	}
	round_now.may_run_inline = cfg->on_refused == TW_REFUSED_INLINE;
	make->has_other = random_percent(seed, 50);
	if (make->has_other) {
		foreign_start(&make->other, random_next(seed), 1 + (unsigned)random_below(seed, 2));
		make->other.refuse_percent = random_percent(seed, 50) ? 20 : 0;
		make->other.give_back_percent = random_percent(seed, 50) ? 5 : 0;
	}
	shared.other = make->has_other ? &make->other.base : NULL;
	round_now.may_drop = cfg->on_refused == TW_REFUSED_DROP &&
			     (make->has_other || cfg->executor != tw_executor_inline());
}

static void start_round(struct make *make, uint64_t *seed)
{
	atomic_store(&round_now.closing, false);
	atomic_store(&round_now.resets, 0);
	atomic_store(&round_now.rejected, 0);
	atomic_store(&round_now.overruns_told, 0);
	choose_make(make, seed);
	int answer = tw_service_create(&shared.service, &make->cfg);
	if (answer != 0)
		violation(NULL, "tw_service_create answers %d", answer);
	if (make->cfg.drive == TW_DRIVE_MANUAL &&
	    pthread_create(&make->driver, NULL, drive, shared.service) != 0)
		violation(NULL, "no thread for the driver");
	shared.delay_most_ns = (random_percent(seed, 50) ? 20 : 200) * TW_MILLISECOND;
	memset(shared.shared_records, 0, SHARED_RECORDS * sizeof(struct record));
	atomic_store(&shared.shared_used, 0);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		atomic_store(&shared.table[i], NULL);
	for (size_t i = 0; i < GROUPS; i++)
		atomic_store(&shared.groups[i], 0);
	atomic_store(&shared.stop, false);
	shared.producer_count = 2 + (unsigned)random_below(seed, PRODUCERS_MOST - 1);
	for (unsigned i = 0; i < shared.producer_count; i++) {
		struct producer *p = &shared.producers[i];
		memset(p->records, 0, RECORDS_EACH * sizeof(struct record));
		p->used = 0;
		p->seed = random_next(seed);
		producer_start(p);
	}
}

static void close_service(uint64_t *seed)
{
	enum tw_close_mode mode = (enum tw_close_mode)random_below(seed, 3);
	uint64_t timeout_ns = TW_FOREVER;
	if (mode == TW_CLOSE_DRAIN || random_percent(seed, 30))
		timeout_ns = random_below(seed, 100 * TW_MILLISECOND);
	atomic_store(&round_now.closing, true);
	int answer = tw_service_close(shared.service, mode, timeout_ns);
	/*
	 * A drain gives callbacks a second: less than this process may have to wait for a
	 * processor.
	 */
	if (answer == -ETIMEDOUT)
		answer = tw_service_close(
		    shared.service, mode == TW_CLOSE_DRAIN ? TW_CLOSE_DROP : mode, TW_FOREVER);
	if (answer != 0)
		violation(NULL, "tw_service_close in mode %d answers %d", mode, answer);
}

/* No callback runs, although producers may still schedule. */
static void expect_quiet(struct record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (atomic_load(&records[i].inside) != 0)
			violation(&records[i], "a callback runs after close has ended");
}

static void check_ledger(const struct account *sum)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(shared.service, &stats);
	if (stats.scheduled != sum->scheduled ||
	    stats.cancelled + stats.fired + stats.dropped + stats.late_dropped != sum->scheduled ||
	    stats.late_dropped != sum->late_dropped || stats.fired < sum->fired ||
	    stats.fired > sum->fired + sum->either || stats.dropped != sum->dropped ||
	    stats.pending != 0 || stats.runs != sum->runs ||
	    stats.rejected != atomic_load(&round_now.rejected) ||
	    stats.resets != atomic_load(&round_now.resets) ||
	    stats.overruns < atomic_load(&round_now.overruns_told)) {
		tw_service_stats_print(&stats, stderr);
		violation(NULL,
			  "the ledger does not balance: scheduled %" PRIu64 ", fired %" PRIu64
			  " to %" PRIu64 ", cancelled %" PRIu64 ", dropped %" PRIu64
			  ", runs %" PRIu64 ", rejected %llu, resets %llu"
			  ", overruns %llu",
			  sum->scheduled, sum->fired, sum->fired + sum->either, sum->cancelled,
			  sum->dropped, sum->runs, atomic_load(&round_now.rejected),
			  atomic_load(&round_now.resets), atomic_load(&round_now.overruns_told));
	}
	char why[256] = "";
	if (tw_service_validate(shared.service, why, sizeof(why)) != 0)
		violation(NULL, "tw_service_validate: %s", why);
}

static size_t shared_used(void)
{
	size_t used = atomic_load(&shared.shared_used);
	return used < SHARED_RECORDS ? used : SHARED_RECORDS;
}

static void account_all(struct account *sum)
{
	for (unsigned i = 0; i < shared.producer_count; i++)
		for (size_t j = 0; j < shared.producers[i].used; j++)
			account_record(sum, &shared.producers[i].records[j]);
	for (size_t i = 0; i < shared_used(); i++)
		account_record(sum, &shared.shared_records[i]);
}

static void run_round(uint64_t seed, struct account *total)
{
	struct make make;
	start_round(&make, &seed);
	uint64_t span_ns = random_below(&seed, 400 * TW_MILLISECOND);
	for (uint64_t passed_ns = 0; passed_ns < span_ns; passed_ns += 2 * TW_MILLISECOND) {
		pause_ns(2 * TW_MILLISECOND);
		replace_ended_producers();
	}
	bool producers_first = random_percent(&seed, 30);
	if (producers_first)
		stop_producers();
	close_service(&seed);
	expect_quiet(shared.shared_records, shared_used());
	for (unsigned i = 0; i < shared.producer_count; i++)
		expect_quiet(shared.producers[i].records, RECORDS_EACH);
	if (!producers_first)
		stop_producers();
	if (make.cfg.drive == TW_DRIVE_MANUAL)
		pthread_join(make.driver, NULL);
	struct account sum = {0};
	account_all(&sum);
	check_ledger(&sum);
	if (tw_service_destroy(shared.service) != 0)
		violation(NULL, "tw_service_destroy fails");
	if (make.has_foreign)
		foreign_stop(&make.foreign);
	if (make.has_other)
		foreign_stop(&make.other);
	total->scheduled += sum.scheduled;
	total->cancelled += sum.cancelled;
	total->dropped += sum.dropped;
	total->late_dropped += sum.late_dropped;
	total->runs += sum.runs;
}

static void report(const char *word, uint64_t rounds, const struct account *total)
{
	printf("%s %" PRIu64 " rounds, %llu operations: %" PRIu64 " timers, %" PRIu64
	       " runs, %" PRIu64 " cancelled, %" PRIu64 " dropped, %" PRIu64 " too late\n",
	       word, rounds, atomic_load(&round_now.operations), total->scheduled, total->runs,
	       total->cancelled, total->dropped, total->late_dropped);
	fflush(stdout);
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
	if (argc < 2 || argc > 3 || atof(argv[1]) <= 0) {
		fprintf(stderr, "usage: stress_ledger SECONDS [SEED]\n");
		return 2;
	}
	uint64_t start_ns = tw_clock_now(tw_clock_monotonic());
	round_now.seed = argc == 3 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) ^ start_ns;
	printf("stress_ledger: seed %" PRIu64 "\n", round_now.seed);
	for (unsigned i = 0; i < PRODUCERS_MOST; i++)
		shared.producers[i].records = records_of(RECORDS_EACH);
	shared.shared_records = records_of(SHARED_RECORDS);

	uint64_t seed = round_now.seed, span_ns = (uint64_t)(atof(argv[1]) * 1e9), passed_ns = 0,
		 reported_ns = 0;
	struct account total = {0};
	for (; passed_ns < span_ns; passed_ns = tw_clock_now(tw_clock_monotonic()) - start_ns) {
		round_now.number++;
		run_round(random_next(&seed), &total);
		if (passed_ns - reported_ns >= TW_SECOND) {
			report("  ...", round_now.number, &total);
			reported_ns = passed_ns;
		}
	}
	report("ok:", round_now.number, &total);
	for (unsigned i = 0; i < PRODUCERS_MOST; i++)
		free(shared.producers[i].records);
	free(shared.shared_records);
	return 0;
}
