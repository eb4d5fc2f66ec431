/*
 * A piece of work, and the service's stack of them, for the rooms below wheel/run. The rules and
 * the pairs: run/work.h.
 */
#ifndef TW_WHEEL_WORKS_H
#define TW_WHEEL_WORKS_H

#include "wheel/core/service.h"

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
