/*
 * libuv for many threads. Its loop may be used by one thread at a time only, so that a mutex guards
 * it; its manual names the way to wait without holding it: uv_backend_fd, uv_backend_timeout and
 * uv_run(UV_RUN_NOWAIT). The loop's thread knows from these until when it sleeps, so that
 * uv_async_send, the one call that any thread may make, is only needed for a timer that is due
 * before that; it is made outside the lock. Callbacks run in batches outside the lock.
 *
 * The other usual way, messages to the loop's thread, does the same work on two threads, and a
 * cancel must still find out whether it came in time.
 *
 * The loop's time stands still while it sleeps. Callers read the clock, and round deadlines up as
 * in candidate_libuv.c.
 */
#include <poll.h>
#include <stdlib.h>
#include <uv.h>

#include "bench/due.h"
#include "bench/measure.h"
#include "bench/candidate.h"

struct timer {
	uv_timer_t uv;
	expiry_fn *fn;
	void *arg;
};

struct loop {
	pthread_mutex_t lock; /* of all below but the call of uv_async_send */
	uv_loop_t uv;
	/* 0: awake, or woken; it will look at its timers before it sleeps again */
	uint64_t sleeps_until_ms;
	uint64_t wakeups;
	bool stop;
	uint32_t slots;
	struct timer *timers;
	struct due_batch due;
	uv_async_t waker;
	pthread_t thread;
};

static void nothing(uv_async_t *waker)
{
	(void)waker;
}

static void expire(uv_timer_t *uv)
{
	struct timer *timer = (struct timer *)uv;
	struct loop *self = uv->loop->data;
	due_add(&self->due, timer->fn, timer->arg);
}

static void *loop_thread(void *me)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	while (!self->stop) {
		uv_run(&self->uv, UV_RUN_NOWAIT);
		if (self->due.count) {
			due_run(&self->due);
			continue;
		}
		int timeout_ms = uv_backend_timeout(&self->uv);
		self->sleeps_until_ms =
		    timeout_ms < 0 ? UINT64_MAX : uv_now(&self->uv) + (uint64_t)timeout_ms;
		struct pollfd backend = {.fd = uv_backend_fd(&self->uv), .events = POLLIN};
		pthread_mutex_unlock(&self->lock);
		poll(&backend, 1, timeout_ms);
		pthread_mutex_lock(&self->lock);
		self->sleeps_until_ms = 0;
		self->wakeups += timeout_ms != 0;
	}
	pthread_mutex_unlock(&self->lock);
	return NULL;
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
	self->uv.data = self;
	self->due.lock = &self->lock;
	uv_async_init(&self->uv, &self->waker, nothing);
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		uv_timer_init(&self->uv, &self->timers[slot].uv);
	pthread_mutex_init(&self->lock, NULL);
	if (pthread_create(&self->thread, NULL, loop_thread, self))
		abort();
	return self;
}

static void destroy(void *me)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	self->stop = true;
	pthread_mutex_unlock(&self->lock);
	uv_async_send(&self->waker);
	pthread_join(self->thread, NULL);
	uv_close((uv_handle_t *)&self->waker, NULL);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		uv_close((uv_handle_t *)&self->timers[slot].uv, NULL);
	uv_run(&self->uv, UV_RUN_DEFAULT);
	uv_loop_close(&self->uv);
	pthread_mutex_destroy(&self->lock);
	free(self->timers);
	free(self);
}

static inline uint64_t due_after(uint64_t delay_ns)
{
	return (now_ns() + delay_ns + 999999) / 1000000;
}

/* True: the loop must be woken. */
static bool start(struct loop *self, struct timer *timer, uint64_t due_ms, uint64_t period_ms)
{
	uint64_t now_ms = uv_now(&self->uv);
	uv_timer_start(&timer->uv, expire, due_ms > now_ms ? due_ms - now_ms : 0, period_ms);
	bool oversleeps = due_ms < self->sleeps_until_ms;
	if (oversleeps)
		self->sleeps_until_ms = 0;
	return oversleeps;
}

static int arm(struct loop *self, uint32_t slot, uint64_t delay_ns, uint64_t period_ms,
	       expiry_fn *fn, void *arg)
{
	struct timer *timer = &self->timers[slot];
	uint64_t due_ms = due_after(delay_ns);
	pthread_mutex_lock(&self->lock);
	timer->fn = fn;
	timer->arg = arg;
	bool wake = start(self, timer, due_ms, period_ms);
	pthread_mutex_unlock(&self->lock);
	return wake ? uv_async_send(&self->waker) : 0;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	return arm(me, slot, delay_ns, 0, fn, arg);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	return arm(me, slot, period_ns, period_ns / 1000000, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct loop *self = me;
	uv_timer_t *uv = &self->timers[slot].uv;
	pthread_mutex_lock(&self->lock);
	bool pending = uv_is_active((uv_handle_t *)uv);
	if (pending)
		uv_timer_stop(uv);
	pthread_mutex_unlock(&self->lock);
	return pending;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct loop *self = me;
	struct timer *timer = &self->timers[slot];
	uint64_t due_ms = due_after(delay_ns);
	pthread_mutex_lock(&self->lock);
	bool pending = uv_is_active((uv_handle_t *)&timer->uv);
	bool wake = pending && start(self, timer, due_ms, 0);
	pthread_mutex_unlock(&self->lock);
	if (wake)
		uv_async_send(&self->waker);
	return pending;
}

static void view(void *me, struct candidate_view *out)
{
	struct loop *self = me;
	pthread_mutex_lock(&self->lock);
	*out =
	    (struct candidate_view){.wakeups = self->wakeups, .user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += uv_is_active((uv_handle_t *)&self->timers[slot].uv) != 0;
	pthread_mutex_unlock(&self->lock);
}

const struct candidate candidate_libuv_mt = {
    .name = "libuv-mt",
    .what = "libuv behind a mutex, its loop in a thread, uv_async to wake it",
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
