/*
 * The manual executor: order, bounds, who runs what, its descriptor, teardown. Scripts of timers
 * whose service has it.
 */
#include "tickwheel/manual.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "wheel/run/work.h"
#include "test/support/by_hand.h"
#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/timer_script.h"

static tw_manual *manual;
static int told;

static void tell(void *arg)
{
	told++;
}

static void open_with(uint32_t room)
{
	struct tw_manual_config cfg = {.size = sizeof cfg, .queue = room, .notify = tell};
	expect_eq(tw_manual_create(&manual, &cfg), 0);
	script_executor = tw_manual_executor(manual);
}

static void open_usual(void)
{
	open_with(0);
}

static void close_it(void)
{
	expect_in_fini();
	expect_eq(tw_manual_destroy(manual), 0);
}

TestSuite(manual_executor, .init = open_usual, .fini = close_it, .timeout = 60);

/* Says how many callbacks have run: as many as the number, or all. */
static void pump_some(const struct words *words)
{
	size_t budget = words->numbers ? (size_t)words->number[0] : TW_NO_LIMIT;
	say("%d", tw_manual_pump(manual, budget));
}

static void say_told(const struct words *words)
{
	say("told %d", told);
	told = 0;
}

static void say_readable(const struct words *words)
{
	say(readable(tw_manual_fd(manual), 0) ? "readable" : "quiet");
}

/* Whoever reads the descriptor breaks the rule, and loses that wake-up, but none after it. */
static void say_written(const struct words *words)
{
	uint64_t writes = 0;
	expect_eq(read(tw_manual_fd(manual), &writes, sizeof writes), (ssize_t)sizeof writes);
	say("written %d", (int)writes);
}

static struct tw__work work;
static int work_runs;

/* It is no timer's run, and submits itself again twice. */
static void run_work(struct tw__work *w)
{
	struct tw_run_info run = TW_INIT(tw_run_info);
	expect_eq(tw_current(&run), 0);
	expect_eq(tw_self().id, 0);
	if (++work_runs % 3)
		tw__work_submit(w);
}

static void submit_work(const struct words *words)
{
	tw_service *service = timer_stage.rig->service;
	expect_eq(tw__service_hold(service), 0);
	tw__work_init(&work, service, script_executor, run_work);
	tw__work_submit(&work);
}

static void end_work(const struct words *words)
{
	tw__service_let_go(timer_stage.rig->service);
}

static const struct verb verbs[] = {{"pump", pump_some},
				    {"told", say_told},
				    {"readable", say_readable},
				    {"written", say_written},
				    {"work", submit_work},
				    {"end_work", end_work},
				    {NULL, NULL}};

