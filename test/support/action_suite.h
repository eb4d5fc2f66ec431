/*
 * What suites of tests on one scheduler of actions begin with: a rig, an executor that the test
 * empties, and what ran. A suite's .fini is close_left.
 */
#ifndef TEST_SUPPORT_ACTION_SUITE_H
#define TEST_SUPPORT_ACTION_SUITE_H

#include "actions.h"
#include "queue_executor.h"

static struct rig rig;
static struct queue_executor tickets;
static tw_action_scheduler *scheduler;
static tw_action *armed_actions[1024]; /* actions that close_left destroys */
static int armed_count;
static struct log notes; /* of all works */

static inline void open_scheduler(struct tw_action_scheduler_config config)
{
	notes.count = 0;
	config.size = sizeof config;
	config.service = rig.service;
	scheduler = scheduler_of(&config);
}

/* On a service that the test drives; its callbacks run inline. */
static inline void open_with(struct tw_action_scheduler_config config)
{
	rig_open(&rig, NULL);
	open_scheduler(config);
}

static inline void open_on(enum tw_action_kind kind)
{
	open_with((struct tw_action_scheduler_config){.kind = kind});
}

/* A service whose executor is the tickets. */
static inline void open_queue(void)
{
	struct tw_service_config cfg = rig_config();
	queue_executor_open(&tickets);
	cfg.executor = &tickets.base;
	rig_open(&rig, &cfg);
}

/* Without a service. The test flushes it. */
static inline void open_by_caller(enum tw_action_kind kind, uint32_t flags)
{
	open_scheduler((struct tw_action_scheduler_config){
	    .kind = kind, .flags = TW_ACTION_FLAG_BY_CALLER | flags});
}

static inline void arm(struct work *work, uint64_t delay_ns)
{
	work_schedule(work, scheduler, delay_ns);
	armed_actions[armed_count++] = work->action;
}

static inline void close_scheduler(void)
{
	while (armed_count)
		tw_action_destroy(armed_actions[--armed_count]);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	scheduler = NULL;
}

static inline void close_left(void)
{
	expect_in_fini();
	if (scheduler)
		close_scheduler();
	if (rig.service)
		rig_close(&rig);
	rig.service = NULL;
	if (tickets.base.ops)
		queue_executor_close(&tickets);
}

#endif
