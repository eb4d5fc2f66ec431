/*
 * Ours, with all defaults: tick thread, pool. "tickwheel" gives delays; "tickwheel-at" gives deadlines counted from the
 * caller's loop time, as a server that keeps one would.
 */
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/subject.h"
#include "tickwheel.h"
#include "wheel/core.h"

struct caller {
	_Alignas(64) uint64_t loop_ns;
};

struct ours {
	tw_service *service;
	tw_timer *timers;
	struct caller *callers;
};

static void destroy(void *me)
{
	struct ours *self = me;
	tw_service_destroy(self->service);
	free(self->timers);
	free(self->callers);
	free(self);
}

/* Defaults, but for more timers than these allow. */
static int create_service(tw_service **service, uint32_t slots)
{
	const uint32_t default_max_timers = UINT32_C(1) << 24;
	struct tw_service_config config = {.size = sizeof config};
	if (slots > default_max_timers)
		config.max_timers = slots;
	return tw_service_create(service, &config);
}

static void *create(const struct subject_setup *setup)
{
	struct ours *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->callers = touched_array(setup->threads, sizeof *self->callers);
	if (!self->timers || !self->callers || create_service(&self->service, setup->slots) < 0) {
		destroy(self);
		return NULL;
	}
	for (unsigned thread = 0; thread < setup->threads; thread++)
		self->callers[thread].loop_ns = tw_now(self->service);
	return self;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn, void *arg)
{
	(void)thread;
	struct ours *self = me;
	return tw_schedule(self->service, delay_ns, fn, arg, &self->timers[slot]);
}

static int schedule_at(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn, void *arg)
{
	struct ours *self = me;
	uint64_t deadline_ns = self->callers[thread].loop_ns + delay_ns;
	return tw_schedule_at(self->service, deadline_ns, fn, arg, &self->timers[slot]);
}

static bool cancel(void *me, uint32_t slot)
{
	struct ours *self = me;
	return tw_cancel(self->service, self->timers[slot]) == TW_CANCELLED;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct ours *self = me;
	return tw_reset(self->service, self->timers[slot], delay_ns) == 0;
}

static bool touch_at(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct ours *self = me;
	uint64_t deadline_ns = self->callers[thread].loop_ns + delay_ns;
	return tw_reset_at(self->service, self->timers[slot], deadline_ns) == 0;
}

/* The monotonic clock is the service's own: its reading is on the scale of deadlines. */
static void turn_at(void *me, unsigned thread, uint64_t at_ns)
{
	struct ours *self = me;
	self->callers[thread].loop_ns = at_ns;
}

static void view(void *me, struct subject_view *out)
{
	struct ours *self = me;
	struct tw_stats stats = {.size = sizeof stats};
	*out = (struct subject_view){.user_bytes = sizeof(tw_timer)};
	if (tw_stats_get(self->service, &stats) < 0)
		return;
	out->pending = stats.pending;
	out->wakeups = stats.wakeups;
	out->ticks = stats.ticks;
	out->tick_cpu_ns = stats.tick_cpu_ns;
	out->tick_cpu_max_ns = stats.tick_cpu_max_ns;
	tw_store_relaxed(&self->service->tick_cpu_max_ns, 0); /* of each phase its own; no such call is public */
}

const struct subject subject_tickwheel = {
    .name = "tickwheel",
    .what = "this library, tick thread and pool, delays",
    .workloads = ON_ALL,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};

/* Idle and memory are the same as with delays. */
const struct subject subject_tickwheel_at = {
    .name = "tickwheel-at",
    .what = "this library, tick thread and pool, deadlines from a cached time",
    .workloads = ON_ALL & ~(ON_IDLE | ON_MEMORY),
    .create = create,
    .destroy = destroy,
    .schedule = schedule_at,
    .cancel = cancel,
    .touch = touch_at,
    .turn = turn_at,
    .view = view,
};
