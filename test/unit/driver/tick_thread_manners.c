/*
 * How the tick thread and workers behave in the process (G13): their names, signals, processors,
 * stacks and policy. They are gone after destroy.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "threaded.h"

TestSuite(driver_tick_thread_manners, .init = open_rig, .fini = close_rig, .timeout = 30);

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

static struct seen_thread threads[10];

static size_t find_threads(const char *prefix)
{
	size_t count = 0;
	DIR *tasks = opendir("/proc/self/task");
	cr_assert(tasks != NULL);
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
		struct seen_thread thread = {.id = (pid_t)atoi(entry->d_name)};
		if (thread.id == 0)
			continue;
		read_name(thread.id, thread.name);
		if (strncmp(thread.name, prefix, strlen(prefix)) == 0 && count < 10)
			threads[count++] = thread;
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

/*
 * A new thread blocks whatever there is, stops included, until the C library has set its mask. The
 * suite's timeout is the watchdog.
 */
static void await_begun(pid_t id)
{
	while (!~(blocked_signals(id) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)))
		sched_yield();
}

Test(driver_tick_thread_manners, and_workers_carry_the_prefix_of_the_config_in_their_names)
{
	static const struct {
		const char *given, *prefix;
		size_t wanted;
	} rows[] = {{NULL, "tw-tick", 1},
		    {NULL, "tw-grow", 1},
		    {NULL, "tw-", 5},
		    {"abcdefghijklmnop", "abcdefghi-", 5},
		    {"abcdefghijklmnop", "abcdefghi-tick", 1},
		    {"abcdefghijklmnop", "tw", 0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_service_config cfg = {
		    .size = sizeof(cfg), .workers = 3, .thread_name = rows[i].given};
		reopen_rig(&cfg);
		expect_eq(find_threads(rows[i].prefix), rows[i].wanted);
	}
}

/* The caller's own mask stays as it was. */
Test(driver_tick_thread_manners, and_workers_block_all_signals_but_their_own_faults)
{
	static const int open[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGTRAP,
				   SIGABRT, SIGSYS, SIGKILL, SIGSTOP};
	uint64_t wanted = UINT64_C(0x7fffffff) | UINT64_C(1) << (SIGRTMIN + 2);
	uint64_t looked_at = wanted, own = blocked_signals(gettid());
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		wanted &= ~(UINT64_C(1) << (open[i] - 1));
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2};
	reopen_rig(&cfg);
	expect_eq(find_threads("tw-"), 4);
	for (int i = 0; i < 4; i++) {
		await_begun(threads[i].id);
		cr_assert((blocked_signals(threads[i].id) & looked_at) == wanted, "%s blocks %llx",
			  threads[i].name, (unsigned long long)blocked_signals(threads[i].id));
	}
	expect_eq(blocked_signals(gettid()), own);
}

Test(driver_tick_thread_manners, and_workers_take_their_affinity_from_the_config)
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
	reopen_rig(&cfg);
	expect_eq(find_threads("tw-"), 4);
	for (int i = 0; i < 4; i++) {
		expect_eq(sched_getaffinity(threads[i].id, sizeof(seen), &seen), 0);
		cr_assert(CPU_EQUAL(&seen, &wanted), "%s", threads[i].name);
	}
	expect_eq(sched_getaffinity(0, sizeof(seen), &seen), 0);
	cr_assert(CPU_EQUAL(&seen, &mine));
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

Test(driver_tick_thread_manners, and_workers_take_their_stack_size_from_the_config)
{
	/* Ascending, because a cached stack may be larger than the one that is asked for. */
	static const struct {
		size_t given;
		int wanted_kib;
	} rows[] = {{768 << 10, 768}, {0, 1024}, {3 << 20, 3072}};
	for (int i = 0; i < 6; i++) {
		int wanted_kib = rows[i / 2].wanted_kib;
		struct tw_service_config cfg = {.size = sizeof(cfg),
						.stack_size = rows[i / 2].given};
		cfg.executor = i % 2 ? NULL : tw_executor_inline();
		reopen_rig(&cfg);
		struct probe probe = PROBE(&rig, 1);
		probe.act = note_stack_size;
		probe_schedule(&probe, 0);
		rig_advance(&rig, MS);
		await_runs(rig.service, 1);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
		expect_ge(probe.answer, wanted_kib);
		expect_lt(probe.answer, wanted_kib + 192); /* ThreadSanitizer adds 130 */
	}
}

/* Real-time scheduling may be refused; if not, the tick thread has it, and the others do not. */
Test(driver_tick_thread_manners, takes_its_policy_from_the_config)
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
		expect_eq(find_threads("tw-tick"), 1);
		expect_eq(sched_getscheduler(threads[0].id) & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
		size_t count = find_threads("tw-"), fifo = 0;
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

Test(driver_tick_thread_manners, and_workers_are_gone_after_destroy)
{
	for (int i = 0; i < 20; i++) {
		struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 4};
		reopen_rig(&cfg);
	}
	reopen_rig(NULL);
	while (find_threads("tw") > 0) /* a joined thread may show for a moment */
		sched_yield();
}