static const struct script scripts[] = {
    {"what waited runs up to the budget",
     {{"given own; timer 0..5 in=1 plain; drive 1; pump 0; pump 2; pump; pump; told",
       "@1 0, run 0, run 1, 2, run 2, run 3, run 4, run 5, 4, 0, told 1"}}},
    {"a run that comes into the empty queue is notified once",
     {{"given own; timer 0..63 in=1 plain silent; told; drive 1; told; pump 63",
       "told 0, @1 told 1, 63"},
      {"timer 0 in=1 plain silent; drive 1; told; pump; timer 0 in=1 plain; drive 1; told; pump",
       "@2 told 0, 2, @3 told 1, run 0, 1"}}},
    {"a callback may pump",
     {{"given own; timer 0 in=1 plain {pump 1}; timer 1 in=1 plain; drive 1; pump",
       "@1 run 0, run 1, 1, 1"}}},
    {"a pump ends though work submits itself again",
     {{"given own; told; work; pump; pump; told; pump; pump; end_work",
       "told 1, 1, 1, told 3, 1, 0"}}},
    {"work that is pumped inside a callback is not that timer",
     {{"given own; timer 0 in=1 plain {self; pump; self}; drive 1; work; pump 1; pump; pump; pump",
       "@1 run 0, self 0, 1, self 0, 1, 1, 1, 0"},
      {"end_work", ""}}},
    {"a close leaves the runs that wait, which do nothing",
     {{"given own; timer 0 in=1; timer 1 in=3600000; drive 1; close drop 0; pump; stats runs",
       "@1 0 dropped, 1 dropped, ETIMEDOUT, 1, runs=0"}}},
    {"its descriptor is readable while runs wait",
     {{"given own; readable; timer 0..63 in=1 plain silent; drive 1; readable; pump 63; readable",
       "quiet, @1 readable, 63, readable"},
      {"timer 0 in=1 plain silent; drive 1; pump; readable", "@2 2, quiet"},
      {"timer 0..63 in=1 plain silent; drive 1; readable; pump; readable",
       "@3 readable, 64, quiet"}}},
    {"its descriptor is written once, however many runs come",
     {{"given own; readable; timer 0..31 in=1 plain silent; timer 32..63 in=2 plain silent",
       "quiet"},
      {"drive 2; written; pump; timer 0 in=1 plain; drive 1; readable; pump; readable",
       "@2 written 1, 64, @3 readable, run 0, 1, quiet"}}},
    {"a callback that pumps leaves its descriptor right",
     {{"given own; timer 0 in=1 plain {pump}; timer 1 in=1 plain; drive 1; readable; pump 1",
       "@1 readable, run 0, run 1, 1, 1"},
      {"readable", "quiet"}}},
};

Test(manual_executor, follows_the_scripts)
{
	PLAY(&timer_stage, verbs, scripts);
}

/* ------------------------------------------------------------ bounds and teardown */

Test(manual_executor, full_is_a_refusal_that_is_offered_again)
{
	static struct probe probes[150]; /* three hand-overs */
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	expect_eq(tw_manual_destroy(manual), 0);
	open_with(1);
	cfg.executor = script_executor;
	rig_open(&rig, &cfg);
	for (int i = 0; i < 150; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], MS);
	}
	rig_advance(&rig, MS);
	expect_gt(stats_of(rig.service).refused, 0);
	int first = tw_manual_pump(manual, TW_NO_LIMIT);
	expect_gt(first, 0);
	expect_lt(first, 150);
	for (int i = 0; i < 10; i++) {
		tw_manual_pump(manual, TW_NO_LIMIT);
		rig_advance(&rig, MS);
	}
	expect_eq(rig.ran, 150);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

/* Runs the first of each batch, and hands the others on. */
static int run_first(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_executor *queue = tw_manual_executor(manual);
	if (n > 1)
		tw_run_one(batch);
	int r = queue->ops->submit(queue, batch, n > 1 ? n - 1 : n);
	expect_eq(r, 0);
	return 0;
}

Test(manual_executor, runs_what_is_left_of_batches_that_were_begun)
{
	static const struct tw_executor_ops ops = {.size = sizeof ops, .submit = run_first};
	static struct probe probes[40];
	tw_executor first = {&ops};
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.executor = &first;
	rig_open(&rig, &cfg);
	for (int i = 0; i < 40; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(1 + i / 10) * 10 * MS);
	}
	rig_advance(&rig, 50 * MS);
	expect_eq(tw_manual_pump(manual, TW_NO_LIMIT), 36);
	expect_eq(rig.ran, 40);
	rig_close(&rig);
}

static void check_in_child(void *arg)
{
	child_eq(tw_manual_pump(manual, TW_NO_LIMIT), -EPERM);
	child_eq(tw_manual_fd(manual), -EPERM);
	child_eq(tw_manual_destroy(manual), 0);
	child_eq(fcntl(*(int *)arg, F_GETFD), -1);
}

