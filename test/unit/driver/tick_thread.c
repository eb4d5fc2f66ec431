/*
 * A service with a tick thread, on a clock that the test moves: what the thread does, and how it
 * behaves in the process.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(driver_tick_thread, .timeout = 30);

static void open_threaded(struct rig *rig)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	rig_open(rig, &cfg);
}

Test(driver_tick_thread, has_handed_over_what_is_due_when_an_advance_returns)
{
	struct rig rig;
	open_threaded(&rig);
	static struct probe probes[1000];
	for (int i = 0; i < 1000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i / 10 + 1) * 13 * MS);
	}
	for (size_t step = 1; step <= 100; step++) {
		rig_advance(&rig, 13 * MS);
		expect_eq(rig.ran, step * 10);
	}
	expect_ids_ascend(&rig);
	for (size_t i = 0; i < rig.ran; i++)
		cr_assert(!pthread_equal(rig.events[i].thread, pthread_self()));
	rig_close(&rig);
}

Test(driver_tick_thread, hands_over_what_is_due_at_once)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe zero = PROBE(&rig, 1), past = PROBE(&rig, 2);
	for (int i = 0; i < 500; i++) {
		probe_schedule(&zero, 0);
		probe_schedule_at(&past, RIG_START_NS);
		rig_advance(&rig, MS);
		expect_eq(zero.runs, i + 1);
		expect_eq(past.runs, i + 1);
	}
	rig_close(&rig);
}

Test(driver_tick_thread, runs_nothing_early)
{
	struct rig rig;
	open_threaded(&rig);
	static struct probe probes[2000];
	static uint64_t due_ns[2000];
	uint64_t seed = 41;
	for (int i = 0; i < 2000; i++) {
		uint64_t delay_ns = random_below(&seed, 10 * SECOND);
		due_ns[i] = rig_now(&rig) + delay_ns;
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delay_ns);
		rig_advance(&rig, random_below(&seed, 3 * MS));
	}
	rig_advance(&rig, MINUTE);
	for (int i = 0; i < 2000; i++) {
		expect_eq(probes[i].runs, 1);
		expect_ge(probes[i].ran_at_ns, due_ns[i]);
	}
	rig_close(&rig);
}

Test(driver_tick_thread, honours_cancels_and_resets)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe cancelled = PROBE(&rig, 1), later = PROBE(&rig, 2), earlier = PROBE(&rig, 3);
	probe_schedule_released(&cancelled, 10 * MS);
	probe_schedule(&later, 10 * MS);
	probe_schedule(&earlier, HOUR);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(tw_reset(rig.service, later.timer, 10 * MS), 0);
	expect_eq(tw_reset(rig.service, earlier.timer, 2 * MS), 0);
	rig_advance(&rig, 2 * MS);
	expect_eq(earlier.runs, 1);
	rig_advance(&rig, 3 * MS);
	expect_eq(later.runs, 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(later.runs, 1);
	expect_eq(cancelled.runs, 0);
	expect_released(&cancelled, TW_FATE_CANCELLED);
	rig_close(&rig);
}

Test(driver_tick_thread, catches_up_after_ten_years)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2), beyond = PROBE(&rig, 3);
	probe_schedule(&once, 3 * 365 * DAY);
	probe_schedule_every(&series, rate_of(MS, MS, 0));
	probe_schedule(&beyond, 10 * 365 * DAY + 5 * MS);
	rig_advance(&rig, 10 * 365 * DAY);
	expect_eq(once.runs, 1);
	expect_eq(series.runs, 1);
	expect_eq(beyond.runs, 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(beyond.runs, 1);
	/* Each instant was run or counted, except those that the next run will count. */
	uint64_t instants = 10 * 365 * DAY / MS + 5;
	expect_le(series.runs + series.overruns, instants);
	expect_ge(series.runs + series.overruns, instants - 5);
	expect_eq(tw_cancel(rig.service, series.timer), TW_CANCELLED);
	rig_close(&rig);
}

Test(driver_tick_thread, takes_a_clock_that_steps_back)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * SECOND);
	rig_advance(&rig, 5 * SECOND);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS), 0);
	rig_advance(&rig, 4 * SECOND);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, 6 * SECOND);
	expect_eq(probe.runs, 1);
	expect_ge(stats_of(rig.service).clock_steps, 1);
	rig_close(&rig);
}

static void advance_the_clock(struct probe *probe)
{
	probe->answer = tw_clock_manual_advance_by(probe->rig->clock, MS);
}

static void validate_and_close(struct probe *probe)
{
	tw_service *service = probe->rig->service;
	probe->answer = tw_service_validate(service, NULL, 0) == -EBUSY &&
			tw_service_close(service, TW_CLOSE_DROP, 0) == -EDEADLK &&
			tw_service_destroy(service) == -EDEADLK;
}

