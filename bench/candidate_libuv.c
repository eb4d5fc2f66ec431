/*
 * libuv on its own thread: the use it is made for, and its best. One loop, one thread, no lock; a
 * uv_timer_t inside each connection, initialized once; deadlines are counted from the loop's cached
 * time; a turn is uv_run(UV_RUN_NOWAIT), which updates that time once and looks after descriptors
 * too, as a turn of a server does. Touch is uv_timer_start on a running timer, which does what
 * uv_timer_again does: out of the heap and in again.
 *
 * Its timers have milliseconds. Its time is rounded down, so that a delay of d ms may end up to 1
 * ms early: the deadline is rounded up here, which costs it nothing.
 */
#include <stdlib.h>
#include <uv.h>

#include "bench/measure.h"
#include "bench/candidate.h"

struct timer {
	uv_timer_t uv;
	expiry_fn *fn;
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uint64_t loop_ns;
	uint32_t slots;
	struct timer *timers;
	uv_timer_t alarm; /* ends a drive */
};

static void nothing(uv_timer_t *alarm)
{
	(void)alarm;
}

static void expire(uv_timer_t *uv)
{
	struct timer *timer = (struct timer *)uv;
	timer->fn(timer->arg);
}

static void *create(const struct candidate_setup *setup)
{
	struct loop *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	if (!self->timers || uv_loop_init(&self->uv)) {
		free(self->timers);
		free(self);
		return NULL;
	}
	uv_timer_init(&self->uv, &self->alarm);
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		uv_timer_init(&self->uv, &self->timers[slot].uv);
	self->loop_ns = now_ns();
	return self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	uv_close((uv_handle_t *)&self->alarm, NULL);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		uv_close((uv_handle_t *)&self->timers[slot].uv, NULL);
	uv_run(&self->uv, UV_RUN_DEFAULT);
	uv_loop_close(&self->uv);
	free(self->timers);
	free(self);
}

/* Milliseconds from the loop's time. */
static inline uint64_t timeout_ms(const struct loop *self, uint64_t delay_ns)
{
	uint64_t due_ms = (self->loop_ns + delay_ns + 999999) / 1000000, now_ms = uv_now(&self->uv);
	return due_ms > now_ms ? due_ms - now_ms : 0;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	return uv_timer_start(&timer->uv, expire, timeout_ms(self, delay_ns), 0);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	return uv_timer_start(&timer->uv, expire, timeout_ms(self, period_ns), period_ns / 1000000);
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	uv_timer_t *uv = &self->timers[slot].uv;
	if (!uv_is_active((uv_handle_t *)uv))
		return false;
	uv_timer_stop(uv);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	uv_timer_t *uv = &self->timers[slot].uv;
	if (!uv_is_active((uv_handle_t *)uv))
		return false;
	uv_timer_start(uv, expire, timeout_ms(self, delay_ns), 0);
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread;
	struct loop *self = me;
	uv_run(&self->uv, UV_RUN_NOWAIT);
	self->loop_ns = at_ns;
}

static uint64_t drive(void *me, uint64_t end_ns)
{
	struct loop *self = me;
	uint64_t turns = 0;
	for (uint64_t now; (now = now_ns()) < end_ns;) {
		uv_update_time(&self->uv);
		self->loop_ns = now;
		uv_timer_start(&self->alarm, nothing, timeout_ms(self, end_ns - now), 0);
		uv_run(&self->uv, UV_RUN_ONCE);
		turns += now_ns() < end_ns;
	}
	uv_timer_stop(&self->alarm);
	turn(me, 0, now_ns());
	return turns;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += uv_is_active((uv_handle_t *)&self->timers[slot].uv) != 0;
}

const struct candidate candidate_libuv = {
    .name = "libuv",
    .what = "libuv, one loop on one thread, time cached",
    .bare = true,
    .peer = true,
    .workloads = ON_ALL,
    .spared = ON_STORM,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .cancel = cancel,
    .touch = touch,
    .turn = turn,
    .drive = drive,
    .view = view,
};
