/*
 * What a service takes of the address space, and of a core dump: what it uses, and not what it may
 * come to use. Each test runs in a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/expect.h"

TestSuite(service_address_space, .timeout = 60);

enum { TIMERS = 10 };

#define MIB (INT64_C(1) << 20)
#define MOST_RESERVED (600 * INT64_C(1000000))
#define MOST_UNUSED (16 * MIB)

static void nothing(void *arg)
{
}

static int64_t address_space(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	child_eq(file && fscanf(file, "%ld", &pages) == 1, true);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

/* With two workers on any machine. */
static tw_service *create(void)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	child_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static void end(tw_service *service)
{
	child_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	child_eq(tw_service_destroy(service), 0);
}

/* Ten timers, and a group with one. */
static void use(tw_service *service)
{
	tw_group group;
	for (int i = 0; i < TIMERS; i++)
		child_eq(tw_schedule(service, TW_SECOND, nothing, NULL, NULL), 0);
	child_eq(tw_group_create(&group, service), 0);
	struct tw_task task = {
	    .size = sizeof task, .fn = nothing, .when_ns = TW_SECOND, .group = group};
	child_eq(tw_schedule_task(service, &task, NULL), 0);
}

static void reserve_little(void *arg)
{
	int64_t before = address_space();
	tw_service *service = create();
	use(service);
	child_eq(address_space() - before <= MOST_RESERVED, true);
	end(service);
	child_eq(address_space() - before <= MOST_RESERVED / 2, true); /* the allocator's arenas */
}

Test(service_address_space, is_at_most_600_mb_by_default)
{
	expect_in_child(reserve_little, NULL);
}

/*
 * A service for small programs. Counted is all that is mapped for it, with the lanes of the first
 * thread that schedules, except for the stacks of the service's threads, whose size the program
 * chooses, and the arenas that glibc makes for them.
 */
enum { SMALL = 10000, MOST_SMALL = 2000000, STACK = 256 << 10 };

static int64_t threads(void)
{
	char line[128];
	int n = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && !n && fgets(line, sizeof line, file))
		sscanf(line, "Threads: %d", &n);
	fclose(file);
	return n;
}

static void reserve_for_few(struct tw_service_config *cfg)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
	int64_t before = address_space();
	tw_service *service = NULL;
	cfg->max_timers = SMALL;
	cfg->stack_size = STACK;
	child_eq(tw_service_create(&service, cfg), 0);
	use(service);
	int64_t stacks = (threads() - 1) * (STACK + sysconf(_SC_PAGESIZE));
	child_eq(address_space() - before - stacks < MOST_SMALL, true);
	end(service);
}

static void reserve_on_a_loop(void *arg)
{
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	reserve_for_few(&cfg);
}

static void reserve_on_a_pool(void *arg)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 1, .max_workers = 1};
	reserve_for_few(&cfg);
}

Test(service_address_space, is_below_2_mb_for_few_timers)
{
	expect_in_child(reserve_on_a_loop, NULL);
	expect_in_child(reserve_on_a_pool, NULL);
}

/* ------------------------------------------------------------------- core dumps */

/* Of a mapping in /proc/self/smaps. */
struct mapping {
	int64_t size, resident, anonymous;
	bool is_dumped;
};

/* Bytes of pages that a core dump has although nobody has touched them. */
static int64_t dumped_in_vain(void)
{
	char line[512];
	struct mapping at = {0};
	int64_t sum = 0;
	FILE *file = fopen("/proc/self/smaps", "r");
	child_eq(file != NULL, true);
	while (fgets(line, sizeof line, file)) {
		char *value = strchr(line, ':');
		int64_t bytes = value ? strtoll(value + 1, NULL, 10) * 1024 : 0;
		if (strncmp(line, "Size:", 5) == 0)
			at = (struct mapping){.size = bytes};
		else if (strncmp(line, "Rss:", 4) == 0)
			at.resident = bytes;
		else if (strncmp(line, "Anonymous:", 10) == 0)
			at.anonymous = bytes;
		/* the last line of each; the kernel dumps anonymous memory once it was written */
		else if (strncmp(line, "VmFlags:", 8) == 0 && at.anonymous && !strstr(line, " dd"))
			sum += at.size - at.resident;
	}
	fclose(file);
	return sum;
}

/* The program's own static variables are dumped, too, once one of them was written. */
static volatile int written;

static void dump_what_is_used(void *arg)
{
	written = 1;
	int64_t before = dumped_in_vain();
	tw_service *service = create();
	use(service);
	child_eq(dumped_in_vain() - before <= MOST_UNUSED, true);
	end(service);
}

Test(service_address_space, a_core_dump_has_what_is_used)
{
	expect_in_child(dump_what_is_used, NULL);
}

/* ---------------------------------------------------------------------- limits */

/* Under `ulimit -v` the limit is met by a schedule, which changes nothing, and not at creation. */
static void schedule_until_refused(void *arg)
{
	enum { MANY = 4 << 20, MOST_MIB = 128 };
	static tw_timer timers[MANY];
	tw_service *service = NULL;
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	cfg.lane_entries = MANY;
	child_eq(tw_service_create(&service, &cfg), 0);
	struct rlimit limit;
	child_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = (rlim_t)(address_space() + MOST_MIB * MIB);
	child_eq(setrlimit(RLIMIT_AS, &limit), 0);
	int n = 0, r = 0;
	while (n < MANY && !(r = tw_schedule(service, TW_SECOND, nothing, NULL, &timers[n])))
		n++;
	child_eq(r, -ENOMEM);
	child_eq(n >= 100000, true);
	for (int i = 0; i < n; i++)
		child_eq(tw_cancel(service, timers[i]), TW_CANCELLED);
	for (int i = 0; i < n; i += 1000) /* the lane is drained in steps */
		child_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	for (int i = 0; i < n / 2; i++)
		child_eq(tw_schedule(service, TW_SECOND, nothing, NULL, NULL), 0);
	end(service);
}

Test(service_address_space, a_schedule_meets_the_limit)
{
	expect_in_child(schedule_until_refused, NULL);
}
