/* The binary heap as a loop would use it: no lock, deadlines from the loop's cached time, one turn per loop. */
#include <stdlib.h>

#include "bench/binary_heap.h"
#include "bench/measure.h"
#include "bench/subject.h"

struct heap_bare {
	uint64_t loop_ns;
	struct binary_heap heap;
	struct heap_timer *timers;
};

static void destroy(void *me)
{
	struct heap_bare *self = me;
	binary_heap_free(&self->heap);
	free(self->timers);
	free(self);
}

static void *create(const struct subject_setup *setup)
{
	struct heap_bare *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->loop_ns = now_ns();
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	if (!binary_heap_init(&self->heap, setup->slots) || !self->timers) {
		destroy(self);
		return NULL;
	}
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		self->timers[slot].index = NOT_IN_HEAP;
	return self;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn, void *arg)
{
	(void)thread;
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	binary_heap_add(&self->heap, timer, self->loop_ns + delay_ns);
	return 0;
}

static bool cancel(void *me, uint32_t slot)
{
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	if (timer->index == NOT_IN_HEAP)
		return false;
	binary_heap_remove(&self->heap, timer);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct heap_bare *self = me;
	struct heap_timer *timer = &self->timers[slot];
	if (timer->index == NOT_IN_HEAP)
		return false;
	binary_heap_retime(&self->heap, timer, self->loop_ns + delay_ns);
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread;
	struct heap_bare *self = me;
	self->loop_ns = at_ns;
	while (binary_heap_first_ns(&self->heap) <= at_ns) {
		struct heap_timer *timer = self->heap.nodes[0].timer;
		binary_heap_remove(&self->heap, timer);
		timer->fn(timer->arg);
	}
}

static uint64_t next_turn_ns(void *me)
{
	struct heap_bare *self = me;
	return binary_heap_first_ns(&self->heap);
}

static void view(void *me, struct subject_view *out)
{
	struct heap_bare *self = me;
	*out = (struct subject_view){.pending = self->heap.count, .user_bytes = sizeof(struct heap_timer)};
}

const struct subject subject_heap_bare = {
    .name = "heap-bare",
    .what = "binary heap with indices, no lock, one thread, time cached",
    .bare = true,
    .workloads = ON_ALL,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .cancel = cancel,
    .touch = touch,
    .turn = turn,
    .next_turn_ns = next_turn_ns,
    .view = view,
};
