/*
 * A heap as a loop would use it: no lock, deadlines from the loop's cached time, one turn per loop.
 */
#include <stdlib.h>

#include "bench/heap.h"
#include "bench/measure.h"
#include "bench/candidate.h"

struct heap_bare {
	uint64_t loop_ns;
	struct heap heap;
	struct heap_timer *timers;
};

static void destroy(void *me)
{
	struct heap_bare *self = me;
	free(self->heap.nodes);
	free(self->timers);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct heap_bare *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->loop_ns = now_ns();
	if (heap_init(&self->heap, &self->timers, setup->slots))
		return self;
	destroy(self);
	return NULL;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	heap_add(&self->heap, timer, self->loop_ns + delay_ns);
	return 0;
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct heap_bare *self = me;
	self->timers[slot].period_ms = (uint32_t)(period_ns / TICK_NS);
	return schedule(me, 0, slot, period_ns, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	if (!heap_has(timer))
		return false;
	heap_remove(&self->heap, timer);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	if (!heap_has(timer))
		return false;
	heap_retime(&self->heap, timer, self->loop_ns + delay_ns);
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread;
	struct heap_bare *self = me;
	self->loop_ns = at_ns;
	while (heap_first_ns(&self->heap) <= at_ns) {
		struct heap_timer *timer = heap_take(&self->heap);
		timer->fn(timer->arg);
	}
}

static uint64_t next_turn_ns(void *me)
{
	struct heap_bare *self = me;
	return heap_first_ns(&self->heap);
}

static void view(void *me, struct candidate_view *out)
{
	struct heap_bare *self = me;
	*out = (struct candidate_view){.pending = self->heap.count,
				       .user_bytes = sizeof(struct heap_timer)};
}

const struct candidate candidate_heap_bare = {
    .name = "heap-bare",
    .what = "binary heap with indices, no lock, one thread, time cached",
    .bare = true,
    .workloads = ON_ALL,
    .spared = ON_IDLE | ON_RETENTION | ON_STORM | ON_SERVER | ON_PERIODIC | ON_PACED,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .cancel = cancel,
    .touch = touch,
    .turn = turn,
    .next_turn_ns = next_turn_ns,
    .view = view,
};
