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

/* One timer that is handed over late_ns after its tick. */
static inline void be_late(struct probe *probe, uint64_t late_ns)
{
	probe_schedule(probe, MS);
	rig_advance(&rig, 0); /* files it: its tick is known */
	uint64_t due_ns = rig_now(&rig) + MS;
	expect_eq(tw_clock_manual_set(rig.clock, due_ns + late_ns), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	rig_advance_to(&rig, rig_tick_of(&rig, due_ns + late_ns)); /* the next begins at a tick */
}

#endif