Test(driver_tick_thread, refuses_callbacks_what_would_wait_for_them)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe clock = PROBE(&rig, 1), service = PROBE(&rig, 2);
	clock.act = advance_the_clock;
	service.act = validate_and_close;
	probe_schedule(&clock, MS);
	probe_schedule(&service, MS);
	rig_advance(&rig, MS);
	expect_eq(clock.answer, -EDEADLK);
	expect_eq(service.answer, 1);
	rig_close(&rig);
}

Test(driver_tick_thread, can_be_asked_for_everything_while_it_sleeps)
{
	struct rig rig;
	open_threaded(&rig);
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < 200; i++) {
		probe_schedule(&probe, MS);
		expect_sound(rig.service);
		rig_advance(&rig, MS);
		expect_sound(rig.service);
	}
	expect_eq(probe.runs, 200);
	rig_close(&rig);
}

/* ------------------------------------------------------------ a pool on the manual clock */

/* Gives way until as many callbacks have returned; the test's time limit guards it. */
static void await_runs(tw_service *service, uint64_t runs)
{
	while (stats_of(service).runs < runs)
		sched_yield();
}

Test(driver_tick_thread, feeds_a_pool)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 3};
	struct rig rig;
	rig_open(&rig, &cfg);
	static struct probe probes[5000];
	for (int i = 0; i < 5000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], (uint64_t)(i % 50) * MS);
	}
	rig_advance(&rig, 50 * MS);
	await_runs(rig.service, 5000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < 5000; i++) {
		expect_eq(probes[i].runs, 1);
		expect_released(&probes[i], TW_FATE_FIRED);
	}
	rig_close(&rig);
}

Test(driver_tick_thread, feeds_one_worker_in_order)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	struct rig rig;
	rig_open(&rig, &cfg);
	static struct probe probes[3000];
	for (int i = 0; i < 3000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i / 1000 + 1) * MS);
	}
	rig_advance(&rig, 50 * MS);
	await_runs(rig.service, 3000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.ran, 3000);
	expect_ids_ascend(&rig);
	rig_close(&rig);
}

Test(driver_tick_thread, is_not_needed_to_feed_a_pool)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .workers = 2, .drive = TW_DRIVE_MANUAL};
	struct rig rig;
	rig_open(&rig, &cfg);
	static struct probe probes[1000]; /* one each: two workers run them side by side */
	for (int i = 0; i < 1000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)i * MS);
	}
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1000);
	await_runs(rig.service, 1000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.ran, 1000);
	for (int i = 0; i < 1000; i++)
		expect_eq(probes[i].runs, 1);
	rig_close(&rig);
}

/* ------------------------------------------------------------ G13: manners */

/* A thread of this process whose name begins with a prefix. */
struct seen_thread {
	pid_t id;
	char name[32];
};

static void read_name(pid_t id, char name[32])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)id);
	name[0] = '\0';
	FILE *file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(name, 32, file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
}

static size_t find_threads(const char *prefix, struct seen_thread *found, size_t room)
{
	size_t count = 0;
	DIR *tasks = opendir("/proc/self/task");
	cr_assert(tasks != NULL);
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
		struct seen_thread thread = {.id = (pid_t)atoi(entry->d_name)};
		if (thread.id == 0)
			continue;
		read_name(thread.id, thread.name);
		if (strncmp(thread.name, prefix, strlen(prefix)) == 0 && count < room)
			found[count++] = thread;
	}
	closedir(tasks);
	return count;
}

static uint64_t blocked_signals(pid_t id)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)id);
	FILE *file = fopen(path, "r");
	cr_assert(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	fclose(file);
	return mask;
}

static bool blocks(pid_t id, int number)
{
	return blocked_signals(id) >> (number - 1) & 1;
}

/*
 * A new thread blocks whatever there is, stops included, until the C library has set its mask. The
 * suite's timeout is the watchdog.
 */
static void await_begun(pid_t id)
{
	while (!~(blocked_signals(id) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)))
		sched_yield();
}

Test(driver_tick_thread, and_workers_carry_names)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 3};
	struct rig rig;
	rig_open(&rig, &cfg);
	struct seen_thread threads[10];
	expect_eq(find_threads("tw-tick", threads, 10), 1);
	expect_eq(find_threads("tw-grow", threads, 10), 1);
	expect_eq(find_threads("tw-", threads, 10), 5);
	rig_close(&rig);
}

Test(driver_tick_thread, and_workers_carry_the_prefix_of_the_config)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .workers = 2, .thread_name = "abcdefghijklmnop"};
	struct rig rig;
	rig_open(&rig, &cfg);
	struct seen_thread threads[10];
	expect_eq(find_threads("abcdefghi-", threads, 10), 4);
	expect_eq(find_threads("abcdefghi-tick", threads, 10), 1);
	expect_eq(find_threads("tw", threads, 10), 0);
	rig_close(&rig);
}

