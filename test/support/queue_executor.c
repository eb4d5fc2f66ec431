/* The queueing executor. */
#include "queue_executor.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "expect.h"

static int append(struct queue_executor *queue, tw_batch *batch)
{
	if (queue->tail == queue->room) {
		queue->room = queue->room ? 2 * queue->room : 64;
		queue->tickets = realloc(queue->tickets, queue->room * sizeof(*queue->tickets));
		if (!queue->tickets)
			abort();
	}
	queue->tickets[queue->tail++] = batch;
	return 0;
}

static int submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct queue_executor *queue = (struct queue_executor *)self;
	int answer = 0;
	pthread_mutex_lock(&queue->lock);
	if (queue->refuse > 0) {
		if (queue->refuse != SIZE_MAX)
			queue->refuse--;
		answer = -queue->refuse_with;
	} else {
		for (size_t i = 0; i < n; i++)
			append(queue, batch);
		queue->submits++;
	}
	pthread_mutex_unlock(&queue->lock);
	return answer;
}

static const struct tw_executor_ops queue_ops = {.size = sizeof(queue_ops), .submit = submit};

void queue_executor_open(struct queue_executor *queue)
{
	*queue = (struct queue_executor){
	    .base = {.ops = &queue_ops},
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .refuse_with = EAGAIN,
	};
}

void queue_executor_close(struct queue_executor *queue)
{
	expect_eq(queue_executor_waiting(queue), 0);
	free(queue->tickets);
}

size_t queue_executor_waiting(struct queue_executor *queue)
{
	pthread_mutex_lock(&queue->lock);
	size_t waiting = queue->tail - queue->head;
	pthread_mutex_unlock(&queue->lock);
	return waiting;
}

static tw_batch *take(struct queue_executor *queue)
{
	pthread_mutex_lock(&queue->lock);
	tw_batch *batch = queue->head < queue->tail ? queue->tickets[queue->head++] : NULL;
	pthread_mutex_unlock(&queue->lock);
	return batch;
}

int queue_executor_run_next(struct queue_executor *queue)
{
	tw_batch *batch = take(queue);
	return batch ? tw_run_one(batch) : -ENOENT;
}

int queue_executor_drop_next(struct queue_executor *queue)
{
	tw_batch *batch = take(queue);
	if (!batch)
		return -ENOENT;
	tw_run_return(batch);
	return 0;
}

size_t queue_executor_run_all(struct queue_executor *queue)
{
	size_t ran = 0;
	int answer;
	while ((answer = queue_executor_run_next(queue)) >= 0)
		ran += (size_t)answer;
	return ran;
}
