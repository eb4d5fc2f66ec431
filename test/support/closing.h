/* A close on a thread of its own, beside a test that carries out what the close waits for. */
#ifndef TEST_SUPPORT_CLOSING_H
#define TEST_SUPPORT_CLOSING_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "expect.h"
#include "queue_executor.h"

struct closing {
	tw_service *service;
	enum tw_close_mode mode;
	uint64_t timeout_ns;
	atomic_bool ended;
	int answer;
	uint64_t took_ns;
	pthread_t thread;
};

static inline void *closing_main(void *arg)
{
	struct closing *closing = arg;
	uint64_t begun_ns = tw_clock_now(tw_clock_monotonic());
	closing->answer = tw_service_close(closing->service, closing->mode, closing->timeout_ns);
	closing->took_ns = tw_clock_now(tw_clock_monotonic()) - begun_ns;
	closing->ended = true;
	return NULL;
}

static inline void closing_start(struct closing *closing, tw_service *service,
				 enum tw_close_mode mode, uint64_t timeout_ns)
{
	*closing = (struct closing){.service = service, .mode = mode, .timeout_ns = timeout_ns};
	expect_eq(pthread_create(&closing->thread, NULL, closing_main, closing), 0);
}

static inline int closing_end(struct closing *closing)
{
	expect_eq(pthread_join(closing->thread, NULL), 0);
	return closing->answer;
}

/* Until the close has handed over so much. */
static inline void closing_await(struct queue_executor *queue, size_t waiting)
{
	while (queue_executor_waiting(queue) < waiting)
		sched_yield();
}

/* Runs what the queue gets until the close is at its end. */
static inline int closing_run(struct closing *closing, struct queue_executor *queue)
{
	while (!closing->ended) {
		queue_executor_run_all(queue);
		sched_yield();
	}
	return closing_end(closing);
}

#endif
