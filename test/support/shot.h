/* Timers on the real clock, and services with a pool, for tests whose bounds are one-sided. */
#ifndef TEST_SUPPORT_SHOT_H
#define TEST_SUPPORT_SHOT_H

#include <semaphore.h>
#include <stdatomic.h>

#include "rig.h"

/* A one-shot that notes whether it came early. */
struct shot {
	tw_service *service;
	tw_timer timer;
	uint64_t due_ns;
	atomic_int runs;
	atomic_int early;
	sem_t *done; /* may be NULL */
};

/* Its callback. */
void shoot(void *arg);

void schedule_shot(struct shot *shot, uint64_t delay_ns);

/* Takes a semaphore `times` times. */
void await(sem_t *semaphore, size_t times);

/*
 * Until the tick thread has slept for 0.3 s on end: one that wakes up again and again never does,
 * and meets the suite's timeout. How long it may tick on before that, and how often it wakes up
 * until it gets its processor, is no affair of a test's.
 */
void await_quiet(tw_service *service);

/* On the monotonic clock; workers 0: the default. */
tw_service *open_service(uint32_t workers);

/* Closes with TW_CLOSE_DROP, checks, destroys. */
void close_service(tw_service *service);

#endif
