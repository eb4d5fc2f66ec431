/*
 * libev for many threads, as its manual's chapter on threads shows it: a mutex around the loop,
 * which is released while the loop waits (ev_set_loop_release_cb), and an ev_async that wakes the
 * loop for what it does not know of yet. Callbacks run outside the lock, from a batch that the
 * loop's own ev_set_invoke_pending_cb empties.
 *
 * Better than the manual in two points. It wakes the loop at each change; here only for a timer
 * that is due before the loop will wake anyway. libev does not tell when that is, so that a timer
 * of a second's length, the bell, is kept in the loop as long as others are: it wakes by then at
 * the latest, and only shorter timers need the async. And the loop's cached time is stale while it
 * sleeps: deadlines are counted from the reading of the clock that the loop's own was taken right
 * after, which callers do outside the lock, instead of by ev_now_update inside it.
 */
#include <ev.h>
#include <stdlib.h>

#include "bench/due.h"
#include "bench/measure.h"
#include "bench/candidate.h"

#define BELL_NS UINT64_C(1000000000)

struct timer {
	ev_timer ev;
	expiry_fn *fn;
	void *arg;
};

struct loop {
	pthread_mutex_t lock; /* of all below but the call of ev_async_send */
	struct ev_loop *ev;
	uint64_t loop_ns; /* read shortly before the loop took its time */
	/* 0: awake, or woken; it will look at its timers before it sleeps again */
	uint64_t sleeps_until_ns;
	uint64_t bell_ns; /* it rings by then, if active */
	uint64_t pending, wakeups;
	bool stop;
	uint32_t slots;
	struct timer *timers;
	struct due_batch due;
	ev_timer bell;
	ev_prepare prepare;
	ev_async waker;
	pthread_t thread;
};

static inline double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(int64_t)(to_ns - from_ns) * 1e-9;
}

static void bell_rang(struct ev_loop *ev, ev_timer *bell, int events)
{
	(void)ev, (void)bell, (void)events;
}

static void woken(struct ev_loop *ev, ev_async *waker, int events)
{
	(void)waker, (void)events;
	struct loop *self = ev_userdata(ev);
	if (self->stop)
		ev_break(ev, EVBREAK_ALL);
}

static void expire(struct ev_loop *ev, ev_timer *one, int events)
{
	(void)events;
	struct loop *self = ev_userdata(ev);
	struct timer *timer = (struct timer *)one;
	self->pending -= !ev_is_active(one);
	due_add(&self->due, timer->fn, timer->arg);
}

/* The loop takes its time next, and then works out how long to wait. */
static void before_sleep(struct ev_loop *ev, ev_prepare *prepare, int events)
{
	(void)prepare, (void)events;
	struct loop *self = ev_userdata(ev);
	if (self->pending && !ev_is_active(&self->bell)) {
		ev_timer_set(&self->bell, (double)BELL_NS * 1e-9, 0);
		ev_timer_start(ev, &self->bell);
		self->bell_ns = now_ns() + BELL_NS;
	}
	self->loop_ns = now_ns();
}

static void invoke_pending(struct ev_loop *ev)
{
	struct loop *self = ev_userdata(ev);
	ev_invoke_pending(ev);
	due_run(&self->due);
}

static void release_loop(struct ev_loop *ev) EV_NOEXCEPT
{
	struct loop *self = ev_userdata(ev);
	self->sleeps_until_ns = ev_is_active(&self->bell) ? self->bell_ns : UINT64_MAX;
	pthread_mutex_unlock(&self->lock);
}

static void acquire_loop(struct ev_loop *ev) EV_NOEXCEPT
{
	struct loop *self = ev_userdata(ev);
	pthread_mutex_lock(&self->lock);
	self->sleeps_until_ns = 0;
	self->wakeups++;
	self->loop_ns = now_ns();
}

static void *loop_thread(void *me)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	ev_run(self->ev, 0);
	pthread_mutex_unlock(&self->lock);
	return NULL;
}

