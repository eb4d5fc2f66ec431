/*
 * The limiter's queue: for each priority a list of its jobs in order, and a heap of the priority
 * levels.
 *
 * So a job joins and leaves in O(1), wherever it is, and the heap is as small as the number of
 * different priorities. A level that runs empty stays in the heap until it comes to the top.
 *
 * Levels are not freed before the limiter: at most 65536.
 */
#include <string.h>

#include "executor/limiter/job_queue.h"

/* The first level of at least this priority; levels_n: none. */
static uint32_t index_of(const struct tw__job_queue *queue, int32_t priority)
{
	uint32_t from = 0, to = queue->levels_n;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (queue->levels[middle]->priority < priority)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct tw__priority_level *level_at(const struct tw__job_queue *queue, uint32_t index,
					   int32_t priority)
{
	struct tw__priority_level *level = index < queue->levels_n ? queue->levels[index] : NULL;
	return level && level->priority == priority ? level : NULL;
}

static struct tw__job *job_of(struct tw__links *links)
{
	return TW__OWNER(struct tw__job, links, links);
}

static int limiter_grow(struct tw__job_queue *queue)
{
	uint32_t room = queue->levels_room ? 2 * queue->levels_room : 4;
	struct tw__priority_level **levels = malloc(room * sizeof(struct tw__priority_level *));
	if (!levels)
		return -ENOMEM;
	if (queue->levels_n)
		memcpy((void *)levels, (const void *)queue->levels,
		       queue->levels_n * sizeof(struct tw__priority_level *));
	free((void *)queue->levels);
	queue->levels = levels;
	queue->levels_room = room;
	return 0;
}

int tw__job_queue_reserve(struct tw__job_queue *queue, int32_t priority)
{
	uint32_t index = index_of(queue, priority);
	if (tw_likely(level_at(queue, index, priority) != NULL))
		return 0;
	if ((queue->levels_n == queue->levels_room && limiter_grow(queue)) ||
	    tw__heap_reserve(&queue->heap, queue->levels_n + 1))
		return -ENOMEM;
	struct tw__priority_level *level = malloc(sizeof *level);
	if (!level)
		return -ENOMEM;
	*level = (struct tw__priority_level){.priority = priority};
	level->jobs.next = level->jobs.previous = &level->jobs;
	tw__heap_item_init(&level->item, (uint64_t)(priority - INT16_MIN));
	struct tw__priority_level **at = &queue->levels[index];
	memmove(at + 1, at, (queue->levels_n - index) * sizeof(struct tw__priority_level *));
	*at = level;
	queue->levels_n++;
	return 0;
}

void tw__job_queue_add(struct tw__job_queue *queue, struct tw__job *job)
{
	/* it is there: tw__job_queue_reserve */
	struct tw__priority_level *level = queue->levels[index_of(queue, job->priority)];
	job->links = (struct tw__links){.next = &level->jobs, .previous = level->jobs.previous};
	level->jobs.previous->next = &job->links;
	level->jobs.previous = &job->links;
	queue->count++;
	queue->lows += job->priority < 0;
	if (tw_unlikely(job->options != NULL))
		queue->extra += job->options->permits - 1;
	if (!tw__heap_has(&level->item))
		/* planted: low_first */
		tw__heap_push_reserved(&queue->heap, &level->item, -level->priority);
}

void tw__job_queue_remove(struct tw__job_queue *queue, struct tw__job *job)
{
	TW_ASSERT(queue->count > 0);
	job->links.next->previous = job->links.previous;
	job->links.previous->next = job->links.next;
	queue->count--;
	queue->lows -= job->priority < 0;
	if (tw_unlikely(job->options != NULL))
		queue->extra -= job->options->permits - 1;
}

struct tw__job *tw__job_queue_first(struct tw__job_queue *queue)
{
	struct tw__heap_item *item;
	while ((item = tw__heap_peek(&queue->heap))) {
		struct tw__priority_level *level = (struct tw__priority_level *)(void *)item;
		if (level->jobs.next != &level->jobs)
			return job_of(level->jobs.next);
		tw__heap_remove(&queue->heap, item);
	}
	return NULL;
}

void tw__job_queue_free(struct tw__job_queue *queue)
{
	for (uint32_t i = 0; i < queue->levels_n; i++)
		free(queue->levels[i]);
	free((void *)queue->levels);
	tw__heap_free(&queue->heap);
}
