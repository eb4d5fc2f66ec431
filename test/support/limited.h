/*
 * A limiter on a clock that the test moves by hand, and loads: jobs that write down what became of
 * them. Its executor is the queueing one, emptied after each tick, so that what can start at an
 * instant starts at that instant.
 */
#ifndef TEST_SUPPORT_LIMITED_H
#define TEST_SUPPORT_LIMITED_H

#include "queue_executor.h"
#include "rig.h"

enum { LOAD_ATTEMPTS = 8 };

struct limited {
	struct rig rig;
	struct queue_executor queue;
	tw_limiter *limiter;
	unsigned starts; /* of all loads */
};

struct load {
	struct limited *home;
	int number;
	/* an attempt; asynchronous, ended by a timer. 0: its function ends it, by `answer` */
	uint64_t takes_ns;
	int answer; /* 0, or an error; with `fails`, of that number of first attempts */
	unsigned fails;
	bool held;         /* asynchronous, and ended by the test */
	uint64_t stays_ns; /* time that passes in its first attempt, while nobody looks */

	tw_job job, attempt; /* of submit; what the last attempt saw */
	unsigned starts, dones, releases, stops;
	uint64_t started_ns[LOAD_ATTEMPTS]; /* since the limiter was made */
	struct tw_job_result result;

	/* Of scripts: calls that its callbacks make; what retry.allow says. */
	const char *in_run, *in_started, *in_retried, *in_stop, *in_done, *in_release, *in_asked;
	bool refuses;
	int64_t chosen_ns;
	bool is_accepted, has_done; /* it has been, and has callbacks that say so */
	unsigned settled_in;        /* the step */
};

/* Functions for the kinds of events; each may be NULL. */
struct limited_hooks {
	void (*started)(void *arg, tw_job job, uint64_t id, uint32_t attempt);
	void (*retried)(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns);
	void (*settled)(void *arg, tw_job job, const struct tw_job_result *result);
	void (*idle)(void *arg);
	void *arg;
};

/* The config's `event` calls these, which stay until the next call. */
void limited_hook(struct tw_limiter_config *config, struct limited_hooks hooks);

struct tw_limiter_config limited_config(uint32_t max_concurrency);

/* Made; not started. */
void limited_open(struct limited *home, const struct tw_limiter_config *config);

/* The same, on a service with this config. */
void limited_open_in(struct limited *home, const struct tw_service_config *service,
		     const struct tw_limiter_config *config);

/* Nothing may be left. */
void limited_close(struct limited *home);

/* Runs what the executor has. */
void limited_pump(struct limited *home);

/* Tick by tick, each with a pump. */
void limited_advance(struct limited *home, uint64_t ns);

/* Time passes and nobody looks: neither the driver nor the executor. */
void limited_pass(struct limited *home, uint64_t ns);

/* Since the limiter was made. */
uint64_t limited_now(const struct limited *home);

struct tw_limiter_stats limited_stats(struct limited *home);

/* A task for the load, to be filled in; and its submit, which must succeed. */
struct tw_limiter_task load_task(struct load *load);
void load_submit_task(struct load *load, const struct tw_limiter_task *task);
void load_submit(struct load *load);

/* A job's function that returns 0. */
int job_succeeds(void *arg, struct tw_job_run *run);

/* Return when a thread waits for room in the line, or for the limiter's jobs to end. */
void await_job_waiter(tw_limiter *limiter, tw_job job); /* for the job's end */
void limited_await_room_waiter(struct limited *home);
void limited_await_end_waiter(struct limited *home);

/* A thread that submits a load as soon as there is room for it. */
struct submitter {
	struct load *load;
	struct tw_limiter_task task;
	int answer;
	pthread_t thread;
};

/* The task's wait_ns is TW_FOREVER if it is 0. Returns when the thread waits. */
void submitter_begin(struct submitter *submitter, struct load *load, struct tw_limiter_task task);

/* Waits for its end. Returns what the submit answered. */
int submitter_end(struct submitter *submitter);

/* "ok", "failed EIO", "cancelled", "timed out", "dropped"; with an error that is not the usual. */
const char *load_status(const struct tw_job_result *result);

/* It has settled once, so. */
void expect_settled(const struct load *load, enum tw_job_status status, int error);

#endif
