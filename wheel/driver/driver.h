/*
 * The driver's part of a service. The driver is the thread that holds `driving`: the tick thread,
 * or the caller of tw_service_advance. It alone touches and calls what is here, except for atomic
 * members, and for the calls that say so.
 */
#ifndef TW_WHEEL_DRIVER_H
#define TW_WHEEL_DRIVER_H

#include <errno.h>
#include <pthread.h>

#include "mpsc/base/histogram.h"
#include "wheel/core/service.h"
#include "wheel/driver/loop_fd.h"
#include "wheel/driver/outbox.h"
#include "wheel/wheel.h"

/* Numbers of the gate that are remembered. */
enum { TW__EPOCHS = 1024 };

/* By sequence number of the gate's word; the driver's. */
struct tw__bases {
	uint64_t bases_ns[TW__EPOCHS]; /* what its pushes count from, drain.c's B(S) */
	/* a reading taken after that sequence number was replaced */
	uint64_t replaced_ns[TW__EPOCHS];
};

/* When the tick thread sleeps, and how long; the driver's. */
struct tw__park {
	uint32_t quiet_polls; /* in a row, with little traffic */
	bool woken;           /* slept since the last poll */
	bool slept_a_tick;    /* and no longer than planned */
	bool fires_each_tick; /* so it stays awake */
};

/* The thread, and what others ask of it. */
struct tw__tick_thread {
	pthread_t thread;
	_Atomic uint32_t started;      /* 1: it runs; 2: it could not be set up */
	_Atomic uint32_t stopping;     /* it is asked to end */
	_Atomic uint32_t polls_wanted; /* whole polls that others wait for: asked for, and done */
	_Atomic uint32_t polls_done;
};

/* Written by the driver, read by statistics. */
struct tw__driver_counters {
	struct tw__histogram lateness;
	_Atomic uint64_t wakeups, ticks, tick_cpu_ns, tick_cpu_max_ns, clock_steps;
	_Atomic uint64_t chunks_used;
};

struct tw__driver {
	struct tw__wheel wheel;
	struct tw__outboxes outboxes; /* due, not yet taken over by their executors */
	uint64_t last_now_ns;         /* clamped: never falls */
	uint64_t last_reading_ns;
	uint64_t turning_to; /* the tick of the poll under way */
	uint64_t moved_tick; /* `next` at the last move_nearer */
	uint32_t polls;
	struct tw__bases bases;
	struct tw__park park;
	/* when memory begins to go back, if things stay as they are; 0: there is little to give */
	uint64_t purge_ns;
	struct tw__loop loop;
	struct tw__driver_counters counters;
	size_t table_bytes; /* of the wheel */
	struct tw__tick_thread tick_thread;
	bool drains_young; /* polls read the young lanes whatever is in them, in parts */
};

enum { TW__SPARE_CHUNKS = 512, TW__FEW_SPARE_CHUNKS = 16 };

/*
 * Chunks that what the driver holds may come to need. Two bounds, of which the lower one counts:
 *   by shape    the buckets' `slack`, what a step of a poll brings before it is packed, and
 *               `beside`
 *   by entries  a chunk for each entry, of those in the wheel and of timers that come back to it
 *               from outboxes and batches
 */
static inline size_t tw__chunks_wanted(const tw_service *service, size_t beside)
{
	const struct tw__wheel *wheel = &service->driver->wheel;
	size_t by_shape = wheel->slack + TW__SPARE_CHUNKS + beside,
	       by_entries = wheel->entries - wheel->filed + TW__FEW_SPARE_CHUNKS +
			    tw_load_relaxed(&service->slots.mapped);
	return by_shape < by_entries ? by_shape : by_entries;
}

/*
 * No chunk is left beside these. The arena is sized so that outboxes and batches do not lead to
 * this (service/create.c); it is the last line of defense.
 */
static inline bool tw__short_of_chunks(const tw_service *service)
{
	return tw_unlikely(tw__wheel_chunks_left(&service->driver->wheel) <
			   tw__chunks_wanted(service, 0));
}

/* Reads the service's clock; never earlier than the last reading. */
static inline uint64_t tw__driver_now(tw_service *service)
{
	struct tw__driver *driver = service->driver;
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(now_ns < driver->last_reading_ns))
		tw_bump(&driver->counters.clock_steps, 1);
	driver->last_reading_ns = now_ns;
	if (now_ns > driver->last_now_ns)
		driver->last_now_ns = now_ns;
	return driver->last_now_ns;
}

/* Something is due that no executor has yet. */
static inline bool tw__any_ready(const tw_service *service)
{
	return service->driver->outboxes.first || service->driver->outboxes.refiled;
}

/* TW_CLOSE_RUN: what is handed over runs whatever its deadline. */
static inline bool tw__forced(const tw_service *service)
{
	return tw_load_relaxed(&service->phase.closed) &&
	       tw_load_acquire(&service->phase.closing) == TW__CLOSING_RUN;
}

