/*
 * persistent SECONDS [SEED]: persistent timers that several threads arm, move, disarm and
 * cancel beside each other, with and without an extension record.
 *
 * Two kinds of timers. An owned one has one thread, which arms and disarms it and knows from the
 * answers how often it must have run. A shared one is anybody's: threads arm, move, disarm, cancel
 * and make it anew, and its callback does so, too. At times all threads stop: then each shared
 * timer that was disarmed must not run, and each that is armed must run once, or once more if it is
 * armed again in its run.
 */
#include "test/stress/stress.h"

enum { THREADS = 4, OWNED = 64, SHARED = 64, BURST = 20000 };

/* What a run does while the threads stand still. */
enum in_run { DOES_NOTHING, ARMS, ARMS_AND_DISARMS, IN_RUN };

struct subject {
	_Atomic uint64_t timer; /* its handle */
	atomic_uint runs, inside;
	atomic_uint in_run;        /* enum in_run */
	_Atomic uint64_t floor_ns; /* of an owned one: it may not run earlier */
	bool owned, has_release;
	unsigned wanted; /* of an owned one: the runs that its owner knows of */
	uint64_t seed;
};

static tw_service *service;
static struct subject owned[THREADS][OWNED], shared[SHARED];
static pthread_barrier_t barrier;
static atomic_bool ended, quiet;
static atomic_ullong created, cancelled, armed, disarmed, ran, releases, with_release;

static tw_timer handle(struct subject *s)
{
	return (tw_timer){atomic_load(&s->timer)};
}

static void expect(bool holds, const char *what, const struct subject *s, long long answer)
{
	if (!holds)
		violation_of(what, s ? atomic_load(&s->timer) : 0, answer);
}

static void released(void *arg, enum tw_fate fate)
{
	struct subject *s = arg;
	expect(atomic_load(&s->inside) == 0, "a release beside a run", s, 0);
	atomic_fetch_add(&releases, 1);
}

static void run(void *arg);

static void create(struct subject *s)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = run,
			       .arg = s,
			       .when_ns = TW_NEVER,
			       .release = s->has_release ? released : NULL,
			       .flags = TW_TASK_PERSISTENT};
	tw_timer timer;
	int answer = tw_schedule_task(service, &task, &timer);
	expect(answer == 0, "a schedule", s, answer);
	atomic_store(&s->timer, timer.id);
	atomic_fetch_add_explicit(&created, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&with_release, s->has_release, memory_order_relaxed);
}

static uint64_t random_delay(uint64_t *seed)
{
	unsigned dice = (unsigned)random_below(seed, 100);
	if (dice < 10)
		return 0;
	if (dice < 70)
		return random_below(seed, 3 * TW_MILLISECOND);
	return dice < 95 ? random_below(seed, TW_SECOND) : random_below(seed, 9000000 * TW_SECOND);
}

/* By any thread. The timer may have ended. */
static void arm(struct subject *s, uint64_t *seed)
{
	uint64_t delay_ns = random_delay(seed);
	unsigned dice = (unsigned)random_below(seed, 8);
	int answer = dice == 0 ? tw_reset_earlier(service, handle(s), delay_ns)
		     : dice == 1
			 ? tw_reset_at(service, handle(s), tw_service_now(service) + delay_ns)
			 : tw_reset(service, handle(s), delay_ns);
	expect(answer == 0 || answer == -ENOENT || answer == -ECANCELED || answer == -EAGAIN ||
		   (dice == 0 && answer == TW_RESET_KEPT),
	       "an arming", s, answer);
	atomic_fetch_add_explicit(&armed, answer == 0, memory_order_relaxed);
}

static void disarm(struct subject *s)
{
	int answer = tw_disarm(service, handle(s));
	expect(answer == TW_CANCELLED || answer == TW_DISARMED || answer == TW_RUNNING ||
		   answer == TW_GONE,
	       "a disarming", s, answer);
	atomic_fetch_add_explicit(&disarmed, answer == 0, memory_order_relaxed);
}

