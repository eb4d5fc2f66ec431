/*
 * What suites begin with whose tests are on one rig: open_rig is their init, close_rig their fini.
 * The queue is there for tests that want its executor.
 */
#ifndef TEST_SUPPORT_RIG_SUITE_H
#define TEST_SUPPORT_RIG_SUITE_H

#include "queue_executor.h"
#include "rig.h"

static struct rig rig; /* one for each file that includes this */
static struct queue_executor queue;

static inline void open_rig(void)
{
	queue_executor_open(&queue);
	rig_open(&rig, NULL);
}

static inline void close_rig(void)
{
	expect_in_fini();
	rig_close(&rig);
	queue_executor_close(&queue);
}

/* In the place of the rig that is open, which is closed as at the end of a test. */
static inline void reopen_rig(const struct tw_service_config *cfg)
{
	rig_close(&rig);
	queue_executor_close(&queue);
	queue_executor_open(&queue);
	rig_open(&rig, cfg);
}

static inline void reopen_on_queue(void)
{
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	reopen_rig(&cfg);
}

#endif
