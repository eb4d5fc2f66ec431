/*
 * close SECONDS [SEED]: close against schedule, against other closes, and against fork, many
 * times a second.
 *
 * Producers schedule on the present service until it refuses. The main thread closes it at a random
 * moment, in a random mode, and makes the next one. A schedule is either accepted, and the timer's
 * release is called once, or refused, and no function of the timer is called.
 *
 * In many rounds two more threads close too, with modes and timeouts of their own. 0 and -ETIMEDOUT
 * have their documented meaning. Some timers re-arm themselves, in a drain too: after
 * -ETIMEDOUT only claimed runs are left. Sometimes the main thread forks during a close, and the
 * child checks its copy.
 *
 * Not good at: other races. ledger covers them.
 */
#include <sys/wait.h>

#include "test/stress/stress.h"
#include "test/support/child.h"

enum { PRODUCERS = 3, MOST = 4000, CLOSERS = 2, WORKERS = 2, MOST_REARMS = 300 };

static struct producer {
	uint64_t seed;
	atomic_uint releases[MOST];
	unsigned accepted; /* the first n; the rest was refused, or not tried */
	atomic_ulong round_done;
} producers[PRODUCERS];

static _Atomic(tw_service *) service;
static atomic_ulong round_number; /* 0: not begun; ULONG_MAX: stop */
static atomic_bool closing;
static uint64_t accepted_all;
static atomic_bool settled; /* a close has answered 0: nothing runs any more */
/* one has answered -ETIMEDOUT: a worker may begin what it has claimed, no more */
static atomic_bool left;
static atomic_uint begun_late; /* since then */
static atomic_uint dropped;    /* by the fates that releases got */
static atomic_int rearms_left; /* in this round: a drain goes on while timers do */

static void check_start(void)
{
	if (atomic_load(&settled))
		violation("a callback starts after a close has answered 0", 0);
	if (atomic_load(&left) && atomic_fetch_add(&begun_late, 1) >= WORKERS)
		violation("callbacks start after a close has answered -ETIMEDOUT",
			  atomic_load(&begun_late));
}

static void do_nothing(void *arg)
{
	check_start();
}

static void go_on(void *arg)
{
	check_start();
	if (atomic_fetch_sub(&rearms_left, 1) > 0)
		tw_reset(atomic_load(&service), tw_self(), 0); /* refused once a drain is over */
}

static int close_somehow(tw_service *s, uint64_t *seed, uint64_t timeout_ns)
{
	int answer = tw_service_close(s, (enum tw_close_mode)random_below(seed, 3), timeout_ns);
	if (answer == 0 || answer == -ETIMEDOUT)
		atomic_store(answer == 0 ? &settled : &left, true);
	return answer;
}

static void count_release(void *arg, enum tw_fate fate)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
	atomic_fetch_add(&dropped, fate == TW_FATE_DROPPED);
}

static void schedule_until_refused(struct producer *p, tw_service *s)
{
	int answer = 0;
	p->accepted = 0;
	while (p->accepted < MOST - 1 && answer == 0) {
		struct tw_task task = {
		    .size = sizeof(task),
		    .fn = p->accepted % 64 ? do_nothing : go_on,
		    .arg = &p->releases[p->accepted],
		    .when_ns = random_below(&p->seed, 3) * TW_MILLISECOND,
		    .release = count_release,
		};
		answer = tw_schedule_task(s, &task, NULL);
		p->accepted += answer == 0;
	}
	if (answer != 0 && (answer != -ESHUTDOWN || !atomic_load(&closing)))
		violation("a schedule answers", answer);
}

/* The threads outlive the services: what they keep of one must not be used on the next. */
static void produce(unsigned number, uint64_t seed)
{
	struct producer *p = &producers[number];
	unsigned long now = 0, done = 0;
	p->seed = seed;
	for (;; done = now, atomic_store(&p->round_done, done)) {
		while ((now = atomic_load(&round_number)) == done)
			sched_yield();
		if (now == (unsigned long)-1)
			return;
		schedule_until_refused(p, atomic_load(&service));
	}
}

static uint64_t check_producer(struct producer *p)
{
	for (unsigned i = 0; i < MOST && i <= p->accepted; i++) {
		unsigned releases = atomic_exchange(&p->releases[i], 0);
		if (releases != (i < p->accepted))
			violation(i < p->accepted ? "releases of an accepted timer"
						  : "releases of a refused timer",
				  releases);
	}
	return p->accepted;
}

/* Waits for the producers of this round; how many timers they had accepted. */
static uint64_t end_round(void)
{
	uint64_t accepted = 0;
	for (int i = 0; i < PRODUCERS; i++) {
		while (atomic_load(&producers[i].round_done) != atomic_load(&round_number))
			sched_yield();
		accepted += check_producer(&producers[i]);
	}
	return accepted;
}

