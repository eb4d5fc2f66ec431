/*
 * What the layers want run on an executor, by the same face as batches of timers.
 *
 * A piece of work is its owner's memory, and a batch with one ticket to an executor. What the
 * executor refuses or gives back goes onto a stack of the service, whose driver offers it again in
 * its next tick, and runs it for the inline executor.
 *
 * The owner submits work again only from inside run or after it. Once run is called nobody else
 * touches the work: run may free it.
 *
 * Trampoline. If an executor runs tickets inside its submit, tw__work_run pushes the work onto the
 * stack, except inside the driver's submit. So a layer's submit runs no user code, and a chain of
 * submits needs one frame.
 *
 * The owner holds its service (tw__service_hold), which then refuses to close: there is always a
 * driver. A holder that is destroyed while its work is out leaves (tw__service_leave), and close
 * waits for it.
 *
 * Pairing table
 *   WORK1  the owner's writes before tw__work_submit -> run: the executor's own hand-over; on the
 *       stack, CAS release (push) -> exchange acquire (the driver).
 *   WORK2  push onto the stack (seq_cst), then load of the gate's word, against the driver's
 *       publishing of PARKED, then its load of the stack (all seq_cst): one of the two sees the
 *       other.
 *   WORK3  works.holders: CAS acq_rel (hold), sub seq_cst (let go, leave) -> CAS acq_rel (close):
 *       all that holders did came before.
 * Once pushed, work may be run and the last hold be given up. So a push puts off the end of the
 * service until the pusher has looked whether to ring (CLOSE1).
 */
#ifndef TW_WHEEL_WORK_H
#define TW_WHEEL_WORK_H

#include "mpsc/base/atomics.h"
#include "wheel/core/wake.h"
#include "wheel/run/run.h"

_Static_assert(offsetof(struct tw__work, tickets) == offsetof(struct tw__chunk, count),
	       "seen as a batch");
_Static_assert(offsetof(struct tw__work, service_and_mark) == offsetof(struct tw__chunk, holder),
	       "seen as a batch");

/* Needs a service that is held, and an executor that lives, while the work is used. */
static inline void tw__work_init(struct tw__work *work, tw_service *service, tw_executor *executor,
				 tw__work_fn *run)
{
	*work = (struct tw__work){.tickets = 1, .run = run};
	tw_store_relaxed(&work->executor, executor);
	tw_store_relaxed(&work->service_and_mark, (uintptr_t)service + 1);
}

/* To the executor, and if it refuses to the driver; to the executor; to the driver. */
enum tw__work_way { TW__WORK_OFFER, TW__WORK_TRY, TW__WORK_LATER };

TW_PRIVATE int tw__work_bring(struct tw__work *work, enum tw__work_way way);

/* Has run(work) called once, on the executor, not here. Any thread. Cannot fail, never blocks. */
static inline void tw__work_submit(struct tw__work *work)
{
	(void)tw__work_bring(work, TW__WORK_OFFER);
}

/* If the answer is negative, the executor refuses, and the work is still the caller's. */
static inline int tw__work_try_submit(struct tw__work *work)
{
	return tw__work_bring(work, TW__WORK_TRY);
}

/* Goes by way of the driver. Work that comes back while it offers waits for the next tick. */
static inline void tw__work_submit_later(struct tw__work *work)
{
	(void)tw__work_bring(work, TW__WORK_LATER);
}

/* The work calls no user function any more: the driver runs it where it would offer it. */
static inline void tw__work_leave_executor(struct tw__work *work)
{
	tw_store_relaxed(&work->executor, tw_executor_inline());
}

static inline bool tw__batch_is_work(tw_batch *batch)
{
	return (uintptr_t)tw__batch_service(batch) & 1;
}

/* tw_run_one of it: 1; 0: inside tw__work_submit, so the driver got it. */
int tw__work_run(struct tw__work *work);

bool tw__inside_work(const tw_service *service);

/* Tells whether the calling thread is the driver, inside a poll. */
bool tw__inside_poll(const tw_service *service);

/* ---------------------------------------------------------------- the driver */

/* Offers what was refused in the last tick, and the stack. Returns how many ran. */
size_t tw__works_offer(tw_service *service);

static inline bool tw__works_waiting(tw_service *service)
{
	return tw_load_seq_cst(&service->works->stack) != NULL; /* WORK2 */
}

/* --------------------------------------------------------------------- holds */

/*
 * Close and destroy answer -EBUSY until all have let go. 0, or -ESHUTDOWN: closed, or closing;
 * -EPERM in a forked child.
 */
int tw__service_hold(tw_service *service);
void tw__service_let_go(tw_service *service);

/* The holder only waits for its work, or a timer's callback, to return. Then tw__end_may_come. */
void tw__service_leave(tw_service *service);

static inline bool tw__service_is_held(tw_service *service)
{
	return (uint32_t)tw_load_relaxed(&service->works->holders) != 0;
}

/* For close: forbids further holds. Returns false if there are some. */
bool tw__service_forbid_holds(tw_service *service);

#endif