static void start_loop(struct loop *self)
{
	self->due.lock = &self->lock;
	self->loop_ns = now_ns();
	ev_now_update(self->ev);
	ev_set_userdata(self->ev, self);
	ev_set_loop_release_cb(self->ev, release_loop, acquire_loop);
	ev_set_invoke_pending_cb(self->ev, invoke_pending);
	ev_timer_init(&self->bell, bell_rang, 0, 0);
	ev_async_init(&self->waker, woken);
	ev_async_start(self->ev, &self->waker);
	ev_prepare_init(&self->prepare, before_sleep);
	ev_prepare_start(self->ev, &self->prepare);
	pthread_mutex_init(&self->lock, NULL);
	if (pthread_create(&self->thread, NULL, loop_thread, self))
		abort();
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
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		ev_timer_init(&self->timers[slot].ev, expire, 0, 0);
	start_loop(self);
	return self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	self->stop = true;
	pthread_mutex_unlock(&self->lock);
	ev_async_send(self->ev, &self->waker);
	pthread_join(self->thread, NULL);
	ev_loop_destroy(self->ev);
	pthread_mutex_destroy(&self->lock);
	free(self->timers);
	free(self);
}

/* True: the loop must be woken. */
static bool oversleeps(struct loop *self, uint64_t deadline_ns)
{
	if (deadline_ns >= self->sleeps_until_ns)
		return false;
	self->sleeps_until_ns = 0;
	return true;
}

static int arm(struct loop *self, uint32_t slot, uint64_t delay_ns, double repeat_s, expiry_fn *fn,
	       void *arg)
{
	struct timer *timer = &self->timers[slot];
	uint64_t deadline_ns = now_ns() + delay_ns;
	pthread_mutex_lock(&self->lock);
	timer->fn = fn;
	timer->arg = arg;
	ev_timer_set(&timer->ev, seconds_between(self->loop_ns, deadline_ns), repeat_s);
	ev_timer_start(self->ev, &timer->ev);
	self->pending++;
	bool wake = oversleeps(self, deadline_ns);
	pthread_mutex_unlock(&self->lock);
	if (wake)
		ev_async_send(self->ev, &self->waker);
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
	return arm(me, slot, period_ns, (double)period_ns * 1e-9, fn, arg);
}

static inline bool waits(const ev_timer *ev)
{
	return ev_is_active(ev) || ev_is_pending(ev);
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	ev_timer *ev = &self->timers[slot].ev;
	pthread_mutex_lock(&self->lock);
	bool pending = waits(ev);
	if (pending)
		ev_timer_stop(self->ev, ev);
	self->pending -= pending;
	pthread_mutex_unlock(&self->lock);
	return pending;
}

/*
 * ev_timer_again also starts one that has come due and waits for its turn. Once moved it is to run
 * once.
 */
static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	ev_timer *ev = &self->timers[slot].ev;
	uint64_t deadline_ns = now_ns() + delay_ns;
	pthread_mutex_lock(&self->lock);
	bool pending = waits(ev);
	bool wake = false;
	if (pending) {
		double delay_s = seconds_between(self->loop_ns, deadline_ns);
		ev->repeat = delay_s > 0 ? delay_s : 1e-9;
		ev_timer_again(self->ev, ev);
		ev->repeat = 0;
		wake = oversleeps(self, deadline_ns);
	}
	pthread_mutex_unlock(&self->lock);
	if (wake)
		ev_async_send(self->ev, &self->waker);
	return pending;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	*out =
	    (struct candidate_view){.wakeups = self->wakeups, .user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += waits(&self->timers[slot].ev);
	pthread_mutex_unlock(&self->lock);
}

const struct candidate candidate_libev_mt = {
    .name = "libev-mt",
    .what = "libev behind a mutex, its loop in a thread, ev_async to wake it",
    .peer = true,
    .workloads = ON_ALL,
    .spared = ON_IDLE | ON_MEMORY | ON_PERIODIC,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
