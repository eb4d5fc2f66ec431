/*
 * Waking the driver, and threads that wait for the end of a run or of a group's members (the bell).
 */
#ifndef TW_WHEEL_WAKE_H
#define TW_WHEEL_WAKE_H

#include "wheel/core/service.h"

/* Whether a tick ends before a sleeping driver wakes. The plan is the end of a tick, too. */
static inline bool tw__is_before_plan(const tw_service *service, uint64_t tick)
{
	return tw__tick_ns(service, tick) < tw_load_relaxed(&service->gate.plan); /* GATE1 */
}

/*
 * After the push of an entry of a timer that was moved, is armed again, or was not due: wakes the
 * driver if it sleeps for longer. The driver may have dropped the entry of a move to earlier that
 * came before this push (resolve.c): what the word says counts, too.
 */
void tw__wake_if_before_plan(tw_service *service, uint64_t entry, uint64_t tick);

static inline void tw__wake_for_back(tw_service *service, uint64_t entry, uint64_t tick)
{
	if (tw_unlikely(tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED))
		tw__wake_if_before_plan(service, entry, tick);
}

/*
 * Live timers by the lanes' counters, about. *producers (or NULL): lanes of threads that are not
 * the service's own.
 */
uint64_t tw__live_timers(tw_service *service, uint64_t *producers);

uint64_t tw__lanes_unread(tw_service *service);

/* Entries beyond one for each live timer; `live` and `allowed` of them need no sweep (G11). */
struct tw__dead {
	uint64_t dead, live, allowed;
};

/* Counts dead entries, about; in_wheel are those in the wheel. */
struct tw__dead tw__count_dead(tw_service *service, uint64_t in_wheel);

/* Cancels of a thread between two looks whether a driver that sleeps is to sweep. */
enum { TW__CANCELS_PER_WAKE = 512 };

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

/* The same, if a sweep is due (G11). After the cancel was counted. */
void tw__wake_to_sweep(tw_service *service);

/* Wakes all threads that wait for the bell. */
void tw__ring_finish(tw_service *service);

/*
 * ---------------------------------------------------------------------- work
 * The rules and the pairs: run/work.h.
 */

struct tw__works {
	_Atomic(struct tw__work *) stack; /* for the driver */
	/* the driver's: to be offered again in the next tick, in order */
	struct tw__work *deferred, **deferred_end;
	/* layers; CLOSED: no more of them */
	_Atomic uint64_t holders;
};

#define TW__HOLDERS_CLOSED (UINT64_C(1) << 63)

typedef void tw__work_fn(struct tw__work *work);

struct tw__work {
	struct tw__work *next; /* on the stack; written by the work's holder */
	uint32_t tickets;      /* 1; a batch's count is here */
	uint16_t spare;        /* its owner's */
	/* constant */
	bool uncounted : 1; /* not by tw_service_advance */
	bool is_job : 1;    /* may block: a pool keeps one worker free of it */
	tw__work_fn *run;
	_Atomic uint64_t service_and_mark; /* a batch's service is here; odd: it is work */
	/*
	 * The inline one once the owner has ended (tw__work_leave_executor). An owner whose work is
	 * not out may set another.
	 */
	_Atomic(tw_executor *) executor;
};

/* For the driver to offer. Any thread. Cannot fail, never blocks. */
void tw__work_push_and_ring(tw_service *service, struct tw__work *work);

static inline tw_service *tw__work_service(struct tw__work *work)
{
	return (tw_service *)(uintptr_t)(tw_load_relaxed(&work->service_and_mark) - 1);
}

#endif
