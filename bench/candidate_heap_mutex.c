/*
 * The classic thread-safe timer: a heap under a mutex, and a thread that sleeps on a condition
 * variable until the first deadline. Made well: the thread is signaled only if it would oversleep,
 * and outside the lock. It takes the timers that are due in batches and runs them outside the lock.
 * Each call reads the exact clock, as a call with a delay must. Compiled once for each arity: two
 * here, four by candidate_heap4_mutex.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench/heap.h"
#include "bench/measure.h"
#include "bench/candidate.h"

#ifndef HEAP_ARITY
#define HEAP_ARITY 2
#define HEAP_CANDIDATE candidate_heap_mutex
#define HEAP_NAME "heap-mutex"
#define HEAP_WHAT \
	"binary heap with indices, mutex, condition variable, a thread that runs due timers"
#define HEAP_PEER false
#endif

enum { BATCH = 64 };

struct heap_mutex {
	/* of all below but the callbacks' fn and arg once they are copied out */
	pthread_mutex_t lock;
	pthread_cond_t earlier;
	struct tw__heap heap;
	struct heap_timer *timers;
	uint64_t sleeps_until_ns; /* 0: the thread is awake and will look by itself */
	uint64_t wakeups;
	bool stop;
	pthread_t thread;
};

struct due {
	expiry_fn *fn;
	void *arg;
};

static unsigned take_due(struct heap_mutex *self, uint64_t at_ns, struct due *due)
{
	unsigned count = 0;
	while (count < BATCH && heap_first_ns(&self->heap) <= at_ns) {
		struct heap_timer *timer = heap_take(&self->heap, HEAP_ARITY);
		due[count++] = (struct due){timer->fn, timer->arg};
	}
	return count;
}

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
	struct due due[BATCH];
	pthread_mutex_lock(&self->lock);
	while (!self->stop) {
		unsigned count = take_due(self, now_ns(), due);
		if (count == 0) {
			sleep_until_first(self);
			continue;
		}
		pthread_mutex_unlock(&self->lock);
		for (unsigned i = 0; i < count; i++)
			due[i].fn(due[i].arg);
		pthread_mutex_lock(&self->lock);
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
	return pthread_create(&self->thread, NULL, timer_thread, self) == 0;
}

static void release(struct heap_mutex *self)
{
	tw__heap_free(&self->heap);
	free(self->timers);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct heap_mutex *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	bool ok = heap_init(&self->heap, setup->slots, HEAP_ARITY) && self->timers;
	for (uint32_t slot = 0; ok && slot < setup->slots; slot++)
		self->timers[slot].entry.index = TW__HEAP_NOWHERE;
	if (ok && start(self))
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
	heap_add(&self->heap, timer, deadline_ns, HEAP_ARITY);
	bool oversleeps = deadline_ns < self->sleeps_until_ns;
	pthread_mutex_unlock(&self->lock);
	if (oversleeps)
		pthread_cond_signal(&self->earlier);
	return 0;
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct heap_mutex *self = me;
	self->timers[slot].entry.spare = (uint32_t)(period_ns / TICK_NS);
	return schedule(me, 0, slot, period_ns, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct heap_mutex *self = me;
	struct heap_timer *timer = &self->timers[slot];
	pthread_mutex_lock(&self->lock);
	bool pending = heap_has(timer);
	if (pending)
		heap_remove(&self->heap, timer, HEAP_ARITY);
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
		heap_retime(&self->heap, timer, deadline_ns, HEAP_ARITY);
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

const struct candidate HEAP_CANDIDATE = {
    .name = HEAP_NAME,
    .what = HEAP_WHAT,
    .peer = HEAP_PEER,
    .workloads = ON_ALL,
    .spared = HEAP_PEER ? ON_FIRE | ON_IDLE | ON_MEMORY | ON_STORM | ON_SERVER | ON_PERIODIC : 0,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
