/*
 * libev on its own thread: the use it is made for, and its best. One loop, one thread, no lock; an
 * ev_timer inside each connection; deadlines are counted from the loop's cached time; a turn is
 * ev_run(EVRUN_NOWAIT), which updates that time and looks after descriptors too, as a turn of a
 * server does. Touch is ev_timer_again with the idle timeout as repeat, which moves the timer in
 * place in a 4-ary heap; the manual recommends it for exactly this.
 */
#include <ev.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/candidate.h"

struct timer {
	ev_timer ev;
	expiry_fn *fn;
	void *arg;
};

struct loop {
	struct ev_loop *ev;
	uint32_t slots;
	struct timer *timers;
	ev_timer alarm; /* ends a drive */
};

static inline double seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

static void nothing(struct ev_loop *ev, ev_timer *alarm, int events)
{
	(void)ev, (void)alarm, (void)events;
}

static void expire(struct ev_loop *ev, ev_timer *one, int events)
{
	(void)ev, (void)events;
	struct timer *timer = (struct timer *)one;
	timer->fn(timer->arg);
}

static void *create(const struct candidate_setup *setup)
{
	struct loop *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->slots = setup->slots;
	self->ev = ev_loop_new(EVFLAG_NOENV);
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	if (!self->ev || !self->timers) {
		free(self->timers);
		free(self);
		return NULL;
	}
	ev_timer_init(&self->alarm, nothing, 0, 0);
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		ev_timer_init(&self->timers[slot].ev, expire, 0, 0);
	return self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	ev_loop_destroy(self->ev);
	free(self->timers);
	free(self);
}

static int arm(struct loop *self, uint32_t slot, uint64_t delay_ns, double repeat_s, expiry_fn *fn,
	       void *arg)
{
	struct timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	ev_timer_set(&timer->ev, seconds(delay_ns), repeat_s);
	ev_timer_start(self->ev, &timer->ev);
	return 0;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	return arm(me, slot, delay_ns, 0, fn, arg);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	return arm(me, slot, period_ns, seconds(period_ns), fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	ev_timer *ev = &self->timers[slot].ev;
	if (!ev_is_active(ev) && !ev_is_pending(ev))
		return false;
	ev_timer_stop(self->ev, ev);
	return true;
}

/* It repeats only as long as it takes to move it: it is to run once. */
static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	ev_timer *ev = &self->timers[slot].ev;
	if (!ev_is_active(ev))
		return false;
	ev->repeat = seconds(delay_ns ? delay_ns : 1);
	ev_timer_again(self->ev, ev);
	ev->repeat = 0;
	return true;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread, (void)at_ns;
	struct loop *self = me;
	ev_run(self->ev, EVRUN_NOWAIT);
}

static uint64_t drive(void *me, uint64_t end_ns)
{
	struct loop *self = me;
	uint64_t turns = 0;
	for (uint64_t now; (now = now_ns()) < end_ns;) {
		ev_now_update(self->ev);
		ev_timer_stop(self->ev, &self->alarm);
		ev_timer_set(&self->alarm, seconds(end_ns - now), 0);
		ev_timer_start(self->ev, &self->alarm);
		ev_run(self->ev, EVRUN_ONCE);
		turns += now_ns() < end_ns;
	}
	ev_timer_stop(self->ev, &self->alarm);
	ev_run(self->ev, EVRUN_NOWAIT);
	return turns;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += ev_is_active(&self->timers[slot].ev) != 0;
}

const struct candidate candidate_libev = {
    .name = "libev",
    .what = "libev, one loop on one thread, time cached",
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
