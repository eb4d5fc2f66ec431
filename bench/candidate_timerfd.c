/*
 * timerfd: a descriptor for each timer, made once for each connection, all in one epoll set, and a
 * thread that waits there and takes up to 64 at a time. Arming is one timerfd_settime with an
 * absolute time, disarming another; the kernel does the rest, and any thread may call. This is as
 * its manual page shows it.
 *
 * timerfd_settime also takes back an expiry that nobody has read yet, without telling. So each
 * timer has its deadline beside it, 0 if it is not pending: who takes it away by exchange decides,
 * and an expiry that finds a later one there has been overtaken by a move. The number of timers is
 * limited by that of descriptors.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/candidate.h"

enum { EVENTS = 64, OTHER_DESCRIPTORS = 64 };

struct timer {
	_Atomic uint64_t deadline_ns; /* of a series: of its first run */
	expiry_fn *fn;
	void *arg;
	int fd;
	bool series;
};

struct kernel_timers {
	int epoll, stop; /* stop: an eventfd in the set, with NULL as its timer */
	uint32_t slots;
	struct timer *timers;
	_Atomic uint64_t wakeups;
	pthread_t thread;
};

static _Thread_local uint64_t runs_missed;

static uint64_t missed(void)
{
	return runs_missed;
}

static uint32_t most_slots(void)
{
	return most_descriptors() - OTHER_DESCRIPTORS;
}

static void expire(struct timer *timer)
{
	uint64_t expiries, deadline_ns;
	if (read(timer->fd, &expiries, sizeof expiries) != sizeof expiries)
		return;
	deadline_ns = atomic_load(&timer->deadline_ns);
	if (deadline_ns == 0 || now_ns() < deadline_ns)
		return;
	expiry_fn *fn = timer->fn;
	void *arg = timer->arg;
	runs_missed = expiries - 1;
	if (timer->series || atomic_compare_exchange_strong(&timer->deadline_ns, &deadline_ns, 0))
		fn(arg);
}

static void *timer_thread(void *me)
{
	struct kernel_timers *self = me;
	struct epoll_event events[EVENTS];
	for (;;) {
		int count = epoll_wait(self->epoll, events, EVENTS, -1);
		atomic_store_explicit(&self->wakeups, self->wakeups + 1, memory_order_relaxed);
		for (int i = 0; i < count; i++) {
			if (!events[i].data.ptr)
				return NULL;
			expire(events[i].data.ptr);
		}
	}
}

static bool watch(int epoll, int fd, struct timer *timer)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = timer};
	return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* What a create that failed has made ends with the process. */
static void *create(const struct candidate_setup *setup)
{
	struct kernel_timers *self = touched_array(1, sizeof *self);
	if (!self || most_slots() < setup->slots)
		return NULL;
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	self->stop = eventfd(0, EFD_CLOEXEC);
	if (!self->timers || !watch(self->epoll, self->stop, NULL))
		return NULL;
	for (uint32_t slot = 0; slot < setup->slots; slot++) {
		struct timer *timer = &self->timers[slot];
		timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (!watch(self->epoll, timer->fd, timer))
			return NULL;
	}
	return pthread_create(&self->thread, NULL, timer_thread, self) ? NULL : self;
}

static void destroy(void *me)
{
	struct kernel_timers *self = me;
	const uint64_t one = 1;
	if (write(self->stop, &one, sizeof one) != sizeof one)
		abort();
	pthread_join(self->thread, NULL);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		close(self->timers[slot].fd);
	close(self->stop);
	close(self->epoll);
	free(self->timers);
	free(self);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Sets or, with 0, stops the timer. 0 or negative errno. */
static int set(const struct timer *timer, uint64_t deadline_ns, uint64_t period_ns)
{
	struct itimerspec spec = {.it_value = timespec_of(deadline_ns),
				  .it_interval = timespec_of(period_ns)};
	return timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &spec, NULL) ? -errno : 0;
}

static int arm(struct kernel_timers *self, uint32_t slot, uint64_t delay_ns, uint64_t period_ns,
	       expiry_fn *fn, void *arg)
{
	struct timer *timer = &self->timers[slot];
	uint64_t deadline_ns = now_ns() + delay_ns;
	timer->fn = fn;
	timer->arg = arg;
	timer->series = period_ns != 0;
	atomic_store_explicit(&timer->deadline_ns, deadline_ns, memory_order_release);
	return set(timer, deadline_ns, period_ns);
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	(void)thread;
	return arm(me, slot, delay_ns, 0, fn, arg);
}

static int every(void *me, uint32_t slot, uint64_t period_ns, expiry_fn *fn, void *arg)
{
	return arm(me, slot, period_ns, period_ns, fn, arg);
}

static bool cancel(void *me, uint32_t slot)
{
	struct kernel_timers *self = me;
	struct timer *timer = &self->timers[slot];
	if (atomic_exchange(&timer->deadline_ns, 0) == 0)
		return false;
	set(timer, 0, 0);
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct kernel_timers *self = me;
	struct timer *timer = &self->timers[slot];
	uint64_t before_ns = atomic_load(&timer->deadline_ns), deadline_ns = now_ns() + delay_ns;
	if (before_ns == 0 ||
	    !atomic_compare_exchange_strong(&timer->deadline_ns, &before_ns, deadline_ns))
		return false;
	set(timer, deadline_ns, 0);
	return true;
}

static void view(void *me, struct candidate_view *out)
{
	struct kernel_timers *self = me;
	*out =
	    (struct candidate_view){.wakeups = self->wakeups, .user_bytes = sizeof(struct timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += atomic_load(&self->timers[slot].deadline_ns) != 0;
}

const struct candidate candidate_timerfd = {
    .name = "timerfd",
    .what = "a timerfd for each timer, epoll, a thread that runs what is due",
    .peer = true,
    .workloads = ON_ALL,
    .spared = ON_IDLE | ON_STORM,
    .most_slots = most_slots,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .every = every,
    .missed = missed,
    .cancel = cancel,
    .touch = touch,
    .view = view,
};
