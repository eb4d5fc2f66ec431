/*
 * A service, its ticks, and a thread's part of it. Rooms above wheel/core have structs of their
 * own, to which this one points; all lie in one block (wheel/service/create.c).
 */
#ifndef TW_WHEEL_SERVICE_H
#define TW_WHEEL_SERVICE_H

#include <errno.h>
#include <stdio.h>

#include "mpsc/base/assert.h"
#include "mpsc/gate.h"
#include "mpsc/queue.h"
#include "tickwheel/service.h"
#include "tickwheel/stats.h"
#include "mpsc/base/clock.h"
#include "mpsc/base/entry.h"
#include "mpsc/base/histogram.h"
#include "wheel/slot/magazine.h"
#include "wheel/slot/groups.h"
#include "wheel/wheel.h"

struct tw__driver;
struct tw__submitted;
struct tw__works;

/* Ticks and the clock. Constant after creation. */
struct tw__time {
	uint64_t start_ns;                 /* tick 0 */
	uint64_t tick_ns, tick_multiplier; /* see tw__ticks_down */
	/* added to an instant: a span of tw__tick_of ticks */
	uint64_t round_up_ns;
	uint32_t tick_shift;
	bool steps;             /* the clock may step back */
	bool by_counter;        /* the register may be read for it */
	bool published;         /* tells producers the time: a tick thread on a clock that runs */
	bool has_young;         /* new timers have two lanes */
	uint64_t short_most_ns; /* longest delay of the short way (timer/schedule.c) */
};

/* For tw_service_liveness. */
struct tw__watch {
	_Atomic(struct tw_pool *) pool; /* or NULL */
	_Atomic uint64_t turned_ns;     /* of the last poll */
};

/* How far a close has come. */
struct tw__phase {
	/* 0, or the mode of all calls of close; only falls */
	_Atomic uint32_t closing;
	_Atomic bool closed;      /* published: the gate accepts nothing more */
	_Atomic uint32_t stopped; /* the tick thread has ended */
	_Atomic uint32_t end;     /* what the end waits for; or TW__END_* */
};

enum { TW__END_BEGUN = 1 << 29, TW__END_DONE };

enum {
	TW__CLOSING_DROP = 1 + TW_CLOSE_DROP,
	TW__CLOSING_RUN = 1 + TW_CLOSE_RUN,
	TW__CLOSING_DRAIN = 1 + TW_CLOSE_DRAIN
};

/* Timers that ended on threads without a lane. */
struct tw__without_lane {
	_Atomic uint64_t cancelled, dropped;
};

struct tw__kept {
	void (*free)(struct tw__kept *kept); /* when the service has been freed */
	/* now_ns: of the service's clock */
	void (*dump)(tw_service *service, FILE *out, uint64_t now_ns);
};

struct tw_service {
	struct tw__gate gate; /* every push reads it */

	/* Constant after creation, except for atomic members. */
	alignas(TW__CACHE_LINE) struct tw__queue queue;
	struct tw__slots slots;
	struct tw__groups groups;
	struct tw__origin origin;
	tw_clock *clock;
	tw_executor *executor;
	tw_executor *inline_executor; /* of a room above */
	struct tw__time time;
	bool threaded;              /* has a tick thread */
	_Atomic bool named_another; /* by a timer; never cleared */
	struct tw_service_config config;
	struct tw__driver *driver;       /* driver/driver.h */
	struct tw__submitted *submitted; /* run/run.h */
	struct tw__works *works;         /* run/work.h */
	struct tw__watch watch;

	/* The thread that holds it is the driver. */
	alignas(TW__CACHE_LINE) pthread_mutex_t driving;
	_Atomic(tw_service *) next_on_clock; /* on one manual clock */

	/* Any thread's. */
	/* moves when a run finishes that someone waits for */
	alignas(TW__CACHE_LINE) _Atomic uint32_t finish_bell;
	/* a series has armed itself for a past instant */
	_Atomic uint32_t catching_up;
	_Atomic uint64_t entries; /* in the wheel, at the last poll */
	struct tw__without_lane without_lane;
	struct tw__phase phase;
	_Atomic(struct tw__kept *) kept; /* set once, by compare-and-swap */
};

/* In a forked child only constants may be read, and no lock taken. */
static inline bool tw__forked(const tw_service *service)
{
	return tw__origin_inherited(&service->origin);
}

