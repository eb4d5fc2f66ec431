/*
 * What suites of tests on one work rig (work_rig.h) begin with: the rig, opened as it usually is,
 * and a run of all that is ready.
 */
#ifndef TEST_SUPPORT_WORK_SUITE_H
#define TEST_SUPPORT_WORK_SUITE_H

#include "work_rig.h"

static struct work_rig rig; /* one for each file that includes this */

static inline void open_rig(void)
{
	work_rig_open(&rig, NULL);
}

static inline void close_rig(void)
{
	expect_in_fini();
	work_rig_close(&rig);
}

static inline int run(void)
{
	return tw_scheduler_run(rig.scheduler, TW_NO_LIMIT);
}

#endif
