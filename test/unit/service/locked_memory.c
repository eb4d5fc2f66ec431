/*
 * A process that locks its memory: mlockall with MCL_FUTURE. Each test runs in a child, so that the
 * lock ends with it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/expect.h"

TestSuite(service_locked_memory, .timeout = 60);

enum { KIB = 1024, MIB = 1024 * KIB, CREATE_MOST_MS = 50, LOCKED_MOST_KIB = 16 * KIB };

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* Locked pages of the process, in KiB: what /proc/self/smaps_rollup says. */
static long locked_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	while (file && kib < 0 && fgets(line, sizeof line, file))
		if (strncmp(line, "Locked:", 7) == 0)
			kib = strtol(line + 7, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static long long cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* As an ordinary user, with that limit of locked memory, which counts from now on. */
static void lock_within(rlim_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
	child_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (geteuid() == 0)
		child_eq(setuid(65534), 0); /* root is not bound by the limit */
	child_eq(mlockall(MCL_FUTURE), 0);
}

/*
 * The default config, with two workers on any machine. The processor's time stands for the time to
 * create: other processes do not count in it.
 */
static void serve(void)
{
	enum { TIMERS = 1000 };
	tw_service *service;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	atomic_int runs = 0;
	long long before_ms = cpu_ms();
	child_eq(tw_service_create(&service, &cfg), 0);
	child_eq(cpu_ms() - before_ms <= CREATE_MOST_MS, true);
	for (int i = 0; i < TIMERS; i++)
		child_eq(tw_schedule(service, TW_MILLISECOND, count, &runs, NULL), 0);
	long kib = locked_kib();
	child_eq(kib > 0 && kib <= LOCKED_MOST_KIB, true);
	child_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	child_eq(runs, TIMERS);
	child_eq(tw_service_destroy(service), 0);
}

static void serve_as_root(void *arg)
{
	(void)arg;
	child_eq(mlockall(MCL_FUTURE), 0);
	serve();
}

Test(service_locked_memory, holds_no_reserved_addresses)
{
	if (geteuid() == 0)
		expect_in_child(serve_as_root, NULL);
}

static void serve_within_limit(void *arg)
{
	(void)arg;
	lock_within(8 * (rlim_t)MIB);
	serve();
}

/*
 * The kernel's default limit. Where a process may lock less, not even root may be able to raise it.
 */
Test(service_locked_memory, fits_in_a_limit_of_8_mib)
{
	struct rlimit limit;
	expect_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (limit.rlim_max >= 8 * (rlim_t)MIB)
		expect_in_child(serve_within_limit, NULL);
}

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

static void be_refused(void *arg)
{
	(void)arg;
	tw_service *service = NULL;
	tw_pool *pool = NULL;
	struct tw_pool_config small = {.size = sizeof small, .queue = 16};
	tw_set_misuse_hook(hear);
	lock_within(1024 * KIB); /* room for the pool's table, but not for its threads */
	child_eq(tw_service_create(&service, NULL), -EAGAIN);
	child_eq(service == NULL, true);
	child_eq(strstr(heard, "tw_service_create: the system refuses a thread") != NULL, true);
	child_eq(strstr(heard, "ulimit -l (1024 KiB)") != NULL, true);
	child_eq(tw_pool_create(&pool, &small), -EAGAIN);
	child_eq(strstr(heard, "tw_pool_create: ") != NULL, true);
	child_eq(munlockall(), 0);
	child_eq(tw_service_create(&service, NULL), 0);
	child_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	child_eq(tw_service_destroy(service), 0);
}

Test(service_locked_memory, is_refused_with_a_text_that_names_the_limit)
{
	expect_in_child(be_refused, NULL);
}
