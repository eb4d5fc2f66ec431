/* Clocks that a program moves by hand. An advance drives the services on the clock. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "mpsc/base/cancel.h"
#include "mpsc/base/clock.h"
#include "mpsc/base/entry.h"
#include "wheel/core/frame.h"

struct manual {
	tw_clock clock;
	_Atomic uint64_t now_ns; /* by advances, one at a time, and by set */
	pthread_mutex_t advancing;
	pthread_mutex_t lock; /* the list */
	struct tw__clock_listener *listeners;
	struct tw__origin origin; /* a forked child has neither its locks nor its listeners */
};

static uint64_t manual_now(const tw_clock *clock)
{
	return tw_load_acquire(&((const struct manual *)clock)->now_ns);
}

static void manual_listen(tw_clock *clock, struct tw__clock_listener *listener)
{
	struct manual *manual = (struct manual *)clock;
	pthread_mutex_lock(&manual->lock);
	struct tw__clock_listener **at = &manual->listeners;
	while (listener->by_itself && *at)
		at = &(*at)->next;
	listener->next = *at;
	*at = listener;
	pthread_mutex_unlock(&manual->lock);
}

static void manual_unlisten(tw_clock *clock, struct tw__clock_listener *listener)
{
	struct manual *manual = (struct manual *)clock;
	pthread_mutex_lock(&manual->lock);
	for (struct tw__clock_listener **at = &manual->listeners; *at; at = &(*at)->next) {
		if (*at == listener) {
			*at = listener->next;
			break;
		}
	}
	pthread_mutex_unlock(&manual->lock);
}

static bool manual_inherited(const tw_clock *clock)
{
	return tw__origin_inherited(&((const struct manual *)clock)->origin);
}

static const struct tw__clock_ops manual_ops = {
    .now = manual_now,
    .id = -1,
    .listen = manual_listen,
    .unlisten = manual_unlisten,
    .inherited = manual_inherited,
};

static struct manual *as_manual(tw_clock *clock)
{
	return clock && clock->ops == &manual_ops ? (struct manual *)clock : NULL;
}

/* What a call that moves the clock to or by ns begins with. */
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
	struct manual *manual = calloc(1, sizeof *manual);
	if (!manual || !tw__origin_init(&manual->origin)) {
		free(manual);
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
	if (manual->listeners && !manual_inherited(clock))
		return -EBUSY;
	pthread_mutex_destroy(&manual->advancing);
	pthread_mutex_destroy(&manual->lock);
	free(manual);
	return 0;
}

/*
 * The list may grow while a callback runs; a service is not destroyed while its clock is advanced.
 */
static struct tw__clock_listener *first_of(struct manual *manual)
{
	pthread_mutex_lock(&manual->lock);
	struct tw__clock_listener *first = manual->listeners;
	pthread_mutex_unlock(&manual->lock);
	return first;
}

static uint64_t next_of_all(struct manual *manual, uint64_t limit_ns)
{
	for (struct tw__clock_listener *l = first_of(manual); l; l = l->next) {
		uint64_t next_ns = l->next_ns(l);
		if (next_ns < limit_ns)
			limit_ns = next_ns;
	}
	return limit_ns;
}

static void tell_all(struct manual *manual)
{
	for (struct tw__clock_listener *l = first_of(manual); l; l = l->next)
		l->moved(l);
}

/*
 * Moves the clock to an instant unless it is later already: a callback may set it meanwhile. What
 * it says then.
 */
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
	tell_all(manual);
	while (reached_ns < to_ns) {
		reached_ns = raise_to(manual, next_of_all(manual, to_ns));
		tell_all(manual);
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