static void run_in_quiet(struct subject *s)
{
	enum in_run in_run = (enum in_run)atomic_exchange(&s->in_run, DOES_NOTHING);
	if (in_run == DOES_NOTHING)
		return;
	int answer = tw_reset(service, handle(s), TW_MILLISECOND);
	expect(answer == 0, "an arming in a run", s, answer);
	if (in_run == ARMS)
		return;
	answer = tw_disarm(service, handle(s));
	expect(answer == TW_RUNNING, "a disarming in a run", s, answer);
}

static void run(void *arg)
{
	struct subject *s = arg;
	expect(atomic_fetch_add(&s->inside, 1) == 0, "two runs at once", s, 0);
	atomic_fetch_add(&s->runs, 1);
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
	if (s->owned && tw_service_now(service) < atomic_load(&s->floor_ns))
		expect(false, "a run before its time", s, 0);
	if (!s->owned && !atomic_load(&quiet)) {
		uint64_t seed = s->seed += atomic_load(&s->runs);
		unsigned dice = (unsigned)random_below(&seed, 100);
		if (dice < 30)
			arm(s, &seed);
		if (dice < 10)
			disarm(s);
		if (dice >= 98)
			usleep(200);
	}
	if (!s->owned && atomic_load(&quiet))
		run_in_quiet(s);
	atomic_fetch_sub(&s->inside, 1);
}

static void await_runs(struct subject *s)
{
	AWAIT(atomic_load(&s->runs) >= s->wanted && !atomic_load(&s->inside),
	      "a run that does not come");
	expect(atomic_load(&s->runs) == s->wanted, "runs too many", s, atomic_load(&s->runs));
}

static void operate_owned(struct subject *s, uint64_t *seed)
{
	uint64_t delay_ns = random_delay(seed) % TW_SECOND;
	atomic_store(&s->floor_ns, tw_service_now(service) + delay_ns);
	int answer = tw_reset(service, handle(s), delay_ns);
	expect(answer == 0 || answer == -EAGAIN, "an owner's arming", s, answer);
	if (answer)
		return;
	atomic_fetch_add_explicit(&armed, 1, memory_order_relaxed);
	if (random_percent(seed, 20))
		usleep((useconds_t)random_below(seed, 3000));
	answer = tw_disarm(service, handle(s));
	if (answer == TW_CANCELLED) {
		atomic_fetch_add_explicit(&disarmed, 1, memory_order_relaxed);
		expect(atomic_load(&s->runs) == s->wanted, "a run in spite of a disarming", s, 0);
		return;
	}
	expect(answer == TW_RUNNING || answer == TW_DISARMED, "an owner's disarming", s, answer);
	s->wanted++;
	await_runs(s);
	while (random_percent(seed, 50)) {
		answer = tw_disarm(service, handle(s));
		expect(answer == TW_DISARMED || answer == TW_RUNNING, "a second disarming", s,
		       answer);
	}
	/* until it is out of its run: else the next arming would be of this run */
	while (tw_disarm(service, handle(s)) == TW_RUNNING)
		usleep(50);
}

/* One canceller of several makes it anew: the one whose cancel has won. */
static void end_and_create(struct subject *s, bool waits)
{
	tw_timer timer = handle(s);
	int answer = waits ? tw_cancel_wait(service, timer, TW_FOREVER) : tw_cancel(service, timer);
	if (answer == TW_CANCELLED) {
		atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
		create(s);
		return;
	}
	expect(answer == TW_GONE || answer == TW_RUNNING || answer == TW_FINISHED, "a cancel", s,
	       answer);
}

static void operate_shared(struct subject *s, uint64_t *seed)
{
	unsigned dice = (unsigned)random_below(seed, 1000);
	if (dice < 550)
		arm(s, seed);
	else if (dice < 990)
		disarm(s);
	else
		end_and_create(s, dice < 995);
}

