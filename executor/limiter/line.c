/*
 * The limiter's line: for each priority a list of its jobs in order, and a heap of the priorities,
 * by whose first job is next.
 *
 * So a job joins and leaves in O(1), wherever it stands, and the heap is as small as the number of
 * different priorities. A level that runs empty stays in the heap until it comes to the top, and
 * one whose first job has left keeps its key: both are put right there.
 *
 * With aging a job's level grows by one each aging_ns that it waits, for all alike: so of two jobs
 * the same one is always ahead, and the key is a constant, the instant of its coming less its
 * priority in units of aging_ns. That of a level is its first job's, or that of one before it,
 * which has not come later: so no level gets to the top too late, except for what a thread may lose
 * between reading the clock and taking the lock. Of two with the same key the one with the lower
 * priority has come first.
 *
 * Ranks are not freed before the limiter: at most 65536.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "executor/limiter/line.h"

/* The first level of at least this priority; levels_n: none. */
static uint32_t place_of(const struct tw__line *line, int32_t priority)
{
	uint32_t from = 0, to = line->levels_n;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (line->levels[middle]->priority < priority)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct tw__priority_level *level_at(const struct tw__line *line, uint32_t place,
					   int32_t priority)
{
	struct tw__priority_level *level = place < line->levels_n ? line->levels[place] : NULL;
	return level && level->priority == priority ? level : NULL;
}

static struct tw__job *job_of(struct tw__links *links)
{
	return (struct tw__job *)(void *)((char *)links - offsetof(struct tw__job, links));
}

static bool is_empty(const struct tw__priority_level *level)
{
	return level->jobs.next == &level->jobs;
}

/* Of a level that is not empty. */
static int64_t key_of(const struct tw__line *line, const struct tw__priority_level *level)
{
	if (!line->aging_ns)
		/* planted: low_first */
		return -level->priority;
	/* At most 2^62, then at most 2^15 * 2^46 more: no clock overflows it. */
	uint64_t since_ns = job_of(level->jobs.next)->since_ns;
	int64_t since_middle_ns =
	    (int64_t)(since_ns < INT64_MAX ? since_ns : INT64_MAX) - (INT64_C(1) << 62);
	return since_middle_ns - level->priority * (int64_t)line->aging_ns;
}

static int limiter_grow(struct tw__line *line)
{
	uint32_t room = line->levels_room ? 2 * line->levels_room : 4;
	struct tw__priority_level **levels = malloc(room * sizeof(struct tw__priority_level *));
	if (!levels)
		return -ENOMEM;
	if (line->levels_n)
		memcpy((void *)levels, (const void *)line->levels,
		       line->levels_n * sizeof(struct tw__priority_level *));
	free((void *)line->levels);
	line->levels = levels;
	line->levels_room = room;
	return 0;
}

int tw__line_reserve(struct tw__line *line, int32_t priority)
{
	uint32_t place = place_of(line, priority);
	if (tw_likely(level_at(line, place, priority) != NULL))
		return 0;
	if ((line->levels_n == line->levels_room && limiter_grow(line)) ||
	    tw__heap_reserve(&line->heap, line->levels_n + 1))
		return -ENOMEM;
	struct tw__priority_level *level = malloc(sizeof *level);
	if (!level)
		return -ENOMEM;
	*level = (struct tw__priority_level){.priority = priority};
	level->jobs.next = level->jobs.previous = &level->jobs;
	tw__heap_item_init(&level->item, (uint64_t)(priority - INT16_MIN));
	struct tw__priority_level **at = &line->levels[place];
	memmove(at + 1, at, (line->levels_n - place) * sizeof(struct tw__priority_level *));
	*at = level;
	line->levels_n++;
	return 0;
}

void tw__line_add(struct tw__line *line, struct tw__job *job)
{
	/* it is there: tw__line_reserve */
	struct tw__priority_level *level = line->levels[place_of(line, job->priority)];
	job->links = (struct tw__links){.next = &level->jobs, .previous = level->jobs.previous};
	level->jobs.previous->next = &job->links;
	level->jobs.previous = &job->links;
	line->count++;
	line->lows += job->priority < 0;
	if (tw_unlikely(job->options != NULL))
		line->extra += job->options->permits - 1;
	if (!tw__heap_has(&level->item))
		tw__heap_push_reserved(&line->heap, &level->item, key_of(line, level));
}

void tw__line_remove(struct tw__line *line, struct tw__job *job)
{
	TW_ASSERT(line->count > 0);
	job->links.next->previous = job->links.previous;
	job->links.previous->next = job->links.next;
	line->count--;
	line->lows -= job->priority < 0;
	if (tw_unlikely(job->options != NULL))
		line->extra -= job->options->permits - 1;
}

struct tw__job *tw__line_first(struct tw__line *line)
{
	struct tw__heap_item *item;
	while ((item = tw__heap_peek(&line->heap))) {
		struct tw__priority_level *level = (struct tw__priority_level *)(void *)item;
		if (is_empty(level)) {
			tw__heap_remove(&line->heap, item);
			continue;
		}
		int64_t key = key_of(line, level);
		if (key == tw__heap_key(&line->heap, item))
			return job_of(level->jobs.next);
		tw__heap_rekey(&line->heap, item, key);
	}
	return NULL;
}

void tw__line_free(struct tw__line *line)
{
	for (uint32_t i = 0; i < line->levels_n; i++)
		free(line->levels[i]);
	free((void *)line->levels);
	tw__heap_free(&line->heap);
}
