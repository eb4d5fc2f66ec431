/*
 * The classic thread-safe timer: a heap under a mutex, and a thread that sleeps on a condition
 * variable until the first deadline. Made well: the thread is signaled only if it would oversleep,
 * and outside the lock. It takes the timers that are due in batches and runs them outside the lock.
 * Each call reads the exact clock, as a call with a delay must.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench/due.h"
#include "bench/heap.h"
#include "bench/measure.h"
#include "bench/candidate.h"

struct heap_mutex {
	/* of all below but the callbacks' fn and arg once they are copied out */
	pthread_mutex_t lock;
	pthread_cond_t earlier;
	struct heap heap;
	struct heap_timer *timers;
	uint64_t sleeps_until_ns; /* 0: the thread is awake and will look by itself */
	uint64_t wakeups;
	bool stop;
	struct due_batch due;
	pthread_t thread;
};

static void sleep_until_first(struct heap_mutex *self)
{
	uint64_t first_ns = heap_first_ns(&self->heap);
	struct timespec t = {.tv_sec = (time_t)(first_ns / 1000000000),
			     .tv_nsec = (long)(first_ns % 1000000000)};
	self->sleeps_until_ns = first_ns;
	if (first_ns == UINT64_MAX)
		pthread_cond_wait(&self->earlier, &self->lock);
	else
		pthread_cond_timedwait(&self->earlier, &self->lock, &t);
	self->sleeps_until_ns = 0;
	self->wakeups++;
}

static void *timer_thread(void *me)
{
	struct heap_mutex *self = me;
	pthread_mutex_lock(&self->lock);
	while (!self->stop) {
		uint64_t at_ns = now_ns();
		bool any = heap_first_ns(&self->heap) <= at_ns;
		while (heap_first_ns(&self->heap) <= at_ns) {
			struct heap_timer *timer = heap_take(&self->heap);
			due_add(&self->due, timer->fn, timer->arg);
		}
		due_run(&self->due);
		if (!any)
			sleep_until_first(self);
	}
	pthread_mutex_unlock(&self->lock);
	return NULL;
}

static bool start(struct heap_mutex *self)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&self->earlier, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&self->lock, NULL);
	self->due.lock = &self->lock;
	return pthread_create(&self->thread, NULL, timer_thread, self) == 0;
}

static void release(struct heap_mutex *self)
{
	free(self->heap.nodes);
	free(self->timers);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct heap_mutex *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	if (heap_init(&self->heap, &self->timers, setup->slots) && start(self))
		return self;
	release(self);
	return NULL;
}

static void destroy(void *me)
{
	struct heap_mutex *self = me;
	pthread_mutex_lock(&self->lock);
	self->stop = true;
	pthread_mutex_unlock(&self->lock);
	pthread_cond_signal(&self->earlier);
	pthread_join(self->thread, NULL);
	pthread_cond_destroy(&self->earlier);
	pthread_mutex_destroy(&self->lock);
	release(self);
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct heap_mutex *self = me;
	struct heap_timer *timer = &self->timers[slot];
	uint64_t deadline_ns = now_ns() + delay_ns;
	pthread_mutex_lock(&self->lock);
	timer->fn = fn;
	timer->arg = arg;
	heap_add(&self->heap, timer, deadline_ns);
	bool oversleeps = deadline_ns < self->sleeps_until_ns;
	pthread_mutex_unlock(&self->lock);
	if (oversleeps)
		pthread_cond_signal(&self->earlier);
	return 0;
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct heap_mutex *self = me;
	self->timers[slot].period_ms = (uint32_t)(period_ns / TICK_NS);
	return schedule(me, 0, slot, period_ns, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct heap_mutex *self = me;
	struct heap_timer *timer = &self->timers[slot];
	pthread_mutex_lock(&self->lock);
	bool pending = heap_has(timer);
	if (pending)
		heap_remove(&self->heap, timer);
	pthread_mutex_unlock(&self->lock);
	return pending;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct heap_mutex *self = me;
	struct heap_timer *timer = &self->timers[slot];
	uint64_t deadline_ns = now_ns() + delay_ns;
	pthread_mutex_lock(&self->lock);
	bool pending = heap_has(timer);
	if (pending)
		heap_retime(&self->heap, timer, deadline_ns);
	bool oversleeps = pending && deadline_ns < self->sleeps_until_ns;
	pthread_mutex_unlock(&self->lock);
	if (oversleeps)
		pthread_cond_signal(&self->earlier);
	return pending;
}

static void view(void *me, struct candidate_view *out)
{
	struct heap_mutex *self = me;
	pthread_mutex_lock(&self->lock);
	*out = (struct candidate_view){.pending = self->heap.count,
				       .wakeups = self->wakeups,
				       .user_bytes = sizeof(struct heap_timer)};
	pthread_mutex_unlock(&self->lock);
}

const struct candidate candidate_heap_mutex = {
    .name = "heap-mutex",
    .what = "binary heap with indices, mutex, condition variable, a thread that runs due timers",
    .workloads = ON_ALL,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