struct closer {
	uint64_t seed;
	pthread_t thread;
};

static void *close_too(void *arg)
{
	struct closer *c = arg;
	uint64_t timeout_ns =
	    random_percent(&c->seed, 30) ? TW_FOREVER : random_below(&c->seed, 2 * TW_MILLISECOND);
	int answer = close_somehow(atomic_load(&service), &c->seed, timeout_ns);
	if (answer != 0 && (answer != -ETIMEDOUT || timeout_ns == TW_FOREVER))
		violation("another close answers", answer);
	return NULL;
}

/* In a child: each call says so, destroy frees. */
static int look_around(tw_service *s)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	bool fine = tw_schedule(s, 0, do_nothing, NULL, NULL) == -EPERM &&
		    tw_cancel(s, (tw_timer){1}) == -EPERM &&
		    tw_reset(s, (tw_timer){1}, 0) == -EPERM &&
		    tw_service_stats(s, &stats) == -EPERM &&
		    tw_service_close(s, TW_CLOSE_DRAIN, TW_FOREVER) == -EPERM &&
		    (!CHILD_ALLOCATES || tw_service_destroy(s) == 0);
	return fine ? 0 : 1;
}

static void fork_in_the_middle(tw_service *s)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		_exit(look_around(s));
	if (waitpid(child, &status, 0) != child || status != 0)
		violation("a forked child ends with", status);
}

static void check_ledger(tw_service *s, uint64_t accepted)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[256] = "";
	tw_service_stats(s, &stats);
	if (stats.scheduled != accepted)
		violation("counted as scheduled, beyond the accepted",
			  (long long)(stats.scheduled - accepted));
	if (stats.pending != 0 || stats.fired + stats.dropped != accepted)
		violation("pending after close", (long long)stats.pending);
	if (stats.dropped != atomic_load(&dropped))
		violation("dropped, beyond the releases with that fate",
			  (long long)(stats.dropped - atomic_load(&dropped)));
	if (tw_service_validate(s, why, sizeof(why)) != 0)
		violation(why, 0);
}

static tw_service *open_one(uint64_t *seed)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .max_timers = 20000};
	cfg.drive = random_percent(seed, 50) ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	if (random_percent(seed, 80))
		cfg.executor = tw_executor_inline();
	else
		cfg.workers = cfg.max_workers = WORKERS;
	tw_service *s;
	int answer = tw_service_create(&s, &cfg);
	if (answer != 0)
		violation("tw_service_create", answer);
	return s;
}

static void close_at_some_moment(tw_service *s, uint64_t *seed)
{
	struct closer closers[CLOSERS];
	int others = random_percent(seed, 40) ? CLOSERS : 0;
	for (uint64_t spin = random_below(seed, 20000); spin > 0; spin--)
		/* lets a random moment pass */
		atomic_load_explicit(&closing, memory_order_relaxed);
	if (random_percent(seed, 2))
		fork_in_the_middle(s);
	atomic_store(&closing, true);
	for (int i = 0; i < others; i++) {
		closers[i].seed = random_next(seed);
		if (pthread_create(&closers[i].thread, NULL, close_too, &closers[i]) != 0)
			violation("no thread", 0);
	}
	int answer = close_somehow(s, seed, TW_FOREVER);
	if (answer != 0)
		violation("tw_service_close", answer);
	for (int i = 0; i < others; i++)
		pthread_join(closers[i].thread, NULL);
}

/* One service from create to destroy. */
static void round_of(uint64_t *seed)
{
	if (stress_threads_begun == 0)
		start_threads(PRODUCERS, produce, seed);
	tw_service *s = open_one(seed);
	atomic_store(&closing, false);
	atomic_store(&settled, false);
	atomic_store(&left, false);
	atomic_store(&begun_late, 0);
	atomic_store(&dropped, 0);
	atomic_store(&rearms_left, MOST_REARMS);
	atomic_store(&service, s);
	atomic_fetch_add(&round_number, 1);
	close_at_some_moment(s, seed);
	uint64_t accepted = end_round();
	check_ledger(s, accepted);
	if (tw_service_destroy(s) != 0)
		violation("tw_service_destroy", 0);
	accepted_all += accepted;
}

static void report(const char *word)
{
	printf("%s %lu rounds, %" PRIu64 " timers, each accepted or refused\n", word, stress_rounds,
	       accepted_all);
}

int main(int argc, char **argv)
{
	stress_play(argc, argv, round_of, report);
	atomic_store(&round_number, (unsigned long)-1);
	join_all_threads();
	return 0;
}
