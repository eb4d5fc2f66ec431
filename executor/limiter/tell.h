/* The limiter's lock, and the calls of user code that follow when it is given up. */
#ifndef TW_EXECUTOR_LIMITER_TELL_H
#define TW_EXECUTOR_LIMITER_TELL_H

#include "executor/limiter/internal.h"

/* All that was submitted is known. */
void tw__limiter_lock(struct tw_limiter *l, struct tw__limiter_deferred *deferred);

/* All that matters to a runner, which has come to the end of an attempt. */
void tw__limiter_lock_lazily(struct tw_limiter *l, struct tw__limiter_deferred *deferred);

/* Unlocks, and does what was noted, and what follows from that. No lock is held afterwards. */
void tw__limiter_unlock(struct tw_limiter *l, struct tw__limiter_deferred *deferred);

/*
 * The event STARTED has returned: what had to wait for that follows, if the job has settled
 * meanwhile. It has options. Takes the lock.
 */
void tw__attempt_started(struct tw_limiter *l, struct tw__job *job);

/*
 * For the driver, when it is not the limiter's executor: takes the user code out of deferred, which
 * is about this job alone (which has options), for a piece of work, which the caller submits after
 * the unlock. NULL: there is none, or this is the executor.
 */
struct tw__work *tw__tell_later(struct tw_limiter *l, struct tw__job *job,
				struct tw__limiter_deferred *deferred);

/*
 * The limiter has dropped its jobs. What the executor refuses of these works, the driver runs: an
 * executor that refuses for good does not keep the limiter from its end. The lock is held.
 */
void tw__tells_leave(struct tw_limiter *l);

/*
 * What the call runs now: for those who look at what is under way (wheel/core/user_code.h).
 * since_ns as there.
 */
void tw__limiter_call_show(struct tw__limiter_call *call, tw_fn *fn, void *arg, uint64_t since_ns);

/* The same, and calls the limiter's `event`, which is set. */
void tw__limiter_call_event(struct tw__limiter_call *call, const struct tw_limiter_event *event);

/* An event of the limiter's, outside of a call. The lock is held, and given up meanwhile. */
void tw__limiter_tell_event(struct tw_limiter *l, const struct tw_limiter_event *event);

void tw__limiter_call_begin(struct tw__limiter_call *call, struct tw_limiter *l,
			    const struct tw__job *job);
void tw__limiter_call_end(struct tw__limiter_call *call);

/* The same for a callback, with the lock held, which is given up for the call. */
void tw__limiter_leave(struct tw_limiter *l, const struct tw__job *job, tw_fn *hook,
		       struct tw__limiter_call *call);
void tw__limiter_return(struct tw_limiter *l, struct tw__limiter_call *call);

/* Whether this thread is in a call of the limiter's (job NULL), or of the job's. */
bool tw__limiter_is_inside(const struct tw_limiter *l, const struct tw__job *job);

/*
 * Tells whether the calling thread itself is to go on with the job, when the callback that it is in
 * has returned. The lock is held.
 */
bool tw__job_waits_for_caller(const struct tw__job *job);

#endif
