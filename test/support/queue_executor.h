/*
 * An executor that keeps tickets in a queue until the test runs them, on any thread, gives them
 * back, or refuses them.
 */
#ifndef TEST_SUPPORT_QUEUE_EXECUTOR_H
#define TEST_SUPPORT_QUEUE_EXECUTOR_H

#include <pthread.h>
#include <stddef.h>

#include "tickwheel.h"

struct queue_executor {
	tw_executor base;
	pthread_mutex_t lock;
	tw_batch **tickets; /* those from head to tail wait */
	size_t head, tail, room;
	size_t submits;  /* accepted ones */
	size_t refuse;   /* number of further submits to refuse; SIZE_MAX: all */
	int refuse_with; /* the errno of a refusal */
};

void queue_executor_open(struct queue_executor *queue);
void queue_executor_close(struct queue_executor *queue); /* no ticket may wait any more */

size_t queue_executor_waiting(struct queue_executor *queue);

/* What tw_run_one says of the next ticket; -ENOENT: none waits. */
int queue_executor_run_next(struct queue_executor *queue);

/* Gives the next ticket back; -ENOENT: none waits. */
int queue_executor_drop_next(struct queue_executor *queue);

/* Runs all waiting batches. Returns the number of callbacks that ran. */
size_t queue_executor_run_all(struct queue_executor *queue);

#endif
