/*
 * stall SECONDS [SEED]: a process that is stopped (SIGSTOP) for 2 s in the middle of its work, with
 * 100 000 timers, 10 000 of them series.
 *
 * Afterwards nothing is early, each one-shot runs once, each series keeps its phase and counts what
 * it missed, and to catch up costs at most 3 times the CPU of firing as many that come due together
 * without a stop. That cost is measured in the same process; it is noisy, so it fails only if three
 * rounds in a row are above. Not good at: lateness, which a stop makes meaningless.
 */
#include <signal.h>
#include <sys/wait.h>

#include "test/stress/stress.h"
#include "test/support/current.h"

enum { ONCE = 90000, SERIES = 10000, MS = 1000000, COST_MOST = 3, TRIES = 3 };
#define STOPPED_NS (2 * TW_SECOND)
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

static uint64_t cpu_time_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * TW_SECOND + (uint64_t)now.tv_nsec;
}

/* What the service has cost: of all threads but this one, which watches. */
static uint64_t cpu_ns(void)
{
	return cpu_time_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_time_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void ran(void *arg)
{
	struct timer *t = arg;
	uint64_t instant = atomic_fetch_add(&t->missed, current_run().overruns) +
			   current_run().overruns + atomic_fetch_add(&t->runs, 1);
	if (stress_now_ns() < t->due_ns + instant * t->period_ns)
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
	wanted("a schedule", tw_schedule_task(service, &task, &t->timer), 0);
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
	uint64_t due_ns = stress_now_ns() + lead_ns;
	shuffle(order, SERIES + once, seed);
	for (unsigned i = 0; i < SERIES + once; i++)
		arm(&timers[order[i]], due_ns, order[i] < SERIES ? 3600 * TW_SECOND : 0);
	uint64_t armed_ns = stress_now_ns();
	if (armed_ns >= due_ns - 20 * MS) {
		cancel_all();
		return false;
	}
	stress_sleep(due_ns - 20 * MS - armed_ns);
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
		stress_sleep(MS);
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

/* The stopped process. It announces that it is ready, and reads when it may go on. */
static int stopped_process(int ready, int go_on, uint64_t seed)
{
	char byte = 0, why[200] = "";
	stress_seed = seed;
	service = open_service((struct tw_service_config){0});
	cost_of_firing(ONCE, &seed); /* memory is touched, threads are there */
	double cost_ns = cost_of_firing(ONCE * 2 / 3, &seed);

	uint64_t start_ns = stress_now_ns() + 300 * MS;
	for (unsigned i = 0; i < ONCE + SERIES; i++) {
		bool is_series = i % 10 == 0;
		uint64_t within_ns = is_series ? TW_SECOND / 10 : STOPPED_NS * 3 / 2;
		arm(&timers[i], start_ns + random_below(&seed, within_ns),
		    is_series ? 50 * MS + random_below(&seed, 450 * MS) : 0);
	}
	stress_sleep(500 * MS);
	uint64_t before_ns = cpu_ns(), ran_before = runs;
	if (write(ready, &byte, 1) != 1 || read(go_on, &byte, 1) != 1)
		return EXIT_WRONG;
	uint64_t resumed_ns = stress_now_ns();
	while (!past_has_run(resumed_ns))
		stress_sleep(MS);
	uint64_t caught_up_ns = stress_now_ns();
	double ratio = (double)(cpu_ns() - before_ns) / (double)(runs - ran_before) / cost_ns;
	uint64_t ran_since = runs - ran_before;

	stress_sleep(STOPPED_NS / 2 + 100 * MS);
	/* All is right in a moment, or when the service gets its processors. */
	uint64_t instant_ns = stress_now_ns();
	AWAIT(past_has_run(instant_ns) && !wrong_counts(instant_ns), "runs of a timer");
	cancel_all();
	wanted("early runs", (long long)early, 0);
	close_service(service);
	wanted(why, tw_service_validate(service, why, sizeof why), 0);
	tw_service_destroy(service);
	printf("  ... %" PRIu64 " runs to catch up took %.0f ms, %.2f times the CPU of firing them "
	       "(%.0f ns each)\n",
	       ran_since, (double)(caught_up_ns - resumed_ns) / 1e6, ratio, cost_ns);
	fflush(stdout);
	return ratio > COST_MOST ? EXIT_COSTLY : EXIT_GOOD;
}

/*
 * A program of its own: a sanitizer's runtime does not bear threads in a child that was only
 * forked.
 */
static _Noreturn void become_stopped(int ready, int go_on, uint64_t seed)
{
	char words[3][24];
	snprintf(words[0], sizeof words[0], "%d", ready);
	snprintf(words[1], sizeof words[1], "%d", go_on);
	snprintf(words[2], sizeof words[2], "%" PRIu64, seed);
	execl("/proc/self/exe", "stall", "--stopped", words[0], words[1], words[2], (char *)NULL);
	abort();
}

static int stop_one(uint64_t seed)
{
	int ready[2], go_on[2], status;
	char byte = 0;
	if (pipe(ready) || pipe(go_on))
		abort();
	pid_t child = fork();
	if (child == 0)
		become_stopped(ready[1], go_on[0], seed);
	close(ready[1]), close(go_on[0]); /* else the read waits for a child that has died */
	bool is_ready = child > 0 && read(ready[0], &byte, 1) == 1;
	if (is_ready && kill(child, SIGSTOP) == 0) {
		stress_sleep(STOPPED_NS);
		is_ready = write(go_on[1], &byte, 1) == 1;
		kill(child, SIGCONT);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	close(ready[0]), close(go_on[1]);
	return is_ready && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_WRONG;
}

static void round_of(uint64_t *seed)
{
	for (int tries = 1;; tries++) {
		int outcome = stop_one(random_next(seed));
		if (outcome == EXIT_GOOD)
			return;
		if (outcome != EXIT_COSTLY || tries == TRIES)
			violation("the stopped process ends with", outcome);
	}
}

static void report(const char *word)
{
	printf("%s %lu processes were stopped\n", word, stress_rounds);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "--stopped") == 0)
		return stopped_process(atoi(argv[2]), atoi(argv[3]), strtoull(argv[4], NULL, 10));
	return stress_play(argc, argv, round_of, report);
}
