/*
 * A scheduler on a clock that the test moves by hand, with a manual host, and jobs: tasks that
 * write down what became of them, and take time on that clock.
 */
#ifndef TEST_SUPPORT_WORK_RIG_H
#define TEST_SUPPORT_WORK_RIG_H

#include "test/support/rig.h"

enum { WORK_RIG_RUNS = 4096 };

struct work_rig {
	struct rig rig;
	tw_scheduler *scheduler;
	unsigned wanted; /* times that `wanted` was called */
	int order[WORK_RIG_RUNS];
	unsigned ran; /* turns so far; order[] has their jobs' ids */
};

/*
 * On a manual clock, with a service that the test drives; cfg NULL: manual host, `wanted` counted.
 */
void work_rig_open(struct work_rig *rig, const struct tw_scheduler_config *cfg);
void work_rig_close(struct work_rig *rig);

/* What work_rig_open takes for NULL, to be changed. */
struct tw_scheduler_config work_rig_config(struct work_rig *rig);

struct tw_scheduler_stats work_rig_stats(struct work_rig *rig);

/* Time passes while something runs; the service is not driven. */
void work_rig_spend(struct work_rig *rig, uint64_t ns);

/* Must stay where it is while its task lives. */
struct job {
	struct work_rig *rig;
	int id;
	tw_scheduler_task_id task;
	unsigned units; /* of work left; each takes unit_ns. It gives way if it should */
	uint64_t unit_ns;
	int result;                                        /* what the last turn returns */
	int (*act)(struct job *job, struct tw_turn *turn); /* instead of all that, if not NULL */
	struct job *other;                                 /* for act */
	int answer;                                        /* for act */
	unsigned turns, timed_out;
	unsigned left[16]; /* units after each turn */
	unsigned told;     /* times that done was called */
	enum tw_fate fate;
	int told_result;
};

#define JOB(rig_, id_) ((struct job){.rig = (rig_), .id = (id_)})

int job_turn(struct tw_turn *turn, void *arg);
void job_done(void *arg, enum tw_fate fate, int result);

/* Post it, which must succeed; with job_done. */
void job_post(struct job *job, enum tw_priority priority);
void job_post_delayed(struct job *job, enum tw_priority priority, uint64_t delay_ns);
void job_post_timeout(struct job *job, int64_t timeout_ns);

/* Its end was reported once, in this way. */
void expect_told(const struct job *job, enum tw_fate fate, int result);

/* The turns so far were those of these jobs. */
void expect_order(const struct work_rig *rig, const int *ids, unsigned n);
#define EXPECT_ORDER(rig, ...)                          \
	expect_order((rig), (const int[]){__VA_ARGS__}, \
		     sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

#endif
