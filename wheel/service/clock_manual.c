/*
 * Clocks that a program moves by hand. An advance drives the services on the clock, of which none
 * may be destroyed meanwhile.
 *
 * Pairing table
 *   CLOCK1  services, next_on_clock: store-release (join) -> load-acquire (advance): a service is
 *       complete before it is found.
 */
#include <stdlib.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/process.h"
#include "mpsc/base/clock.h"
#include "mpsc/base/entry.h"
#include "wheel/core/frame.h"
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

struct manual {
	tw_clock clock;
	_Atomic uint64_t now_ns; /* by advances, one at a time, and by set */
	pthread_mutex_t advancing;
	pthread_mutex_t lock; /* changes of the list */
	/* those with a tick thread last: others bring them work */
	_Atomic(tw_service *) services;
	struct tw__origin origin;
};

static uint64_t manual_now(const tw_clock *clock)
{
	return tw_load_acquire(&((const struct manual *)clock)->now_ns);
}

static void manual_join(tw_clock *clock, void *what)
{
	tw_service *service = what;
	struct manual *manual = (struct manual *)clock;
	pthread_mutex_lock(&manual->lock);
	_Atomic(tw_service *) *at = &manual->services;
	while (service->threaded && tw_load_relaxed(at))
		at = &tw_load_relaxed(at)->next_on_clock;
	tw_store_relaxed(&service->next_on_clock, tw_load_relaxed(at));
	tw_store_release(at, service); /* CLOCK1 */
	pthread_mutex_unlock(&manual->lock);
}

/* A service whose creation has failed has not joined. */
static void manual_leave(tw_clock *clock, void *what)
{
	tw_service *service = what;
	struct manual *manual = (struct manual *)clock;
	pthread_mutex_lock(&manual->lock);
	_Atomic(tw_service *) *at = &manual->services;
	while (tw_load_relaxed(at) && tw_load_relaxed(at) != service)
		at = &tw_load_relaxed(at)->next_on_clock;
	if (tw_load_relaxed(at))
		tw_store_relaxed(at, tw_load_relaxed(&service->next_on_clock));
	pthread_mutex_unlock(&manual->lock);
}

static bool manual_inherited(const tw_clock *clock)
{
	return tw__origin_inherited(&((const struct manual *)clock)->origin);
}

static const struct tw__clock_ops manual_ops = {
    .now = manual_now,
    .id = -1,
    .join = manual_join,
    .leave = manual_leave,
    .inherited = manual_inherited,
};

static struct manual *as_manual(tw_clock *clock)
{
	return clock && clock->ops == &manual_ops ? (struct manual *)clock : NULL;
}

static int manual_clock_check(const char *call, tw_clock *clock, uint64_t ns)
{
	if (!as_manual(clock))
		return tw__bad(-EINVAL, call, "clock");
	if (ns > INT64_MAX)
		return tw__bad(-EINVAL, call, "ns");
	return tw__clock_check(clock);
}

int tw_clock_manual_create(tw_clock **out, uint64_t start_ns)
{
	if (!out)
		return tw__invalid("out is NULL");
	if (start_ns > INT64_MAX)
		return tw__bad(-EINVAL, __func__, "start_ns");
	struct manual *manual = tw__alloc_zeroed(1, sizeof *manual);
	if (!manual || !tw__origin_init(&manual->origin)) {
		tw__free(manual);
		return -ENOMEM;
	}
	manual->clock.ops = &manual_ops;
	tw_store_relaxed(&manual->now_ns, start_ns);
	pthread_mutex_init(&manual->advancing, NULL);
	pthread_mutex_init(&manual->lock, NULL);
	*out = &manual->clock;
	return 0;
}

int tw_clock_manual_destroy(tw_clock *clock)
{
	if (!clock)
		return 0;
	struct manual *manual = as_manual(clock);
	if (!manual)
		return tw__bad(-EINVAL, __func__, "clock");
	if (tw_load_relaxed(&manual->services) && !manual_inherited(clock))
		return -EBUSY;
	pthread_mutex_destroy(&manual->advancing);
	pthread_mutex_destroy(&manual->lock);
	tw__free(manual);
	return 0;
}

/* The next instant that a service without a tick thread is driven for, or the limit. */
static uint64_t next_of_all(struct manual *manual, uint64_t limit_ns)
{
	for (tw_service *s = tw_load_acquire(&manual->services); s; /* CLOCK1 */
	     s = tw_load_acquire(&s->next_on_clock)) {
		if (s->threaded || tw_load_acquire(&s->phase.closed))
			continue;
		pthread_mutex_lock(&s->driving);
		limit_ns = tw__earlier(tw__loop_next_tick_ns(s), limit_ns);
		pthread_mutex_unlock(&s->driving);
	}
	return limit_ns;
}

/*
 * What is due at the clock's new time. Timers that callbacks schedule for now come in the next
 * tick, as on a real clock: a callback that does it again and again does not hold the advance up.
 */
static void drive(tw_service *service)
{
	struct tw__local *local = tw__local_of(service);
	if (!local)
		return;
	pthread_mutex_lock(&service->driving);
	do {
		if (tw_load_acquire(&service->phase.closed))
			break;
		tw__loop_advance(service, local, SIZE_MAX);
	} while (service->driver->loop.at_once);
	pthread_mutex_unlock(&service->driving);
}

/* Returns when what is due has been handed over. */
static void drive_all(struct manual *manual)
{
	for (tw_service *s = tw_load_acquire(&manual->services); s; /* CLOCK1 */
	     s = tw_load_acquire(&s->next_on_clock))
		if (s->threaded) /* returns when the thread has ended, too */
			tw__driver_await_poll(s, UINT64_MAX);
		else
			drive(s);
}

/* Moves the clock to an instant unless it is later: a callback may set it. What it says then. */
static uint64_t raise_to(struct manual *manual, uint64_t to_ns)
{
	uint64_t now_ns = tw_load_relaxed(&manual->now_ns);
	while (now_ns < to_ns)
		if (tw_cas_acq_rel(&manual->now_ns, &now_ns, to_ns))
			return to_ns;
	return now_ns;
}

static void advance(struct manual *manual, uint64_t to_ns)
{
	uint64_t reached_ns = tw_load_relaxed(&manual->now_ns);
	drive_all(manual);
	while (reached_ns < to_ns) {
		reached_ns = raise_to(manual, next_of_all(manual, to_ns));
		drive_all(manual);
	}
}

int tw_clock_manual_advance_by(tw_clock *clock, uint64_t ns)
{
	TW__UNCANCELLED;
	struct manual *manual = as_manual(clock);
	int r = manual_clock_check(__func__, clock, 0);
	if (r || tw__clock_in_callback(clock))
		return r ? r : tw__waits_inside("tw_clock_manual_advance_by");
	pthread_mutex_lock(&manual->advancing);
	uint64_t now_ns = tw_load_relaxed(&manual->now_ns);
	bool is_beyond = ns > INT64_MAX - now_ns;
	if (!is_beyond)
		advance(manual, now_ns + ns);
	pthread_mutex_unlock(&manual->advancing);
	return is_beyond ? tw__bad(-EINVAL, __func__, "ns") : 0;
}

int tw_clock_manual_set(tw_clock *clock, uint64_t ns)
{
	int r = manual_clock_check(__func__, clock, ns);
	if (!r)
		tw_store_release(&as_manual(clock)->now_ns, ns);
	return r;
}
