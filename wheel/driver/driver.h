/*
 * The driver's part of a service. The driver is the thread that holds `driving`: the tick thread,
 * or the caller of tw_service_advance. It alone touches what is here, except for atomic members.
 */
#ifndef TW_WHEEL_DRIVER_H
#define TW_WHEEL_DRIVER_H

#include "mpsc/base/histogram.h"
#include "wheel/core/service.h"
#include "wheel/driver/drain.h"
#include "wheel/driver/loop_fd.h"
#include "wheel/driver/outbox.h"
#include "wheel/driver/park.h"
#include "wheel/driver/sweep.h"
#include "wheel/wheel.h"

/*
 * One mapping: the wheel's table, what the purge of its arena needs, the outboxes' table. The
 * threads that take slots map the arena (slots.h, TW__ARENA), so the driver has no path that can
 * fail.
 */
struct tw__wheel_memory {
	void *mapping;
	size_t bytes, table_bytes;
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
	struct tw__wheel_memory memory;
	struct tw__tick_thread tick_thread;
	bool drains_young; /* polls read the young lanes whatever is in them, in parts */
};

/*
 * No chunk is left beside those that the wheel may need to turn. The size of the arena prevents it
 * (create.c, make_wheel); this is the last line of defense.
 */
enum { TW__SPARE_CHUNKS = 512 };

static inline bool tw__short_of_chunks(const tw_service *service)
{
	return tw_unlikely(tw__wheel_chunks_left(&service->driver->wheel) <
			   service->driver->wheel.slack + TW__SPARE_CHUNKS);
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

/* The end of a tick; of no tick: no instant. */
static inline uint64_t tw__plan_ns(const tw_service *service, uint64_t tick)
{
	return tick == UINT64_MAX ? UINT64_MAX : tw__tick_ns(service, tick);
}

/* Entries looked at for a plan before it is put off until the next tick. */
enum { TW__PLAN_BUDGET = 8192 };

#endif
