/* The line, the rate, the lock, and what may start. Under the lock, where nothing else is said. */
#ifndef TW_EXECUTOR_LIMITER_LINE_H
#define TW_EXECUTOR_LIMITER_LINE_H

#include "executor/limiter/internal.h"

void tw__job_line_add(struct tw__job_line *line, struct tw__job *job);
void tw__job_line_remove(struct tw__job_line *line, struct tw__job *job);

/* The due rings at that instant instead; UINT64_MAX: never. */
void tw__due_set(struct tw__due *due, uint64_t at_ns);

/* False: it is on its way. */
bool tw__due_stop(struct tw__due *due);

/* Of a token that is out: its attempt's function is called next. Not under the lock. */
void tw__rate_begin(struct tw_limiter *l);

/* 0 or -ENOMEM: then nothing has changed. */
int tw__rate_set(struct tw_limiter *l, uint32_t starts, uint64_t interval_ns);

/*
 * Takes the lock. tells: this thread's list; NULL: the limiter's, for the executor to call.
 */
void tw__limiter_lock(struct tw_limiter *l, struct tw__tells *tells);

/* Checks the limiter of a public call, and takes the lock. On an error it is not taken. */
int tw__limiter_enter(const char *call, struct tw_limiter *l, struct tw__tells *tells);

/*
 * Drops n users, and gives up the lock; submits what may start, and what the executor is to tell.
 * Who has changed nothing may unlock the object instead.
 */
void tw__limiter_leave(struct tw_limiter *l, uint32_t n);

/* Sleeps until something has ended, or until the deadline (false). The caller is a user. */
bool tw__limiter_await(struct tw_limiter *l, uint64_t deadline_ns);

/* The first in line may start. If it lacks nothing but a token, the limiter looks again then. */
bool tw__limiter_may_start(struct tw_limiter *l);

/* A job of n permits that waits in line may come, as far as max_pending says. */
bool tw__limiter_has_room(struct tw_limiter *l, uint32_t permits);

#endif