Test(driver_tick_thread, and_workers_block_all_signals_but_their_own_faults)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2};
	struct rig rig;
	rig_open(&rig, &cfg);
	struct seen_thread threads[10];
	size_t count = find_threads("tw-", threads, 10);
	expect_eq(count, 4);
	for (size_t i = 0; i < count; i++)
		await_begun(threads[i].id);
	static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	static const int closed[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGUSR1, SIGUSR2,
				     SIGPIPE, SIGALRM,   SIGTERM, SIGCHLD, SIGIO,
				     SIGPROF, SIGVTALRM, SIGWINCH};
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < sizeof(open) / sizeof(open[0]); j++)
			cr_assert(!blocks(threads[i].id, open[j]), "%s blocks signal %d",
				  threads[i].name, open[j]);
		for (size_t j = 0; j < sizeof(closed) / sizeof(closed[0]); j++)
			cr_assert(blocks(threads[i].id, closed[j]), "%s takes signal %d",
				  threads[i].name, closed[j]);
		cr_assert(blocks(threads[i].id, SIGRTMIN + 3), "%s takes SIGRTMIN + 3",
			  threads[i].name);
	}
	rig_close(&rig);
}

Test(driver_tick_thread, and_workers_leave_the_callers_signals_as_they_were)
{
	sigset_t before, after;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	struct rig rig;
	open_threaded(&rig);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < 32; number++)
		expect_eq(sigismember(&after, number), sigismember(&before, number));
	rig_close(&rig);
}

Test(driver_tick_thread, and_workers_take_their_affinity_from_the_config)
{
	cpu_set_t mine, wanted, seen;
	expect_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CPU_ZERO(&wanted);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&wanted) == 0; cpu++)
		if (CPU_ISSET(cpu, &mine))
			CPU_SET(cpu, &wanted);
	struct tw_service_config cfg = {
	    .size = sizeof(cfg),
	    .workers = 2,
	    .affinity = &wanted,
	    .affinity_size = sizeof(wanted),
	};
	struct rig rig;
	rig_open(&rig, &cfg);
	struct seen_thread threads[10];
	size_t count = find_threads("tw-", threads, 10);
	expect_eq(count, 4);
	for (size_t i = 0; i < count; i++) {
		expect_eq(sched_getaffinity(threads[i].id, sizeof(seen), &seen), 0);
		cr_assert(CPU_EQUAL(&seen, &wanted), "%s", threads[i].name);
	}
	expect_eq(sched_getaffinity(0, sizeof(seen), &seen), 0);
	cr_assert(CPU_EQUAL(&seen, &mine));
	rig_close(&rig);
}

static void note_stack_size(struct probe *probe)
{
	pthread_attr_t attributes;
	size_t size = 0;
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		pthread_attr_getstacksize(&attributes, &size);
		pthread_attr_destroy(&attributes);
	}
	probe->answer = (int)(size >> 10);
}

Test(driver_tick_thread, and_workers_take_their_stack_size_from_the_config)
{
	for (int pool = 0; pool <= 1; pool++) {
		struct tw_service_config cfg = {.size = sizeof(cfg), .stack_size = 768 << 10};
		cfg.executor = pool ? NULL : tw_executor_inline();
		struct rig rig;
		rig_open(&rig, &cfg);
		struct probe probe = PROBE(&rig, 1);
		probe.act = note_stack_size;
		probe_schedule(&probe, 0);
		rig_advance(&rig, MS);
		await_runs(rig.service, 1);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
		expect_ge(probe.answer, 768);
		expect_lt(probe.answer, 2048);
		rig_close(&rig);
	}
}

/* Real-time scheduling may be refused; if not, the tick thread has it, and the others do not. */
Test(driver_tick_thread, takes_its_policy_from_the_config)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, 0), 0);
	struct tw_service_config cfg = {
	    .size = sizeof(cfg),
	    .clock = clock,
	    .workers = 1,
	    .sched_policy = SCHED_FIFO,
	    .sched_priority = 1,
	};
	tw_service *service = NULL;
	int answer = tw_service_create(&service, &cfg);
	if (answer == 0) {
		struct seen_thread threads[10];
		expect_eq(find_threads("tw-tick", threads, 10), 1);
		expect_eq(sched_getscheduler(threads[0].id) & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
		size_t count = find_threads("tw-", threads, 10), fifo = 0;
		for (size_t i = 0; i < count; i++)
			fifo += (sched_getscheduler(threads[i].id) & ~SCHED_RESET_ON_FORK) ==
				SCHED_FIFO;
		expect_eq(fifo, 1);
		expect_eq(tw_service_destroy(service), 0);
	} else {
		expect_eq(answer, -EPERM);
	}
	expect_eq(tw_clock_manual_destroy(clock), 0);
}

Test(driver_tick_thread, and_workers_are_gone_after_destroy)
{
	for (int i = 0; i < 20; i++) {
		struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 4};
		struct rig rig;
		rig_open(&rig, &cfg);
		rig_close(&rig);
	}
	struct seen_thread threads[10];
	while (find_threads("tw", threads, 10) > 0) /* a joined thread may show for a moment */
		sched_yield();
}
