/* Actions that write down their runs, for tests of all kinds of schedulers. */
#ifndef TEST_SUPPORT_ACTIONS_H
#define TEST_SUPPORT_ACTIONS_H

#include <errno.h>

#include "rig.h"

enum { LOG_MOST = 4096 };

/* What ran, in order: the ids, and when. */
struct log {
	int ids[LOG_MOST];
	uint64_t at_ns[LOG_MOST];
	int count;
};

struct work {
	struct log *log;
	tw_action_scheduler *scheduler;
	tw_action *action;
	int id;
	int runs;
	int rearms; /* further re-arms */
	int answer; /* what it returns */
	int error;  /* of the last arm */
	void (*act)(struct work *work);
};

int work_run(tw_action *action, void *state);

/* Creates an action without a release, and schedules it. */
static inline int schedule_new(tw_action_scheduler *scheduler, tw_action_fn *fn, void *state,
			       uint64_t delay_ns, tw_action **out)
{
	int r = tw_action_create(out, scheduler, fn, NULL);
	return r ? r : tw_action_schedule(*out, state, delay_ns);
}

/* Made and armed, which must succeed. */
void work_schedule(struct work *work, tw_action_scheduler *scheduler, uint64_t delay_ns);

tw_action_scheduler *scheduler_of(const struct tw_action_scheduler_config *config);
tw_action_scheduler *scheduler_on(tw_service *service, enum tw_action_kind kind);

struct tw_action_scheduler_stats action_stats(tw_action_scheduler *scheduler);

/* The immediate's number, or an error. */
static inline int64_t submit_immediate(tw_action_scheduler *scheduler, tw_fn *fn, void *arg)
{
	tw_immediate immediate = {0};
	int r = tw_immediate_submit(scheduler, fn, arg, &immediate);
	return r ? r : (int64_t)immediate.id;
}

static inline int cancel_immediate(tw_action_scheduler *scheduler, int64_t number)
{
	return tw_immediate_cancel(scheduler, (tw_immediate){(uint64_t)number});
}

/* The ids that ran, in order, are these. */
#define expect_log(log, ...)                           \
	expect_log_is(log, (const int[]){__VA_ARGS__}, \
		      (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
void expect_log_is(const struct log *log, const int *ids, int count);

#endif
