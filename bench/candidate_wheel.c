/*
 * The bare wheel as a loop would use it: deadlines from the loop's cached time, one turn per loop.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/list_wheel.h"
#include "bench/measure.h"
#include "bench/candidate.h"

/*
 * What the user of a wheel without periodic timers keeps for a series: its callback adds the timer
 * again.
 */
struct series {
	struct wheel_bare *self;
	expiry_fn *fn;
	void *arg;
	uint32_t slot;
	uint32_t period_ticks;
};

struct wheel_bare {
	uint64_t loop_ns;
	uint32_t slots;
	struct wheel_timer *timers;
	struct series *series; /* NULL until the first */
	struct list_wheel wheel;
};

static void *create(const struct candidate_setup *setup)
{
	struct wheel_bare *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->loop_ns = now_ns();
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	list_wheel_init(&self->wheel, self->loop_ns / TICK_NS);
	if (self->timers)
		return self;
	free(self);
	return NULL;
}

static void destroy(void *me)
{
	struct wheel_bare *self = me;
	free(self->timers);
	free(self->series);
	free(self);
}

static inline uint64_t due_tick(const struct wheel_bare *self, uint64_t delay_ns)
{
	return (self->loop_ns + delay_ns + TICK_NS - 1) / TICK_NS;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct wheel_bare *self = me;
	struct wheel_timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	list_wheel_add(&self->wheel, timer, due_tick(self, delay_ns));
	return 0;
}

/* By its nominal time: no drift. */
static void run_and_add(void *one)
{
	struct series *series = one;
	struct wheel_timer *timer = &series->self->timers[series->slot];
	list_wheel_add(&series->self->wheel, timer, timer->due_tick + series->period_ticks);
	series->fn(series->arg);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct wheel_bare *self = me;
	if (!self->series)
		self->series = touched_array(self->slots, sizeof *self->series);
	if (!self->series)
		return -ENOMEM;
	struct series *series = &self->series[slot];
	*series = (struct series){self, fn, arg, slot, (uint32_t)(period_ns / TICK_NS)};
	return schedule(me, 0, slot, period_ns, run_and_add, series);
}

static bool cancel(void *me, uint32_t slot)
{
	struct wheel_bare *self = me;
	struct wheel_timer *timer = &self->timers[slot];
	if (!timer->link)
		return false;
	list_wheel_remove(timer);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct wheel_bare *self = me;
	struct wheel_timer *timer = &self->timers[slot];
	if (!timer->link)
		return false;
	list_wheel_retime(&self->wheel, timer, due_tick(self, delay_ns));
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread;
	struct wheel_bare *self = me;
	self->loop_ns = at_ns;
	if (at_ns / TICK_NS >= self->wheel.cursor)
		list_wheel_turn(&self->wheel, at_ns / TICK_NS);
}

static uint64_t next_turn_ns(void *me)
{
	struct wheel_bare *self = me;
	uint64_t tick = list_wheel_next_tick(&self->wheel);
	return tick == UINT64_MAX ? UINT64_MAX : tick * TICK_NS;
}

static void view(void *me, struct candidate_view *out)
{
	struct wheel_bare *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct wheel_timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += self->timers[slot].link != NULL;
}

const struct candidate candidate_wheel_bare = {
    .name = "wheel-bare",
    .what = "intrusive hierarchical wheel, doubly linked, no lock, one thread, time cached",
    .bare = true,
    .workloads = ON_ALL,
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
