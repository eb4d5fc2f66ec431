/*
 * The limiter's lock; how jobs come into line, and what may start. Under the lock, where nothing
 * else is said.
 */
#ifndef TW_EXECUTOR_LIMITER_LOCK_H
#define TW_EXECUTOR_LIMITER_LOCK_H

#include "executor/limiter/internal.h"

void tw__job_line_add(struct tw__job_line *line, struct tw__job *job);
void tw__job_line_remove(struct tw__job_line *line, struct tw__job *job);

/* The due rings at that instant instead; UINT64_MAX: never. */
void tw__due_set(struct tw__due *due, uint64_t at_ns);

/* False: it is on its way. */
bool tw__due_stop(struct tw__due *due);

/* Tokens that are there; UINT64_MAX without a rate. */
uint64_t tw__rate_tokens(struct tw_limiter *l);

/* Of a token that is out: its attempt's function is called next. Not under the lock. */
void tw__rate_begin(struct tw_limiter *l);

/* 0 or -ENOMEM: then nothing has changed. */
int tw__rate_set(struct tw_limiter *l, uint32_t starts, uint64_t interval_ns);

/* The job is submitted; and comes into line, for the first time or for a retry. */
void tw__job_accept(struct tw_limiter *l, struct tw__job *job);
void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* A job that waits leaves its line. */
void tw__job_leave_line(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Leaves a plain job in the inbox, without the lock. False: the limiter is closed. */
bool tw__inbox_leave(struct tw_limiter *l, struct tw__job *job);

/* Takes over what is there. */
void tw__inbox_look(struct tw_limiter *l);

/*
 * Takes the lock. All that was submitted is known then. tells: this thread's list; NULL: the
 * limiter's, for the executor to call.
 */
void tw__limiter_lock(struct tw_limiter *l, struct tw__tells *tells);

/*
 * Drops n users, and gives up the lock; submits what may start, and what the executor is to tell.
 * Who has changed nothing may unlock the object instead.
 */
void tw__limiter_leave(struct tw_limiter *l, uint32_t n);

/* The first in line may start. If it lacks nothing but a token, the limiter looks again then. */
bool tw__limiter_may_start(struct tw_limiter *l);

/* A job that waits in line may come, as far as max_pending says. */
bool tw__limiter_has_room(struct tw_limiter *l);
void tw__limiter_ring_for_room(struct tw_limiter *l);

/* Sleeps until there may be room, or until the deadline (false). The caller is a user. */
bool tw__limiter_await_room(struct tw_limiter *l, uint64_t deadline_ns);

#endif
