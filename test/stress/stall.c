/*
 * stress_stall SECONDS [SEED [STOPPED_S]]: a process that is stopped (SIGSTOP) in the middle of its
 * work, for 2 s or STOPPED_S, with
 * 100 000 timers, 10 000 of them series.
 *
 * Afterwards nothing is early, each one-shot runs once, each series keeps its phase and counts what
 * it missed, and to catch up costs at most 3 times the CPU of firing as many that come due together
 * without a stop. That cost is measured in the same process; it is noisy, so it fails only if three
 * rounds in a row are above. Not good at: lateness, which a stop makes meaningless.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"
#include "test/support/current.h"

enum { ONCE = 90000, SERIES = 10000, MS = 1000000, COST_MOST = 3, TRIES = 3 };
#define WATCHDOG_NS (20 * TW_SECOND)
enum { EXIT_GOOD, EXIT_WRONG, EXIT_COSTLY };

/* Its service's clock is the monotonic one. */
struct timer {
	uint64_t due_ns, period_ns; /* period 0: a one-shot */
	tw_timer timer;
	atomic_uint_fast64_t runs, missed;
};

static tw_service *service;
static struct timer timers[ONCE + SERIES];
static atomic_uint_fast64_t runs, early;

static uint64_t now_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * TW_SECOND + (uint64_t)now.tv_nsec;
}

static void pause_ns(uint64_t ns)
{
	const struct timespec span = {.tv_sec = (time_t)(ns / TW_SECOND),
				      .tv_nsec = (long)(ns % TW_SECOND)};
	nanosleep(&span, NULL);
}

/* What the service has cost: of all threads but this one, which watches. */
static uint64_t cpu_ns(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID) - now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void must(int answer)
{
	if (answer != 0)
		abort();
}

static void ran(void *arg)
{
	struct timer *t = arg;
	uint64_t instant = atomic_fetch_add(&t->missed, current_run().overruns) +
			   current_run().overruns + atomic_fetch_add(&t->runs, 1);
	if (now_ns(CLOCK_MONOTONIC) < t->due_ns + instant * t->period_ns)
		atomic_fetch_add(&early, 1);
	atomic_fetch_add(&runs, 1);
}

static void arm(struct timer *t, uint64_t due_ns, uint64_t period_ns)
{
	struct tw_period period = {.size = sizeof period, .period_ns = period_ns};
	struct tw_task task = {.size = sizeof task,
			       .fn = ran,
			       .arg = t,
			       .when_ns = due_ns,
			       .flags = TW_TASK_AT,
			       .period = period_ns ? &period : NULL};
	*t = (struct timer){.due_ns = due_ns, .period_ns = period_ns};
	must(tw_schedule_task(service, &task, &t->timer));
}

static void cancel_all(void)
{
	for (unsigned i = 0; i < ONCE + SERIES; i++)
		tw_cancel_wait(service, timers[i].timer, TW_FOREVER);
}

/*
 * Which timer comes at which place: as after some hours of work, memory and deadlines are in no
 * common order.
 */
static void shuffle(unsigned *order, unsigned count, uint64_t *seed)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned other = (unsigned)random_below(seed, i + 1);
		order[i] = order[other];
		order[other] = i;
	}
}

/*
 * Timers that are due together: `once` one-shots, and a run of each series. Whether all were armed
 * before they were due; if not, none is left.
 */
static bool arm_together(unsigned once, uint64_t lead_ns, uint64_t *seed)
{
	static unsigned order[SERIES + ONCE];
	uint64_t due_ns = now_ns(CLOCK_MONOTONIC) + lead_ns;
	shuffle(order, SERIES + once, seed);
	for (unsigned i = 0; i < SERIES + once; i++)
		arm(&timers[order[i]], due_ns, order[i] < SERIES ? 3600 * TW_SECOND : 0);
	uint64_t armed_ns = now_ns(CLOCK_MONOTONIC);
	if (armed_ns >= due_ns - 20 * MS) {
		cancel_all();
		return false;
	}
	pause_ns(due_ns - 20 * MS - armed_ns);
	return true;
}

/* CPU time for each run when they fire. A starved process needs longer to arm them. */
static double cost_of_firing(unsigned once, uint64_t *seed)
{
	static uint64_t lead_ns = 500 * MS;
	uint64_t ran_before = runs;
	for (; !arm_together(once, lead_ns, seed); ran_before = runs)
		lead_ns *= 2;
	uint64_t before_ns = cpu_ns();
	while (runs - ran_before < SERIES + once)
		pause_ns(MS);
	uint64_t cost_ns = cpu_ns() - before_ns;
	cancel_all();
	return (double)cost_ns / (SERIES + once);
}

static bool past_has_run(uint64_t instant_ns)
{
	for (unsigned i = 0; i < ONCE + SERIES; i++)
		if (timers[i].due_ns <= instant_ns && timers[i].runs == 0)
			return false;
	return true;
}

/* A series has run, or counted as missed, every instant up to this one. */
static unsigned wrong_counts(uint64_t instant_ns)
{
	unsigned wrong = 0;
	for (unsigned i = 0; i < ONCE + SERIES; i++) {
		struct timer *t = &timers[i];
		uint64_t passed = t->due_ns > instant_ns ? 0 : 1;
		if (t->period_ns && passed)
			passed += (instant_ns - t->due_ns) / t->period_ns;
		wrong += t->period_ns ? t->runs + t->missed < passed : t->runs > 1;
	}
	return wrong;
}

