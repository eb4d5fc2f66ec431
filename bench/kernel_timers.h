/*
 * What the candidates of the kernel's own timers share: a slot's timer is set by a system call of
 * its kind, and its deadline decides who ends it, the thread that sees it expire or the one that
 * cancels. Included by each of them after
 *     struct timer { _Atomic uint64_t deadline_ns; expiry_fn *fn; void *arg; bool series; ... };
 *     struct kernel_timers { struct timer *timers; uint32_t slots; _Atomic uint64_t wakeups; ... };
 * and gives it its vtable's functions; `set` is the includer's.
 */
#ifndef BENCH_KERNEL_TIMERS_H
#define BENCH_KERNEL_TIMERS_H

#include <time.h>

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Sets or, with 0, stops the kernel's timer. 0 or negative errno. */
static int set(const struct timer *timer, uint64_t deadline_ns, uint64_t period_ns);

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

#endif
