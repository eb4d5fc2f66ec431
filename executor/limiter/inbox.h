/*
 * Jobs that have been submitted and not yet queued. Under the limiter's lock, where nothing else is
 * said.
 */
#ifndef TW_EXECUTOR_LIMITER_INBOX_H
#define TW_EXECUTOR_LIMITER_INBOX_H

#include "executor/limiter/internal.h"

enum { TW__INBOX_OPEN = 1 };

/* At birth, under no lock. */
void tw__inbox_init(struct tw_limiter *l);

/*
 * Not under the lock: whether the job has been left there, for the thread that takes the lock next.
 * A plain one; since_ns is set. *out: as at a submit.
 */
bool tw__inbox_leave(struct tw_limiter *l, struct tw__job *job, tw_job *out);

/* Takes over what is there. */
void tw__inbox_take(struct tw_limiter *l);

static inline void tw__inbox_look(struct tw_limiter *l)
{
	if (l->open && tw_load_relaxed(&l->inbox) != TW__INBOX_OPEN)
		tw__inbox_take(l);
}

/* Takes the lock again, by a thread that has given it up for a while. */
static inline void tw__limiter_relock(struct tw_limiter *l)
{
	pthread_mutex_lock(&l->lock);
	tw__inbox_look(l);
}

/* Gives the lock up until the bell rings, or the deadline (false). */
static inline bool tw__limiter_await(struct tw_limiter *l, struct tw__bell *bell,
				     uint64_t deadline_ns)
{
	bool in_time = tw__bell_await(bell, &l->lock, deadline_ns);
	tw__inbox_look(l);
	return in_time;
}

/* Before the lock is given up by somebody who may have given permits back, or out. */
void tw__inbox_attend(struct tw_limiter *l, struct tw__limiter_deferred *deferred);

/* A job is submitted; it enters the queue next. */
void tw__job_accept(struct tw_limiter *l, struct tw__job *job);

#endif
