/*
 * A strand over a queue that the test pumps, on a clock that it moves: one thread, exact; and tasks
 * that write down when they ran.
 */
#ifndef TEST_SUPPORT_STRANDS_H
#define TEST_SUPPORT_STRANDS_H

#include "queue_executor.h"
#include "rig.h"

struct strand_rig {
	struct rig rig;
	struct queue_executor queue;
	tw_strand *strand;
};

/* A task: its fn is note_run, its release note_release. */
struct noted {
	struct strand_rig *rig;
	int id;
	tw_strand_task_id task;
	void (*act)(struct noted *noted); /* done in the run */
	void (*act_in_release)(struct noted *noted);
	struct noted *other;
	int answer;
	int runs, releases;
	enum tw_fate fate;
	uint64_t ran_at_ns;
};

#define NOTED(rig_, id_) ((struct noted){.rig = (rig_), .id = (id_)})

void strand_rig_open(struct strand_rig *rig);
void strand_rig_close(struct strand_rig *rig);

/* Moves the clock, tick by tick, and runs what is handed over. */
void strand_rig_advance(struct strand_rig *rig, uint64_t ns);

/* Runs what is out on the queue, and what follows from it. */
void strand_rig_pump(struct strand_rig *rig);

void note_run(void *arg);
void note_release(void *arg, enum tw_fate fate);

/* Must succeed. */
void noted_submit(struct noted *noted, uint64_t delay_ns);
void noted_submit_released(struct noted *noted, uint64_t delay_ns);

struct tw_strand_stats strand_stats(tw_strand *strand);

/* Until a thread sleeps in a call on the strand. */
void await_strand_sleeper(tw_strand *strand);

/* The ids of all runs so far, in order. */
void expect_ids(const struct strand_rig *rig, const int *ids, size_t n);
#define expect_order(rig, ...)                      \
	expect_ids(rig, (const int[]){__VA_ARGS__}, \
		   sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

#endif
