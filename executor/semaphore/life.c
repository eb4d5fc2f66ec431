/* Making and freeing semaphores; their gauges. */
#include <string.h>

#include "executor/semaphore/internal.h"

/* --------------------------------------------------------------- life, stats */

int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			int32_t capacity)
{
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	if (capacity < 0)
		return tw__invalid("capacity %d is negative", (int)capacity);
	if (executor && !tw__executor_is_sound(executor))
		return tw__invalid(TW__UNSOUND);
	tw_semaphore *s = aligned_alloc(_Alignof(tw_semaphore), sizeof *s);
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof *s);
	int r = tw__base_hold(&s->base, service, executor);
	if (r) {
		free(s);
		return r;
	}
	s->service = service;
	tw_store_relaxed(&s->word, (uint64_t)capacity << CAPACITY_SHIFT);
	pthread_mutex_init(&s->lock, NULL);
	tw__nodes_init(&s->nodes, sizeof(struct function), TW__NODES_MAX);
	*out = s;
	return 0;
}

static void semaphore_free_all(tw_semaphore *s)
{
	tw__nodes_fini(&s->nodes);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int semaphore_end(tw_semaphore *s)
{
	pthread_mutex_lock(&s->lock);
	bool busy = s->waiting || s->out;
	pthread_mutex_unlock(&s->lock);
	if (busy)
		return -EBUSY;
	tw__base_let_go(&s->base);
	semaphore_free_all(s);
	return 0;
}

int tw_semaphore_destroy(tw_semaphore *s)
{
	return TW__BASE_DESTROY(s, semaphore_free_all, semaphore_end);
}

int tw_semaphore_stats(tw_semaphore *s, struct tw_semaphore_stats *out)
{
	int r = TW__OUT_CHECK(tw_semaphore_stats, out, available);
	if (!r)
		r = TW__CHECK(s, "semaphore");
	if (r)
		return r;
	struct tw_semaphore_stats stats = {0};
	pthread_mutex_lock(&s->lock);
	uint64_t word = tw_load_relaxed(&s->word);
	stats.waiters = s->waiting;
	stats.waiting_threads = s->waiting_threads;
	stats.handed = s->out;
	stats.refused = s->refused;
	pthread_mutex_unlock(&s->lock);
	stats.capacity = capacity_of(word);
	stats.held = held_of(word);
	stats.available = stats.held < stats.capacity ? stats.capacity - stats.held : 0;
	stats.debt = stats.held > stats.capacity ? stats.held - stats.capacity : 0;
	stats.over_releases = tw_load_relaxed(&s->over_releases);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
