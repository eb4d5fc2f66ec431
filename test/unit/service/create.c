/*
 * Creating: each knob in and out of its range, sizes of the config, what a refusal leaves behind.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(service_create, .timeout = 30);

#define POISON ((tw_service *)0x1234)

static size_t threads_of_this_process(void)
{
	size_t count = 0;
	DIR *tasks = opendir("/proc/self/task");
	cr_assert(tasks != NULL);
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(tasks);
	return count;
}

static void expect_refused(const struct tw_service_config *cfg, int error)
{
	tw_service *service = POISON;
	size_t threads = threads_of_this_process();
	expect_eq(tw_service_create(&service, cfg), error);
	cr_assert(service == POISON);
	expect_le(threads_of_this_process(), threads);
}

static void expect_accepted(const struct tw_service_config *cfg)
{
	tw_service *service = NULL;
	expect_eq(tw_service_create(&service, cfg), 0);
	cr_assert(service != NULL);
	expect_sound(service);
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ plain ways */

Test(service_create, without_a_config)
{
	expect_accepted(NULL);
}

Test(service_create, with_a_config_of_zeros)
{
	struct tw_service_config zeros = {0};
	expect_accepted(&zeros);
	zeros.size = sizeof(zeros);
	expect_accepted(&zeros);
}

Test(service_create, needs_a_place_for_the_service)
{
	expect_eq(tw_service_create(NULL, NULL), -EINVAL);
}

/* ------------------------------------------------------------ sizes */

Test(service_create, without_a_size_takes_nothing_but_zeros)
{
	struct tw_service_config cfg = {.tick_ns = MS};
	expect_refused(&cfg, -EINVAL);
	cfg = (struct tw_service_config){.sched_priority = 1};
	expect_refused(&cfg, -EINVAL);
	cfg = (struct tw_service_config){.drive = TW_DRIVE_MANUAL};
	expect_refused(&cfg, -EINVAL);
}

/* What an older program does not know is default, whatever lies behind its struct. */
Test(service_create, with_an_older_config)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = 2 * MS;
	cfg.size = offsetof(struct tw_service_config, thread_name);
	cfg.sched_policy = 12345;
	expect_accepted(&cfg);
	cfg.size = offsetof(struct tw_service_config, buckets);
	cfg.buckets = 12345;
	expect_accepted(&cfg);
}

Test(service_create, with_a_newer_config)
{
	struct {
		struct tw_service_config known;
		unsigned char tail[40];
	} newer;
	memset(&newer, 0, sizeof(newer));
	newer.known = rig_config();
	newer.known.size = sizeof(newer);
	expect_accepted(&newer.known);
	newer.tail[39] = 1;
	expect_refused(&newer.known, -E2BIG);
	newer.tail[39] = 0;
	newer.tail[0] = 1;
	expect_refused(&newer.known, -E2BIG);
}

/* ------------------------------------------------------------ knobs */

Test(service_create, with_ticks_in_and_out_of_range)
{
	struct tw_service_config cfg = rig_config();
	static const uint64_t good_ns[] = {0, 50 * TW_MICROSECOND, 50001, MS, 333333333, SECOND};
	for (size_t i = 0; i < sizeof(good_ns) / sizeof(good_ns[0]); i++) {
		cfg.tick_ns = good_ns[i];
		expect_accepted(&cfg);
	}
	static const uint64_t bad_ns[] = {1, 49999, SECOND + 1, UINT64_MAX};
	for (size_t i = 0; i < sizeof(bad_ns) / sizeof(bad_ns[0]); i++) {
		cfg.tick_ns = bad_ns[i];
		expect_refused(&cfg, -EINVAL);
	}
}

Test(service_create, with_buckets_in_and_out_of_range)
{
	struct tw_service_config cfg = rig_config();
	for (cfg.buckets = 64; cfg.buckets <= 65536; cfg.buckets *= 2)
		expect_accepted(&cfg);
	static const uint32_t bad[] = {1,    2,    32,    63,     65,        100,
				       4095, 4097, 65537, 131072, UINT32_MAX};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cfg.buckets = bad[i];
		expect_refused(&cfg, -EINVAL);
	}
}

Test(service_create, with_max_timers_in_and_out_of_range)
{
	struct tw_service_config cfg = rig_config();
	static const uint32_t good[] = {0, 1, 2, 1000, 1 << 20, 1 << 28};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cfg.max_timers = good[i];
		expect_accepted(&cfg);
	}
	cfg.max_timers = (1 << 28) + 1;
	expect_refused(&cfg, -EINVAL);
	cfg.max_timers = UINT32_MAX;
	expect_refused(&cfg, -EINVAL);
}

Test(service_create, with_lane_entries_in_and_out_of_range)
{
	struct tw_service_config cfg = rig_config();
	static const uint32_t good[] = {0, 1024, 1025, 1 << 20, 1 << 30};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cfg.lane_entries = good[i];
		expect_accepted(&cfg);
	}
	static const uint32_t bad[] = {1, 1023, (1 << 30) + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cfg.lane_entries = bad[i];
		expect_refused(&cfg, -EINVAL);
	}
}

Test(service_create, with_workers_in_and_out_of_range)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .drive = TW_DRIVE_MANUAL};
	static const uint32_t good[] = {0, 1, 2, 16};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cfg.workers = good[i];
		expect_accepted(&cfg);
	}
	static const uint32_t bad[] = {1025, UINT32_MAX};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cfg.workers = bad[i];
		expect_refused(&cfg, -EINVAL);
	}
}

Test(service_create, with_workers_and_an_executor_is_a_contradiction)
{
	struct tw_service_config cfg = rig_config();
	cfg.workers = 1;
	expect_refused(&cfg, -EINVAL);
}

Test(service_create, with_unknown_modes)
{
	struct tw_service_config cfg = rig_config();
	cfg.drive = (enum tw_drive)2;
	expect_refused(&cfg, -EINVAL);
	cfg.drive = (enum tw_drive) - 1;
	expect_refused(&cfg, -EINVAL);
	cfg = rig_config();
	cfg.sched_policy = 12345;
	expect_refused(&cfg, -EINVAL);
}

/* ------------------------------------------------------------ threads that cannot be made */

Test(service_create, with_an_affinity_that_no_thread_can_have_leaves_nothing_behind)
{
	cpu_set_t none;
	CPU_ZERO(&none);
	struct tw_service_config cfg = {
	    .size = sizeof(cfg),
	    .affinity = &none,
	    .affinity_size = sizeof(none),
	};
	tw_service *service = POISON;
	size_t threads = threads_of_this_process();
	expect_lt(tw_service_create(&service, &cfg), 0);
	cr_assert(service == POISON);
	expect_le(threads_of_this_process(), threads);
}

Test(service_create, with_a_priority_that_no_policy_has_leaves_nothing_behind)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .sched_policy = SCHED_FIFO, .sched_priority = 1000};
	tw_service *service = POISON;
	size_t threads = threads_of_this_process();
	expect_lt(tw_service_create(&service, &cfg), 0);
	cr_assert(service == POISON);
	expect_le(threads_of_this_process(), threads);
}
