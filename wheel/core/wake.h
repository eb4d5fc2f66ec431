/*
 * Waking the driver: for an entry, for a piece of work. Waking threads that wait for the end of a
 * run or of a group's members: they sleep on the finish bell.
 */
#ifndef TW_WHEEL_WAKE_H
#define TW_WHEEL_WAKE_H

#include "wheel/core/service.h"

/*
 * Whether a tick ends before a sleeping driver wakes by itself. The plan is the end of a tick, too:
 * a deadline within the planned tick is not earlier.
 */
static inline bool tw__is_before_plan(const tw_service *service, uint64_t tick)
{
	return tw__tick_ns(service, tick) < tw_load_relaxed(&service->gate.plan); /* GATE1 */
}

/*
 * After the push of an entry of a timer that was moved, is armed again, or was not due: wakes the
 * driver if it sleeps longer than until this tick. If the timer was moved to earlier between its
 * compare-and-swap and this push, the driver may have dropped the entry of that move (resolve.c):
 * so what the word says by now counts, too.
 */
void tw__wake_if_before_plan(tw_service *service, uint64_t entry, uint64_t tick);

static inline void tw__wake_for_back(tw_service *service, uint64_t entry, uint64_t tick)
{
	if (tw_unlikely(tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED))
		tw__wake_if_before_plan(service, entry, tick);
}

/* Entries of timers that are gone, in the wheel and in lanes (G11). */

/*
 * The number of live timers, by the lanes' counters; about right while other threads work.
 * *producers, which may be NULL: the number of lanes, without those of the service's own threads.
 */
uint64_t tw__live_timers(tw_service *service, uint64_t *producers);

/* Unread entries of all lanes. */
uint64_t tw__lanes_unread(tw_service *service);

/* dead: entries beyond one for each live timer; `live` and `allowed` of them need no sweep. */
struct tw__dead {
	uint64_t dead, live, allowed;
};

/* in_wheel: entries there. About right, as above. */
struct tw__dead tw__count_dead(tw_service *service, uint64_t in_wheel);

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

/* The same, if what cancels leave behind is to be swept (G11). After the cancel was counted. */
void tw__wake_to_sweep(tw_service *service);

/* Moves the finish bell and wakes all threads that wait for it. */
void tw__ring_finish(tw_service *service);

/*
 * ---------------------------------------------------------------------- work
 * The service's stack of work. The rules and the pairs: run/work.h.
 */

/* The layers' part of a service. */
struct tw__works {
	_Atomic(struct tw__work *) stack; /* for the driver to offer, or to run */
	/* the driver's: refused, to be offered again in the next tick; in order */
	struct tw__work *deferred, **deferred_end;
	/* layers that use the service; CLOSED: no more of them */
	_Atomic uint64_t holders;
};

#define TW__HOLDERS_CLOSED (UINT64_C(1) << 63)

typedef void tw__work_fn(struct tw__work *work);

struct tw__work {
	struct tw__work *next; /* on the stack; the thread that holds the work writes it */
	uint32_t tickets;      /* 1, where a batch has its count */
	uint16_t spare;        /* its owner's, for whatever */
	/* constant */
	bool uncounted : 1; /* tw_service_advance does not count its run */
	bool is_job : 1;    /* it may block: a pool keeps one worker free of it */
	tw__work_fn *run;
	_Atomic uint64_t service_and_mark; /* where a batch has its service; odd: it is work */
	/*
	 * the inline executor once the work's owner has ended (tw__work_leave_executor). An owner
	 * whose work is not out may set it again
	 */
	_Atomic(tw_executor *) executor;
};

/* For the driver to offer to the work's executor. Any thread. Cannot fail, never blocks. */
void tw__work_push_and_ring(tw_service *service, struct tw__work *work);

static inline tw_service *tw__work_service(struct tw__work *work)
{
	return (tw_service *)(uintptr_t)(tw_load_relaxed(&work->service_and_mark) - 1);
}

#endif