/* All threads stand still, and nothing runs. Cancelled ones that ran are made anew. */
static void check_quiet(uint64_t *seed)
{
	const uint64_t delay_ns = 2 * TW_MILLISECOND;
	bool is_armed[SHARED];
	unsigned runs_wanted[SHARED];
	atomic_store(&quiet, true);
	for (int i = 0; i < SHARED; i++)
		while (tw_disarm(service, handle(&shared[i])) == TW_RUNNING)
			usleep(50);
	for (int i = 0; i < SHARED; i++) {
		if (tw_disarm(service, handle(&shared[i])) == TW_GONE) {
			atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
			create(&shared[i]);
		}
		atomic_store(&shared[i].runs, 0);
		is_armed[i] = random_percent(seed, 60);
		enum in_run in_run =
		    is_armed[i] ? (enum in_run)random_below(seed, IN_RUN) : DOES_NOTHING;
		atomic_store(&shared[i].in_run, in_run);
		runs_wanted[i] = is_armed[i] + (in_run == ARMS);
		if (is_armed[i])
			expect(tw_reset(service, handle(&shared[i]), delay_ns) == 0,
			       "an arming in quiet", &shared[i], 0);
	}
	stress_sleep(20 * TW_MILLISECOND);
	for (int i = 0; i < SHARED; i++) {
		AWAIT(atomic_load(&shared[i].runs) >= runs_wanted[i], "an armed timer is lost");
		while (is_armed[i] && tw_disarm(service, handle(&shared[i])) == TW_RUNNING)
			usleep(50);
		unsigned runs = atomic_load(&shared[i].runs);
		expect(runs == runs_wanted[i], "runs in quiet", &shared[i], runs);
		int answer = tw_disarm(service, handle(&shared[i]));
		expect(answer == TW_DISARMED, "a timer that has run is armed", &shared[i], answer);
	}
	char why[256] = "";
	expect(tw_service_validate(service, why, sizeof why) == 0, why, NULL, 0);
	atomic_store(&quiet, false);
}

static void work(unsigned number, uint64_t seed)
{
	struct subject *mine = owned[number];
	while (!atomic_load(&ended)) {
		for (int i = 0; i < BURST; i++) {
			if (random_percent(&seed, 3))
				operate_owned(&mine[random_below(&seed, OWNED)], &seed);
			else
				operate_shared(&shared[random_below(&seed, SHARED)], &seed);
			if (random_below(&seed, 2000) == 0)
				usleep((useconds_t)random_below(&seed, 3000));
		}
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			check_quiet(&seed);
			atomic_store(&ended, atomic_load(&stress_stop));
		}
		pthread_barrier_wait(&barrier);
	}
}

static void create_all(uint64_t *seed)
{
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < OWNED; i++) {
			owned[t][i].owned = true;
			owned[t][i].has_release = i % 3 == 0;
			owned[t][i].seed = random_next(seed);
			create(&owned[t][i]);
		}
	for (int i = 0; i < SHARED; i++) {
		shared[i].has_release = i % 3 == 0;
		shared[i].seed = random_next(seed);
		create(&shared[i]);
	}
}

static void round_of(uint64_t *seed)
{
	service = open_service(
	    (struct tw_service_config){.workers = 2,
				       .max_timers = 100000,
				       .tick_ns = random_percent(seed, 50) ? 0 : 100000,
				       .buckets = random_percent(seed, 50) ? 64 : 0});
	stress_dumped = service;
	create_all(seed);
	pthread_barrier_init(&barrier, NULL, THREADS);
	start_threads(THREADS, work, seed);
	watch_threads(NULL);
	close_service(service);
	end_service(service, (struct stress_ledger){
				 .scheduled = created, .cancelled = cancelled, .runs = ran});
	wanted("releases", (long long)releases, (long long)with_release);
	pthread_barrier_destroy(&barrier);
}

static void report(const char *word)
{
	printf("%s %llu timers, %llu armed, %llu disarmed, %llu runs, %llu cancelled\n", word,
	       created, armed, disarmed, ran, cancelled);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
