/*
 * libevent for many threads: its own thread support (evthread_use_pthreads), the loop in a thread
 * of its own, events added and deleted by any thread. It locks its base, wakes its thread itself
 * when a new timer is the first, and runs callbacks outside the lock. Else as in
 * candidate_libevent.c: events assigned once, common timeouts, the default clock. Its cached time
 * is switched off (EVENT_BASE_FLAG_NO_CACHE_TIME): it would be that of the loop's thread, and stale
 * while callbacks run there, and the other threads' timers early by as much.
 *
 * What it leaves to the user: event_add on a timer that fires at the same moment arms it again, and
 * nothing tells whether event_del came in time. So each timer has its deadline beside the event, on
 * the same coarse clock, 0 if it is not pending; who takes it away by exchange decides, and a
 * callback that finds a later one there has been overtaken by a move.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/libevent_time.h"
#include "bench/measure.h"
#include "bench/candidate.h"

struct timer {
	struct event event;
	expiry_fn *fn;
	void *arg;
	/* on the coarse clock, not after the event's; 0: not pending */
	_Atomic uint64_t deadline_ns;
};

struct loop {
	struct event_base *base;
	struct libevent_time time;
	uint32_t slots;
	struct timer *timers;
	pthread_t thread;
};

static inline uint64_t coarse_ns(void)
{
	return read_clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* By then the exact clock has gone on by the delay, too. The event's is a microsecond later. */
static inline uint64_t coarse_deadline_ns(const struct loop *self, uint64_t delay_ns)
{
	return coarse_ns() + delay_ns + self->time.lag_ns;
}

static void expire(evutil_socket_t none, short what, void *one)
{
	(void)none, (void)what;
	struct timer *timer = one;
	uint64_t deadline_ns = atomic_load(&timer->deadline_ns);
	if (deadline_ns == 0 || coarse_ns() < deadline_ns)
		return;
	expiry_fn *fn = timer->fn;
	void *arg = timer->arg;
	if (atomic_compare_exchange_strong(&timer->deadline_ns, &deadline_ns, 0))
		fn(arg);
}

static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME))
		return NULL;
	struct event_base *base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void *loop_thread(void *me)
{
	struct loop *self = me;
	event_base_loop(self->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static void *create(const struct candidate_setup *setup)
{
	struct loop *self = touched_array(1, sizeof *self);
	if (!self || evthread_use_pthreads())
		return NULL; /* ends the run and the process with it, here and below */
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->base = new_base();
	if (!self->timers || !self->base || !libevent_time_init(&self->time, self->base))
		return NULL;
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		evtimer_assign(&self->timers[slot].event, self->base, expire, &self->timers[slot]);
	return pthread_create(&self->thread, NULL, loop_thread, self) ? NULL : self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	event_base_loopbreak(self->base);
	pthread_join(self->thread, NULL);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		event_del(&self->timers[slot].event);
	event_base_free(self->base);
	free(self->timers);
	free(self);
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	struct timeval own;
	timer->fn = fn;
	timer->arg = arg;
	atomic_store_explicit(&timer->deadline_ns, coarse_deadline_ns(self, delay_ns),
			      memory_order_release);
	return event_add(&timer->event, libevent_timeout(&self->time, delay_ns, &own));
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	if (atomic_exchange(&timer->deadline_ns, 0) == 0)
		return false;
	event_del_noblock(&timer->event);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	struct timeval own;
	uint64_t before_ns = atomic_load(&timer->deadline_ns),
		 deadline_ns = coarse_deadline_ns(self, delay_ns);
	if (before_ns == 0 ||
	    !atomic_compare_exchange_strong(&timer->deadline_ns, &before_ns, deadline_ns))
		return false;
	event_add(&timer->event, libevent_timeout(&self->time, delay_ns, &own));
	return true;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += atomic_load(&self->timers[slot].deadline_ns) != 0;
}

const struct candidate candidate_libevent_mt = {
    .name = "libevent-mt",
    .what = "libevent with thread support, its loop in a thread, common timeouts",
    .peer = true,
    .workloads = ON_ALL & ~(ON_IDLE | ON_PERIODIC),
    .spared = ON_MEMORY,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
