/*
 * Structs that say their size: from an older program they end early, from a newer one they go on
 * with what must be zero.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/support/rig_suite.h"

TestSuite(service_sizes, .init = open_rig, .fini = close_rig, .timeout = 30);

/* What lies behind an older program's struct is not looked at, not even to be thrown away. */
Test(service_sizes, of_an_older_task_may_end_where_memory_does)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = offsetof(struct tw_task, flags);
	struct probe probe = PROBE(&rig, 1);
	struct tw_task whole = {.size = size, .fn = probe_run, .arg = &probe, .when_ns = 3 * MS};
	char *pages =
	    mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(pages != MAP_FAILED);
	expect_eq(mprotect(pages + page, page, PROT_NONE), 0);
	void *older = memcpy(pages + page - size, &whole, size);
	expect_eq(tw_schedule_task(rig.service, older, &probe.timer), 0);
	rig_advance(&rig, 3 * MS);
	expect_ran_at(&probe, RIG_START_NS + 3 * MS);
	expect_eq(munmap(pages, 2 * page), 0);
}

Test(service_sizes, of_an_older_period_end_it_early)
{
	struct probe probe = PROBE(&rig, 1);
	struct tw_period older;
	memset(&older, 0xa5, sizeof(older));
	older.size = offsetof(struct tw_period, mode);
	older.first_ns = older.period_ns = MS;
	expect_eq(tw_schedule_every(rig.service, &older, probe_run, &probe, &probe.timer), 0);
	for (int i = 0; i < 10; i++)
		rig_advance(&rig, MS);
	expect_eq(probe.runs, 10);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

Test(service_sizes, of_a_newer_period_may_bring_zeroes_only)
{
	struct probe probe = PROBE(&rig, 1);
	struct {
		struct tw_period known;
		unsigned char tail[24];
	} newer;
	memset(&newer, 0, sizeof(newer));
	newer.known = rate_of(MS, MS, 2);
	newer.known.size = sizeof(newer);
	static const size_t places[] = {0, 11, 23};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		newer.tail[places[i]] = 1;
		expect_eq(
		    tw_schedule_every(rig.service, &newer.known, probe_run, &probe, &probe.timer),
		    -E2BIG);
		newer.tail[places[i]] = 0;
	}
	expect_eq(stats_of(rig.service).scheduled, 0);
	expect_eq(tw_schedule_every(rig.service, &newer.known, probe_run, &probe, &probe.timer), 0);
	rig_advance(&rig, SECOND);
	expect_ge(probe.runs, 1);
	tw_cancel(rig.service, probe.timer);
}