/*
 * All is right in a moment, or when the service gets its processors; a count that is wrong for good
 * stays so.
 */
static unsigned await_right_counts(uint64_t instant_ns)
{
	uint64_t until_ns = now_ns(CLOCK_MONOTONIC) + WATCHDOG_NS;
	unsigned wrong;
	while ((wrong = wrong_counts(instant_ns) + !past_has_run(instant_ns)) &&
	       now_ns(CLOCK_MONOTONIC) < until_ns)
		pause_ns(MS);
	return wrong;
}

/* The stopped process. It announces that it is ready, and reads when it may go on. */
static int stopped_process(int ready, int go_on, uint64_t seed, uint64_t stop_ns)
{
	struct tw_service_config cfg = {.size = sizeof cfg};
	char byte = 0;
	must(tw_service_create(&service, &cfg));
	cost_of_firing(ONCE, &seed); /* memory is touched, threads are there */
	double cost_ns = cost_of_firing(ONCE * 2 / 3, &seed);

	uint64_t start_ns = now_ns(CLOCK_MONOTONIC) + 300 * MS;
	for (unsigned i = 0; i < ONCE + SERIES; i++) {
		bool is_series = i % 10 == 0;
		uint64_t within_ns = is_series ? TW_SECOND / 10 : stop_ns * 3 / 2;
		arm(&timers[i], start_ns + random_below(&seed, within_ns),
		    is_series ? 50 * MS + random_below(&seed, 450 * MS) : 0);
	}
	pause_ns(500 * MS);
	uint64_t before_ns = cpu_ns(), ran_before = runs;
	if (write(ready, &byte, 1) != 1 || read(go_on, &byte, 1) != 1)
		return EXIT_WRONG;
	uint64_t resumed_ns = now_ns(CLOCK_MONOTONIC);
	while (!past_has_run(resumed_ns))
		pause_ns(MS);
	uint64_t caught_up_ns = now_ns(CLOCK_MONOTONIC);
	double ratio = (double)(cpu_ns() - before_ns) / (double)(runs - ran_before) / cost_ns;
	uint64_t ran_since = runs - ran_before;

	pause_ns(stop_ns / 2 + 100 * MS);
	unsigned wrong = await_right_counts(now_ns(CLOCK_MONOTONIC));
	cancel_all();
	char why[200] = "";
	int invalid = tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER) ||
		      tw_service_validate(service, why, sizeof why);
	tw_service_destroy(service);
	printf("stress_stall: stopped %.1f s; %" PRIu64
	       " runs to catch up took %.0f ms, %.2f times the CPU of firing them "
	       "(%.0f ns each); early %" PRIuFAST64 ", wrong %u%s%s\n",
	       (double)stop_ns / 1e9, ran_since, (double)(caught_up_ns - resumed_ns) / 1e6, ratio,
	       cost_ns, early, wrong, invalid ? ", invalid: " : "", why);
	fflush(stdout);
	return early || wrong || invalid ? EXIT_WRONG : ratio > COST_MOST ? EXIT_COSTLY : EXIT_GOOD;
}

/*
 * A program of its own: a sanitizer's runtime does not bear threads in a child that was only
 * forked.
 */
static _Noreturn void become_stopped(int ready, int go_on, uint64_t seed, uint64_t stop_ns)
{
	char words[4][24];
	snprintf(words[0], sizeof words[0], "%d", ready);
	snprintf(words[1], sizeof words[1], "%d", go_on);
	snprintf(words[2], sizeof words[2], "%" PRIu64, seed);
	snprintf(words[3], sizeof words[3], "%" PRIu64, stop_ns);
	execl("/proc/self/exe", "stress_stall", "--stopped", words[0], words[1], words[2], words[3],
	      (char *)NULL);
	abort();
}

static int round_of(uint64_t seed, uint64_t stop_ns)
{
	int ready[2], go_on[2], status;
	char byte = 0;
	if (pipe(ready) || pipe(go_on))
		abort();
	pid_t child = fork();
	if (child == 0)
		become_stopped(ready[1], go_on[0], seed, stop_ns);
	close(ready[1]), close(go_on[0]); /* else the read waits for a child that has died */
	bool is_ready = child > 0 && read(ready[0], &byte, 1) == 1;
	if (is_ready && kill(child, SIGSTOP) == 0) {
		pause_ns(stop_ns);
		is_ready = write(go_on[1], &byte, 1) == 1;
		kill(child, SIGCONT);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	close(ready[0]), close(go_on[1]);
	return is_ready && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_WRONG;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "--stopped") == 0)
		return stopped_process(atoi(argv[2]), atoi(argv[3]), strtoull(argv[4], NULL, 10),
				       strtoull(argv[5], NULL, 10));
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : now_ns(CLOCK_MONOTONIC);
	uint64_t stop_ns = (argc > 3 ? strtoull(argv[3], NULL, 10) : 2) * TW_SECOND;
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + seconds * TW_SECOND;
	int costly = 0;
	printf("stress_stall: seed %" PRIu64 "\n", seed);
	fflush(stdout);
	do {
		uint64_t of_round = seed;
		int outcome = round_of(random_next(&seed), stop_ns);
		costly = outcome == EXIT_COSTLY ? costly + 1 : 0;
		if (outcome == EXIT_WRONG || costly == TRIES) {
			fprintf(stderr, "stress_stall: FAILED, round's seed %" PRIu64 "\n",
				of_round);
			return 1;
		}
	} while (costly || now_ns(CLOCK_MONOTONIC) < end_ns);
	return 0;
}
