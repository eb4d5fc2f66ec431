/*
 * Structs that say their size: from an older program they end early, from a newer one they go on
 * with what must be zero.
 */
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
