/* What suites of tests on persistent timers begin with: one is created, armed and disarmed. */
#ifndef TEST_SUPPORT_PERSISTENT_SUITE_H
#define TEST_SUPPORT_PERSISTENT_SUITE_H

#include "rig.h"

static inline void create(struct probe *probe, uint64_t when_ns)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = probe_run,
			       .arg = probe,
			       .when_ns = when_ns,
			       .flags = TW_TASK_PERSISTENT};
	expect_eq(tw_schedule_task(probe->rig->service, &task, &probe->timer), 0);
}

static inline void arm(struct probe *probe, uint64_t delay_ns)
{
	expect_eq(tw_reset(probe->rig->service, probe->timer, delay_ns), 0);
}

static inline void expect_disarm(struct probe *probe, int outcome)
{
	expect_eq(tw_disarm(probe->rig->service, probe->timer), outcome);
}

#endif