/*
 * TW_CLOSE_DROP: threads that close end all pending timers, and ready runs stay where they are,
 * from the moment that a close asks for it.
 */
static inline bool tw__dropping(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing) == TW__CLOSING_DROP;
}

static inline uint64_t tw__next_tick_ns(const tw_service *service)
{
	return tw__tick_ns(service, service->driver->wheel.next);
}

/* ------------------------------------------------------------------------------------- poll.c */

struct tw__poll {
	uint64_t drained; /* lane entries */
	uint64_t pushed;  /* the same that threads have put since the poll before, read or not */
	uint64_t elapsed; /* ticks since the poll before */
	size_t done;      /* callbacks run or handed over */
	bool now;         /* more is due, in a lane or in the cascade of far timers */
	bool soon;        /* something is left for the next tick */
};

/* A poll that drains this many entries for each tick since the last one is no quiet one. */
enum { TW__BUSY_ENTRIES = 32 };

/* One whole poll, `driving` held. budget: callbacks to run or hand over. */
struct tw__poll tw__poll(tw_service *service, struct tw__local *local, size_t budget);

/* What is mapped of the arena may be used: an eighth of it for batches. `driving` held. */
void tw__driver_take_chunks(tw_service *service);

/* Takes in the chunks of batches that are over. How many runs were given back with them. */
unsigned tw__driver_collect(tw_service *service);

/* Whether there may be something in lanes that are not young (gate.h, GATE2). `driving` held. */
bool tw__driver_any_unread(tw_service *service);

/* A new word for the gate: flags, ACCEPTING, and the next sequence number, which stands for now. */
void tw__driver_publish(tw_service *service, uint64_t flags);

/* Refuses new timers: each push that no later drain sees, sees the gate closed. */
void tw__driver_publish_closed(tw_service *service);

/* ------------------------------------------------------------------------------------- park.c */

/* Entries looked at for a plan before it is put off until the next tick. */
enum { TW__PLAN_BUDGET = 8192 };

/* The end of the first tick with something to do; UINT64_MAX: there is none. */
uint64_t tw__driver_plan(tw_service *service, unsigned budget);

/*
 * Publishes PARKED with a plan: from the barrier on, a thread that brings something earlier rings.
 * What came before is found in the lanes. False: the barrier has failed, so sleep no longer than a
 * tick.
 */
bool tw__driver_park(tw_service *service, uint64_t plan_ns);

/* Starts the tick thread. 0, or a negative errno. */
int tw__driver_start(tw_service *service);

/* Waits for a whole poll that begins after the call. False: not by the deadline. */
bool tw__driver_await_poll(tw_service *service, uint64_t deadline_ns);

/* Ends the tick thread. False: not by the deadline. */
bool tw__driver_stop(tw_service *service, uint64_t deadline_ns);

/* ------------------------------------------------------------------------------------ drain.c */

/*
 * Takes what the lanes hold; of the young lanes, what is to be read by now, or all. Returns the
 * number of entries. *again: a lane still has some to read.
 */
uint64_t tw__drain(tw_service *service, bool all, bool *again);

/*
 * The tick in which the first of the young lanes is to be read; UINT64_MAX: none (gate.h, GATE2).
 */
uint64_t tw__young_plan(tw_service *service);

/* ---------------------------------------------------------------------------------- resolve.c */

void tw__resolve(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
		 const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks);

/* Whether an entry of the timer is in the wheel that will be met no later than `tick`. */
bool tw__location_covers(const tw_service *service, tw__wheel_entry entry, uint64_t tick);

/* An entry has left the wheel without having been resolved. */
void tw__location_in_batch(tw_service *service, tw__wheel_entry entry);

/* Files an entry of an armed timer. back: it was handed over, and is not any more. */
void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back);

/* Files an entry that did not get its run, if its timer is alive. */
void tw__refile(tw_service *service, uint64_t entry);

/* ------------------------------------------------------------------------------------ sweep.c */

/* Sweeps a part if a sweep is under way, or, with `look`, if one is wanted. */
void tw__sweep(tw_service *service, uint64_t drained, bool look);

/* Whether a sweep is wanted. */
bool tw__sweep_wanted(tw_service *service);

/* Goes on through about n chunks of an outbox. How many it has not used. */
unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n);

/* At the end of a poll. look: see whether there is much to give. busy: there is traffic. */
void tw__purge(tw_service *service, bool look, bool busy);

/* Memory is going back, a step in each poll. */
bool tw__purging(const tw_service *service);

/* Before the driver sleeps: the deadline, or an earlier instant at which to give memory back. */
uint64_t tw__purge_wake_by(tw_service *service, uint64_t deadline_ns);

#endif
