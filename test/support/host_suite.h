/*
 * What suites of tests of a scheduler on an executor begin with: a work rig (work_rig.h), and a
 * queue that can be the scheduler's executor or the service's.
 */
#ifndef TEST_SUPPORT_HOST_SUITE_H
#define TEST_SUPPORT_HOST_SUITE_H

#include "queue_executor.h"
#include "work_rig.h"

static struct work_rig rig; /* one for each file that includes this */
static struct queue_executor queue;

static inline void open_on(tw_executor *executor)
{
	struct tw_scheduler_config config = {.size = sizeof config, .executor = executor};
	queue_executor_open(&queue);
	work_rig_open(&rig, &config);
}

static inline void close_all(void)
{
	work_rig_close(&rig);
	rig.rig.service = NULL;
	queue_executor_close(&queue);
}

/* A suite's .fini: closes what a test has left open. */
static inline void close_left(void)
{
	expect_in_fini();
	if (rig.rig.service)
		close_all();
}

#endif
