/*
 * libevent on its own thread: the use it is made for, and its best. One base, one thread, no locks
 * (thread support is not switched on); a struct event inside each connection, assigned once; a turn
 * is event_base_loop(EVLOOP_NONBLOCK), which looks after descriptors too, as a turn of a server
 * does. Timeouts of fixed length are common timeouts. Its own cached time serves callbacks only;
 * elsewhere it reads the coarse clock, which costs about as little. See libevent_time.h.
 *
 * A series is an EV_PERSIST timer, which counts from its last deadline. Its first run is an
 * ordinary timeout.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "bench/libevent_time.h"
#include "bench/measure.h"
#include "bench/candidate.h"

struct timer {
	struct event event;
	expiry_fn *fn;
	void *arg;
	uint32_t period_ms;
	bool pending;
};

struct loop {
	struct event_base *base;
	struct libevent_time time;
	uint32_t slots;
	struct timer *timers;
	struct event *alarm; /* ends a drive */
};

static void nothing(evutil_socket_t none, short what, void *arg)
{
	(void)none, (void)what, (void)arg;
}

static void expire(evutil_socket_t none, short what, void *one)
{
	(void)none, (void)what;
	struct timer *timer = one;
	timer->pending = false;
	timer->fn(timer->arg);
}

static void expire_in_series(evutil_socket_t none, short what, void *one)
{
	(void)none, (void)what;
	struct timer *timer = one;
	timer->fn(timer->arg);
}

static void begin_series(evutil_socket_t none, short what, void *one)
{
	(void)none, (void)what;
	struct timer *timer = one;
	struct timeval period = timeval_of(timer->period_ms * UINT64_C(1000000));
	event_assign(&timer->event, event_get_base(&timer->event), -1, EV_PERSIST, expire_in_series,
		     timer);
	event_add(&timer->event, &period);
	timer->fn(timer->arg);
}

static void *create(const struct candidate_setup *setup)
{
	struct loop *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->base = event_base_new();
	self->alarm = self->base ? evtimer_new(self->base, nothing, NULL) : NULL;
	if (!self->timers || !self->alarm || !libevent_time_init(&self->time, self->base))
		return NULL; /* ends the run and the process with it */
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		evtimer_assign(&self->timers[slot].event, self->base, expire, &self->timers[slot]);
	return self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	for (uint32_t slot = 0; slot < self->slots; slot++)
		event_del(&self->timers[slot].event);
	event_free(self->alarm);
	event_base_free(self->base);
	free(self->timers);
	free(self);
}

static int add(struct loop *self, struct timer *timer, uint64_t delay_ns)
{
	struct timeval own;
	return event_add(&timer->event, libevent_timeout(&self->time, delay_ns, &own));
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	timer->pending = true;
	return add(self, timer, delay_ns);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	timer->period_ms = (uint32_t)(period_ns / 1000000);
	evtimer_assign(&timer->event, self->base, begin_series, timer);
	return schedule(me, 0, slot, period_ns, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	if (!timer->pending)
		return false;
	timer->pending = false;
	event_del(&timer->event);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	if (!timer->pending)
		return false;
	add(self, timer, delay_ns);
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread, (void)at_ns;
	struct loop *self = me;
	event_base_loop(self->base, EVLOOP_NONBLOCK);
}

static uint64_t drive(void *me, uint64_t end_ns)
{
	struct loop *self = me;
	uint64_t turns = 0;
	for (uint64_t now; (now = now_ns()) < end_ns;) {
		struct timeval rest = timeval_of(end_ns - now + 999);
		event_add(self->alarm, &rest);
		event_base_loop(self->base, EVLOOP_ONCE);
		turns += now_ns() < end_ns;
	}
	event_del(self->alarm);
	event_base_loop(self->base, EVLOOP_NONBLOCK);
	return turns;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += self->timers[slot].pending;
}

const struct candidate candidate_libevent = {
    .name = "libevent",
    .what = "libevent, one base on one thread, coarse clock, common timeouts",
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