/* The entry check of an object that lives on a service. */
static inline int tw__layer_check(const char *call, const void *object, const char *what,
				  const tw_service *service)
{
	return tw__entry_check(call, object, what, service && tw__forked(service));
}

static inline int tw__service_check_in(const char *call, const tw_service *service)
{
	return tw__layer_check(call, service, "service", service);
}
#define tw__service_check(service) tw__service_check_in(__func__, service)

/* What is new is refused; what is pending may be moved and armed again. */
static inline bool tw__draining(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing) == TW__CLOSING_DRAIN;
}

/*
 * Puts off the end of the service. False: it has begun. Who is waited for already, or holds the
 * service (run/work.h), just adds 1.
 */
static inline bool tw__end_put_off(tw_service *service)
{
	uint32_t seen = tw_load_relaxed(&service->phase.end);
	do {
		if (seen >= TW__END_BEGUN)
			return false;
	} while (!tw_cas_acq_rel(&service->phase.end, &seen, seen + 1)); /* CLOSE1 */
	return true;
}

/* Takes that back. It is the caller's last access to the service. */
static inline void tw__end_may_come(tw_service *service)
{
	tw_add_release(&service->phase.end, (uint32_t)-1); /* CLOSE1 */
}

/* Some thread is the driver. */
#define TW_ASSERT_DRIVER(service) \
	TW_ASSERT_LOCKED((pthread_mutex_t *)(uintptr_t) & (service)->driving)

/* -------------------------------------------------------------------- ticks */

/*
 * Ticks in a span n < 2^62, rounded down. With d the tick, 2^s < d <= 2^(s+1), e < d and
 * m = (2^(64+s) + e) / d: n * m / 2^(64+s) = n/d + (n * e) / (d * 2^(64+s)), and n * e < 2^(64+s):
 * never the next integer (T. Granlund, P. Montgomery, 1994).
 */
static inline uint64_t tw__ticks_in_range(const tw_service *service, uint64_t span_ns)
{
	return (uint64_t)((unsigned __int128)span_ns * service->time.tick_multiplier >> 64) >>
	       service->time.tick_shift;
}

static inline bool tw__is_in_range(uint64_t span_ns)
{
	return !(span_ns >> 62);
}

/* The ticks in a span of any length, rounded down. */
static inline uint64_t tw__ticks_down(const tw_service *service, uint64_t span_ns)
{
	return tw_likely(tw__is_in_range(span_ns)) ? tw__ticks_in_range(service, span_ns)
						   : span_ns / service->time.tick_ns;
}

/* The first tick not before an instant; 0 before the service's start. */
static inline uint64_t tw__tick_of(const tw_service *service, uint64_t instant_ns)
{
	if (instant_ns <= service->time.start_ns)
		return 0;
	return tw__ticks_down(service, instant_ns - service->time.start_ns - 1) + 1;
}

static inline uint64_t tw__tick_ns(const tw_service *service, uint64_t tick)
{
	return service->time.start_ns + tick * service->time.tick_ns;
}

/* Reads the service's clock, but no earlier than what the driver has turned through. */
static inline uint64_t tw__clock_read(const tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(service->time.steps)) {
		uint64_t turned_ns = tw__tick_ns(service, tw_load_relaxed(&service->gate.cursor));
		return now_ns > turned_ns ? now_ns : turned_ns;
	}
	return now_ns;
}

/* The same or a little later, and cheaper: for resets. */
static inline uint64_t tw__clock_read_fast(const tw_service *service)
{
	if (tw_likely(service->time.by_counter))
		return tw__counter_now(&tw__thread.counter);
	return tw__clock_read(service);
}

/* ------------------------------------------------------------- threads' parts */

/* Ticks from which on a new timer is in the young lane; entries of a long one. */
enum { TW__YOUNG_TICKS = 24, TW__YOUNG_LIVING = 8192, TW__YOUNG_LONG = 1 << 18 };

/* Pushes in a tick for which the tick thread stays open: fewer cost less than a turn. */
enum { TW__BUSY_PUSHES = 512 };

/* How far ahead the short way of delays goes, and the cursor in one epoch. */
#define TW__SHORT_TICKS (TW__NEAR_TICKS / 2)

enum { TW__LATENCY_WAIT, TW__LATENCY_RUN, TW__LATENCIES };