/* It is made once, when it is asked for, and again if the system has refused it. */
Test(manual_executor, has_its_descriptor_until_it_ends_and_not_in_a_child)
{
	faults_arm(0, false);
	expect_eq(tw_manual_fd(manual), -EMFILE);
	expect_eq(faults_disarm(), true);
	int fd = tw_manual_fd(manual);
	expect_eq(tw_manual_fd(manual), fd);
	expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	expect_in_child(check_in_child, &fd);
	expect_eq(tw_manual_fd(manual), fd);
	expect_eq(tw_manual_destroy(manual), 0);
	expect_eq(fcntl(fd, F_GETFD), -1);
	open_usual();
}

Test(manual_executor, no_memory_leaves_nothing_behind)
{
	tw_manual *none = NULL;
	long before = faults_outstanding();
	for (long nth = 0;; nth++) {
		faults_arm(nth, false);
		int r = tw_manual_create(&none, NULL);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(faults_outstanding(), before);
	}
	expect_eq(tw_manual_destroy(none), 0);
	expect_eq(faults_outstanding(), before);
}

/* ------------------------------------------------------------ threads */

enum { RUNS = 20000, SCHEDULERS = 2, PUMPS = 3, LONGEST_IDLE_S = 20 };

static atomic_int ran_once[SCHEDULERS * RUNS], runs;

static void mark(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	runs++;
}

struct scheduling {
	tw_service *service;
	atomic_int *ran;
};

static void *schedule_many(void *arg)
{
	const struct scheduling *s = arg;
	for (int i = 0; i < RUNS; i++)
		while (tw_schedule(s->service, 0, mark, &s->ran[i], NULL) == -EAGAIN) {
		}
	return NULL;
}

/* By the descriptor: the one that finds nothing left sleeps again. */
static void *pump_beside(void *unused)
{
	struct pollfd at = {.fd = tw_manual_fd(manual), .events = POLLIN};
	while (runs < SCHEDULERS * RUNS)
		if (poll(&at, 1, 50) == 1)
			tw_manual_pump(manual, 7);
	return unused;
}

/*
 * Sleeps on the descriptor alone. After a lost wake-up nothing would run any more, though runs
 * wait.
 */
static bool pump_while_readable(void)
{
	struct pollfd at = {.fd = tw_manual_fd(manual), .events = POLLIN};
	int before = 0;
	for (int idle = 0; runs < SCHEDULERS * RUNS && idle < LONGEST_IDLE_S;
	     idle = runs == before ? idle + 1 : 0) {
		before = runs;
		if (poll(&at, 1, 1000) == 1)
			tw_manual_pump(manual, 1 + (size_t)runs % 50);
	}
	return runs == SCHEDULERS * RUNS;
}

static void expect_each_run_once(int pumps)
{
	tw_service *service;
	pthread_t schedulers[SCHEDULERS], beside[PUMPS];
	struct scheduling scheduling[SCHEDULERS];
	struct tw_service_config config = {.size = sizeof config, .executor = script_executor};
	expect_eq(tw_service_create(&service, &config), 0);
	runs = 0;
	for (int i = 0; i < pumps; i++)
		expect_eq(pthread_create(&beside[i], NULL, pump_beside, NULL), 0);
	for (int i = 0; i < SCHEDULERS; i++) {
		scheduling[i] = (struct scheduling){service, &ran_once[i * RUNS]};
		expect_eq(pthread_create(&schedulers[i], NULL, schedule_many, &scheduling[i]), 0);
	}
	expect_eq(pump_while_readable(), true);
	for (int i = 0; i < SCHEDULERS; i++)
		pthread_join(schedulers[i], NULL);
	for (int i = 0; i < pumps; i++)
		pthread_join(beside[i], NULL);
	for (int i = 0; i < SCHEDULERS * RUNS; i++)
		expect_eq(atomic_exchange(&ran_once[i], 0), 1);
	expect_eq(readable(tw_manual_fd(manual), 0), false);
	expect_eq(tw_service_destroy(service), 0);
}

Test(manual_executor, wakes_loops_for_each_run_that_other_threads_bring_and_runs_it_once)
{
	expect_each_run_once(0);
	expect_each_run_once(PUMPS);
}
