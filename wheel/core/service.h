/*
 * A service: what all rooms of wheel/ share. What a room above this one needs beside it has a
 * struct of its own, which that room defines and this one only points to. All lie in one block of
 * memory (wheel/service/create.c).
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
#include "mpsc/base/tsc.h"
#include "wheel/slot/magazine.h"
#include "wheel/slot/groups.h"

struct tw__driver;
struct tw__submitted;
struct tw__works;

/* Ticks and the clock (ticks.h). Constant after creation. */
struct tw__time {
	uint64_t start_ns;                 /* tick 0 */
	uint64_t tick_ns, tick_multiplier; /* see tw__ticks_down */
	/* added to an instant: a span whose ticks, rounded down, are tw__tick_of */
	uint64_t round_up_ns;
	uint32_t tick_shift;
	bool steps;     /* the clock may step back: readings are clamped */
	bool published; /* may tell its time to producers: a tick thread on a clock that runs */
};

typedef void tw__pool_look_fn(void *pool, struct tw_service_liveness *out);

/*
 * For tw_service_liveness (service/liveness.c). The composition root sets the pool's members for a
 * service on a pool.
 */
struct tw__watch {
	_Atomic(void *) pool;        /* its own tasks are seen, too; NULL: none */
	tw__pool_look_fn *pool_look; /* sets out's members of the pool; NULL: none */
	_Atomic uint64_t turned_ns;  /* when the driver's last poll was */
};

/* How far a close has come. */
struct tw__phase {
	/* 0, or TW__CLOSING_*: the mode of all calls of close; only falls, once set */
	_Atomic uint32_t closing;
	_Atomic bool closed;      /* the driver has published that the gate accepts nothing more */
	_Atomic uint32_t stopped; /* the tick thread has ended */
	_Atomic uint32_t end;     /* what the end waits for; or BEGUN, DONE: the threads end */
};

enum { TW__END_BEGUN = 1 << 29, TW__END_DONE };

/* The modes of a close, the lowest first. */
enum {
	TW__CLOSING_DROP = 1 + TW_CLOSE_DROP,
	TW__CLOSING_RUN = 1 + TW_CLOSE_RUN,
	TW__CLOSING_DRAIN = 1 + TW_CLOSE_DRAIN
};

/* Timers that ended on threads that could not be attached. */
struct tw__without_lane {
	_Atomic uint64_t cancelled, dropped;
};

/* What a library above keeps with the service. */
struct tw__kept {
	void (*free)(struct tw__kept *kept); /* when the service has been freed */
	/* for tw_service_dump; now_ns: of the service's clock */
	void (*dump)(tw_service *service, FILE *out, uint64_t now_ns);
};

struct tw_service {
	struct tw__gate gate;       /* the line that every push reads */
	struct tw__counter counter; /* for resets, if the clock is the monotonic one */

	/* Constant after creation, except for atomic members. */
	alignas(TW__CACHE_LINE) struct tw__queue queue;
	struct tw__slots slots;
	struct tw__groups groups;
	struct tw__origin origin;
	tw_clock *clock;
	tw_executor *executor;
	struct tw__time time;
	bool threaded;              /* has a tick thread */
	_Atomic bool named_another; /* a timer has named another executor; never cleared */
	struct tw_service_config config;
	struct tw__driver *driver;       /* driver/driver.h */
	struct tw__submitted *submitted; /* run/batch.h */
	struct tw__works *works;         /* run/work.h */
	struct tw__watch watch;

	/* The thread that holds it is the driver. */
	alignas(TW__CACHE_LINE) pthread_mutex_t driving;
	tw_service *next_on_clock; /* of those on one manual clock; its lock */

	/* Any thread's. */
	/* moves on when a run finishes that someone waits for */
	alignas(TW__CACHE_LINE) _Atomic uint32_t finish_bell;
	/* by the thread that runs: a series has armed itself for an instant that is past */
	_Atomic uint32_t catching_up;
	struct tw__without_lane without_lane;
	struct tw__phase phase;
	_Atomic(struct tw__kept *) kept; /* NULL: nothing yet; set once, by compare-and-swap */
};

/*
 * In a forked child only the service's constants may be read, and none of its locks taken. Public
 * functions ask before anything else (mpsc/base/entry.h), or when they find that their thread has
 * not used the service last: in a child it never has (mpsc/base/process.h).
 */
static inline bool tw__forked(const tw_service *service)
{
	return tw__origin_inherited(&service->origin);
}

/* The entry check of an object of the layers above, which lives on a service. */
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

/*
 * A drain is under way: it refuses what is new, and lets what is pending be moved and armed again.
 * When it is over, the mode is a lower one.
 */
static inline bool tw__draining(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing) == TW__CLOSING_DRAIN;
}

/*
 * Puts off the end of the service until tw__end_may_come: by a call that drops timers, a completion
 * of a group, a layer that was destroyed while its work is out, a thread that pushes work. False:
 * nothing was left, and the end has begun. A caller that is waited for already, or holds the
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

/* The last access to the service. */
static inline void tw__end_may_come(tw_service *service)
{
	tw_add_release(&service->phase.end, (uint32_t)-1); /* CLOSE1 */
}

/* The calling thread is the driver, or at least there is one. */
#define TW_ASSERT_DRIVER(service) \
	TW_ASSERT_LOCKED((pthread_mutex_t *)(uintptr_t) & (service)->driving)

#endif