/* What a lane's delays count from (drain.c). */
struct tw__lane_base {
	uint64_t base_ns; /* never falls (G6) */
	/* what the thread counted from, not later than base_ns; 0: unknown */
	uint64_t estimate_ns;
	/* the lane's epoch here; 0: none yet */
	uint64_t sequence;
};

/* One thread's part; survives it, and goes to the next one. */
struct tw__local {
	struct tw__lane lane; /* first: the queue's */
	/*
	 * New timers that are TW__YOUNG_TICKS or more ahead. The driver leaves them here while none
	 * comes near: most are cancelled before that.
	 */
	struct tw__lane young;

	/* Its thread's alone. */
	struct tw__magazine magazine;
	/* its lanes carry the base of this word of the gate, which was open; or 0 */
	uint64_t epoch_word;
	/* while the gate says this, a delay may go the short way */
	uint64_t short_word;
	/* and the delay: a span whose ticks, rounded down, are the deadline */
	uint64_t short_base_ns;
	/*
	 * New timers before young_tick, which never falls, go into `lane`: so of those for one tick
	 * the ones in `young` were first (G6). young_from is no earlier. A timer from there on goes
	 * into `young` without tw__lane_bring: soonest_new is earlier.
	 */
	uint64_t young_tick, young_from;
	/* what it last counted from; never falls (G6) */
	uint64_t counted_ns;
	/* segments filled, by its clock; when it looked whether that is fast */
	uint64_t filled, looked_ns;

	/* Written by its thread, read by statistics. */
	_Atomic uint64_t fired, dropped; /* see magazine, too */
	_Atomic uint64_t rejected, runs, overruns, resets, resets_eager;
	/* [TW__LATENCIES]; from the thread's first callback on */
	_Atomic(struct tw__histogram *) latencies;

	_Atomic uint32_t
	    /* the service's own thread: no producer; cleared when it ends */
	    of_service;

	/* The driver's alone. */
	alignas(TW__CACHE_LINE) struct tw__lane_base base, young_base;
	uint64_t young_since; /* unread epochs of the young lane are not older than this number */
	/* tw__kept when the young lane was empty, and entries of it that were read since */
	_Atomic uint64_t kept;
	uint64_t seen; /* entries written when it last looked */
};

static inline struct tw__lane *tw__young_of(struct tw__lane *lane)
{
	return &((struct tw__local *)lane)->young;
}

/* Timers that the thread has scheduled and not cancelled. */
static inline uint64_t tw__kept(const struct tw__local *local)
{
	return tw_load_relaxed(&local->magazine.scheduled) -
	       tw_load_relaxed(&local->magazine.cancelled);
}

/* The driver is to read the young lane as it comes: packing would not keep it short. */
static inline bool tw__young_is_long(const struct tw__local *local)
{
	uint64_t unread = tw__lane_backlog(&local->young), half = local->young.bound / 2,
		 grown = tw__kept(local) - tw_load_relaxed(&local->kept);
	return unread > (half < TW__YOUNG_LONG ? half : TW__YOUNG_LONG) ||
	       (unread > TW__YOUNG_LIVING && (int64_t)grown > (int64_t)unread / 2);
}

static inline struct tw__local *tw__local_of(tw_service *service)
{
	return (struct tw__local *)tw__queue_lane(&service->queue);
}

/* If it is the one that this thread used last; else, and always in a forked child, NULL. */
static inline struct tw__local *tw__local_at_hand(const tw_service *service)
{
	const struct tw__thread *thread = &tw__thread;
	if (tw_unlikely(thread->queue_id != service->gate.queue_id))
		return NULL;
	struct tw__lane *lane = thread->lane;
	if (!lane)
		__builtin_unreachable(); /* such a thread has an id that no queue has */
	return (struct tw__local *)lane;
}

/*
 * Makes what was put into the lane visible; tw__gate_look_after_push follows. later: nothing of it
 * is due before the next tick.
 */
static inline void tw__publish_later(tw_service *service, struct tw__local *local)
{
	if (tw_likely(service->gate.asymmetric)) {
		tw__lane_publish(&local->lane);
		tw__lane_publish(&local->young);
	} else {
		tw__lane_publish_seq_cst(&local->lane);
		tw__lane_publish_seq_cst(&local->young);
	}
}

static inline void tw__publish(tw_service *service, struct tw__local *local)
{
	/* published with the tail (lane.h, LANE1) */
	tw_store_relaxed(&local->lane.urgent, tw__lane_written(&local->lane));
	tw__publish_later(service, local);
}

#endif
