/* The end of an attempt and of a job. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_SETTLE_H
#define TW_EXECUTOR_LIMITER_SETTLE_H

#include "executor/limiter/internal.h"

/* The attempt under way has really ended. */
void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value,
		     uint64_t now_ns, struct tw__limiter_deferred *deferred);

/* Final. Not queued and not retrying any more. */
void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error,
		struct tw__limiter_deferred *deferred);

/* Frees the node when its time has come. */
void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job);

/*
 * Notes that `stop` is to be called for the attempt, once; for a job that has been settled that is
 * afterwards.
 */
void tw__job_stop(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_deferred *deferred);

/*
 * Settled: its callbacks are next, unless `stop` or the event STARTED has not returned, or another
 * thread has the job to do. That thread notes it.
 */
void tw__job_note_settled(struct tw_limiter *l, struct tw__job *job,
			  struct tw__limiter_deferred *deferred);

/* Releases the job, and finishes it, if `done` and all other user code of it have returned. */
void tw__job_look_for_release(struct tw_limiter *l, struct tw__job *job,
			      struct tw__limiter_deferred *deferred);

/* Its done has returned, or it has none. */
void tw__job_told(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_deferred *deferred);

/* One is through with everything. */
void tw__job_finish(struct tw_limiter *l, struct tw__job *job,
		    struct tw__limiter_deferred *deferred);

/*
 * The attempt has ended, nothing holds up what follows. `job->error` and `job->value` are its own.
 */
void tw__attempt_decide(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
			struct tw__limiter_deferred *deferred);

/* What had to wait a little after an attempt's end need not wait longer. */
void tw__attempt_go_on(struct tw_limiter *l, struct tw__job *job);

/* Room for one result more than there may come. 0 or -ENOMEM. */
int tw__results_reserve(struct tw_limiter *l);
void tw__results_put(struct tw__results *results);

void tw__result_of(const struct tw__job *job, struct tw_job_result *out);

#endif
