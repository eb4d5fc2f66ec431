/*
 * Creating: each knob in and out of its range, sizes of the config, what a refusal leaves behind.
 * test/unit/misuse has the texts of refusals.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(service_create, .timeout = 60);

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

/* 0, or an error that leaves nothing behind. */
static void expect_answer(const struct tw_service_config *cfg, int answer)
{
	tw_service *service = POISON;
	size_t threads = threads_of_this_process();
	expect_eq(tw_service_create(&service, cfg), answer);
	cr_assert((service == POISON) == (answer != 0));
	if (answer) {
		expect_le(threads_of_this_process(), threads);
		return;
	}
	expect_sound(service);
	expect_eq(tw_service_destroy(service), 0);
}

Test(service_create, without_a_config)
{
	expect_answer(NULL, 0);
	expect_answer(&(struct tw_service_config){0}, 0);
	expect_answer(&(struct tw_service_config)TW_INIT(tw_service_config), 0);
	expect_eq(tw_service_create(NULL, NULL), -EINVAL);
}

/* ------------------------------------------------------------ sizes */

/* What an older program does not know is default, whatever lies behind its struct. */
Test(service_create, with_an_older_config)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = 2 * MS;
	cfg.size = offsetof(struct tw_service_config, thread_name);
	cfg.sched_policy = 12345;
	expect_answer(&cfg, 0);
	cfg.size = offsetof(struct tw_service_config, buckets);
	cfg.buckets = 12345;
	expect_answer(&cfg, 0);
}

/* ------------------------------------------------------------ knobs */

#define MEMBER(name) \
#name, offsetof(struct tw_service_config, name), sizeof((struct tw_service_config){0}.name)

/* Values of a knob: those that are accepted, up to UNTIL, then those that are refused. */
#define UNTIL UINT64_C(0xe0d)

static const struct {
	const char *name;
	size_t at, bytes;
	uint64_t values[20];
} knobs[] = {
    {MEMBER(tick_ns),
     {0, 50000, 50001, MS, 333333333, SECOND, UNTIL, 1, 49999, SECOND + 1, UINT64_MAX}},
    {MEMBER(buckets), {64,    128,   256, 512, 1024, 2048, 4096, 8192, 16384, 32768,
		       65536, UNTIL, 1,   2,   32,   63,   65,   4095, 65537, 131072}},
    {MEMBER(max_timers), {0, 1, 2, 1000, 1 << 20, 1 << 28, UNTIL, (1 << 28) + 1, UINT32_MAX}},
    {MEMBER(lane_entries),
     {0, 1024, 1025, 1 << 20, 1 << 30, UNTIL, 1, 1023, (1 << 30) + 1, UINT32_MAX}},
    {MEMBER(workers), {0, UNTIL, 1, 1025, UINT32_MAX}}, /* beside the rig's executor */
    {MEMBER(drive), {TW_DRIVE_THREAD, TW_DRIVE_MANUAL, UNTIL, 2, UINT32_MAX}},
    {MEMBER(sched_policy), {SCHED_OTHER, UNTIL, 12345, SCHED_FIFO}}, /* without a priority */
    {MEMBER(sched_priority), {0, UNTIL, 1}},                         /* without a policy */
};

Test(service_create, with_knobs_in_and_out_of_range)
{
	for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++) {
		int answer = 0;
		for (const uint64_t *value = knobs[i].values;
		     value < knobs[i].values + 20 && (value == knobs[i].values || *value);
		     value++) {
			struct tw_service_config cfg = rig_config();
			if (*value == UNTIL) {
				answer = -EINVAL;
				continue;
			}
			memcpy((char *)&cfg + knobs[i].at, value, knobs[i].bytes);
			expect_answer(&cfg, answer);
		}
		cr_assert(answer == -EINVAL, "%s", knobs[i].name);
	}
}
