/*
 * The limiter inside: an object (executor/base/object.h) with two works. User code, and executors'
 * submits, run without its lock.
 *
 * State of a job, under the lock
 *
 *   COMING    not accepted yet, or in the inbox         -> QUEUED
 *   QUEUED    in line                                   -> RUNNING, SETTLED
 *   RUNNING   an attempt is in progress                 -> ENDED, ASKING, DELAYED, SETTLED
 *   ENDED     it is over, its `stop` has not returned   -> ASKING, DELAYED, SETTLED
 *   ASKING    the executor asks retry.allow             -> DELAYED, SETTLED
 *   DELAYED   the delay before the next attempt         -> QUEUED, SETTLED
 *   SETTLED   its result is final                       -> GONE
 *   GONE      the node is free
 *
 *   change                    who makes it                                 where
 *   COMING -> QUEUED          submit; who takes the inbox                  lock.c
 *   QUEUED -> RUNNING         a runner                                     tell.c
 *   RUNNING, if not settled   a runner; complete                           settle.c
 *   ENDED, ASKING -> DELAYED  the thread that called `stop` or retry.allow settle.c
 *   DELAYED -> QUEUED         the tick thread                              settle.c
 *   any -> SETTLED            all of these; the tick thread at a timeout;  settle.c
 *                             cancel and close if the job waits
 *
 * The total timeout settles a job in any state. Its attempt may go on then (INSIDE), and so may
 * retry.allow (ASKED): `release` waits for both, `done` does not.
 *
 * User code that is due. A job is in one list at most: that of the thread which has the lock, or
 * the limiter's. `todo` says what is called next:
 *
 *   STOP      until `stop` has returned: `done` waits
 *   ASK       in the limiter's list; if the job settles meanwhile, it becomes DONE
 *   DONE      the event SETTLED and `done`
 *   RELEASE   `release`
 *
 * A thread calls what is in its list when it gives up the lock (tw__limiter_unlock). The tick
 * thread calls nothing: its list is the limiter's, from which the work `tell` takes one job at a
 * time. That work is submitted again before it calls anything, so a callback that blocks holds up
 * nobody.
 *
 * Runners. A permit is not given to a certain job: the work `run` takes the first in line when it
 * gets to run. It goes on with the next as long as no user code is due. One that starts a job first
 * submits the work again if another can start.
 *
 * Users of the object: `run` (as ACTIVE) and `tell` while they are out, each timer, each call that
 * gives up the lock and comes back. So the limiter outlives what is on its way.
 *
 * A job with times has one timer of the service, for its next instant. The tick thread runs it. It
 * goes by the clock and the state, so it does no harm if it comes early or late. A job that ends
 * while its timer is on the way keeps its node until then. If no timer is to be had, a work on the
 * tick thread looks at the job in each tick.
 *
 * The node goes back when the job is FINISHED, its timer is in, its result is not kept, and nobody
 * waits for it.
 *
 * Model: test/model/inbox.pml.
 */
#ifndef TW_EXECUTOR_LIMITER_H
#define TW_EXECUTOR_LIMITER_H

#include "executor/base/handles.h"
#include "executor/base/object.h"
#include "mpsc/base/random.h"
#include "mpsc/base/histogram.h"
#include "tickwheel/limiter.h"

enum { TW__MAX_CONCURRENCY = 1 << 30, TW__MAX_RATE = 1 << 20 };

/* -------------------------------------------------------------------- jobs */

enum tw__job_state {
	TW__JOB_GONE,
	TW__JOB_COMING,
	TW__JOB_QUEUED,
	TW__JOB_RUNNING,
	TW__JOB_ENDED,
	TW__JOB_ASKING,
	TW__JOB_DELAYED,
	TW__JOB_SETTLED
};

enum tw__job_todo {
	TW__TODO_NOTHING,
	TW__TODO_STOP,
	TW__TODO_ASK,
	TW__TODO_DONE,
	TW__TODO_RELEASE
};

enum {
	TW__JOB_ASYNC = 1,
	TW__JOB_KEEP = 2,
	TW__JOB_CANCELLED = 4,
	/* of the last attempt */
	TW__JOB_INSIDE = 8, /* it is under way, and has its permits */
	TW__JOB_IN_FN = 16,
	TW__JOB_COMPLETED = 32, /* by tw_job_complete */
	TW__JOB_OVERDUE = 64,   /* past its timeout */
	TW__JOB_STOPPED = 128,  /* `stop` was called, or is not called any more */
	TW__JOB_STARTING = 256, /* the event STARTED has not returned: `done` waits */
	/* of the end */
	TW__JOB_ASKED = 512, /* retry.allow has not returned */
	TW__JOB_TOLD = 1024, /* `done` has returned */
	TW__JOB_FINISHED = 2048
};

struct tw__job;

/* A timer of the service, and what the tick thread does then, under the lock. */
struct tw__due {
	struct tw_limiter *limiter;
	void (*ring)(struct tw__due *due); /* clears is_out */
	tw_timer timer;
	bool is_out;          /* timer or look */
	struct tw__work look; /* in place of the timer, when none could be had */
};

/* Of a job that is more than a function: times, retries, more callbacks. Others share one. */
struct tw__job_options {
	struct tw__job *job;
	struct tw__due due; /* tw__job_time */
	uint64_t queue_timeout_ns, attempt_timeout_ns;
	/* of the stay in line, the attempt or the delay; UINT64_MAX: none, as below */
	uint64_t until_ns;
	uint64_t total_until_ns;
	uint64_t retry_deadline_ns; /* no retry begins after it */
	struct tw_retry retry;
	uint64_t delay_ns; /* of the next retry, without jitter */
	uint32_t permits;  /* of each attempt */
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;
};

/* A ring for each priority. */
struct tw__in_ring {
	struct tw__job *next, *previous;
	struct tw__job *lower, *higher; /* of the ring's first: those of the next rings */
	bool is_first;
};

struct tw__job {
	struct tw__node node;
	union {
		struct tw__in_line place; /* in the inbox, or a list to tell */
		struct tw__in_ring ring;  /* in line, or delayed */
	};
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	void *context;
	const char *name; /* or NULL */
	struct tw__job_options *options;
	uint64_t id;
	uint64_t since_ns; /* it came into line, or its attempt began */
	uint64_t queued_ns, run_ns;
	void *value;
	int error;
	uint32_t attempts;
	uint32_t took; /* permits, INSIDE */
	uint16_t flags;
	int16_t priority;
	uint8_t state;         /* enum tw__job_state */
	uint8_t status;        /* enum tw_job_status, SETTLED */
	uint8_t todo;          /* enum tw__job_todo */
	uint32_t waiters;      /* threads */
	_Atomic uint32_t bell; /* 1: tw__job_answers; threads sleep on it */
	const void *teller;    /* the thread that has it in its list */
};

/* Jobs in order of priority, first in first out: a ring for each priority that is there. */
struct tw__job_line {
	struct tw__job *first;
	uint64_t count;
	uint64_t extra; /* permits that these wait for, beyond one for each */
};

/* User code to be called without the lock. */
struct tw__tells {
	struct tw__line jobs;
	bool idle;
	struct tw_limiter_event retried; /* kind 0: none */
};

#define TW__NOTHING_TO_TELL(tells)                    \
	{                                             \
		.jobs = {.end = &(tells).jobs.first } \
	}

/* ----------------------------------------------------------------- limiter */

struct tw__results {
	size_t n, room;
	uint32_t refs;
	bool delivered; /* idle was reached: the next submit begins anew */
	struct tw_job_result items[];
};

struct tw__listener {
	struct tw__in_line place;
	tw_idle_fn *fn;
	void *arg;
	void *context;
	struct tw__results *results; /* of the idle that it is called for */
};

struct tw__idles {
	uint64_t reached,
	    told; /* times the limiter was idle; those whose listeners have returned */
	bool event_due, telling;
	struct tw__line waiting, due;
};

/* When attempts started: a token comes back an interval later. */
struct tw__rate {
	uint64_t *starts_ns; /* ring; NULL: no rate */
	uint32_t room, first, used;
	uint32_t out; /* tokens of attempts that have left the line, and not begun */
	uint32_t most;
	uint64_t interval_ns;
	struct tw__due due;
};

struct tw__counters {
	uint64_t added, settled, ended[TW_JOB_STATUS_DROPPED + 1];
	uint64_t retried, rejected, refused_completions;
	struct tw__histogram queue, run;
};

struct tw__permits {
	uint64_t limit;
	uint64_t out;      /* permits */
	uint64_t attempts; /* that have them */
	uint64_t late;     /* of these: of jobs that have timed out */
};

/* The object's word, to which submitters write, and its lock are on two cache lines. */
struct tw_limiter {
	alignas(TW__CACHE_LINE) uint64_t random;
	struct tw__object object; /* its work: `tell` */
	bool active;              /* as ACTIVE, as far as who has the lock knows */
	bool run_out, tell_out;
	bool paused, ended; /* ended: what waited was dropped. Nothing starts, nothing is retried */

	struct tw__job_line line, delayed;
	struct tw__permits permits;
	uint64_t unfinished;
	_Atomic uint32_t room_rings; /* for those who wait for room, as the object's bell */
	uint32_t room_sleepers;
	struct tw__node_batch gone;    /* given back in pieces: each is a meeting with submitters */
	struct tw__tells tells, *mine; /* mine: of who has the lock */
	struct tw__idles idles;
	struct tw__results *results;
	struct tw__rate rate;
	struct tw__counters counters;
	struct tw__work run;

	alignas(TW__CACHE_LINE) struct tw__nodes nodes;

	/* Constant. */
	alignas(TW__CACHE_LINE) tw_service *service;
	bool has_inbox;
	struct tw_limiter_config config;
};

/* Of jobs that are nothing but a function and its `done`. Never written. */
extern struct tw__job_options tw__plain_options;

static inline bool tw__job_is_own(const struct tw__job *job)
{
	return job->options != &tw__plain_options;
}

static inline bool tw__tells_any(const struct tw__tells *tells)
{
	return tells->jobs.first || tells->idle || tells->retried.kind;
}

static inline struct tw__listener *tw__listener_of(tw__link link)
{
	return TW__OWNER(struct tw__listener, place, link);
}

/* UINT64_MAX: never. */
static inline uint64_t tw__instant_after(uint64_t now_ns, uint64_t span_ns)
{
	return span_ns ? now_ns + span_ns : UINT64_MAX;
}

_Static_assert(offsetof(struct tw_limiter, object.lock) == TW__CACHE_LINE, "lines");

/* Permits that the job's next attempt takes. */
static inline uint64_t tw__job_needs(const struct tw_limiter *l, const struct tw__job *job)
{
	return job->options->permits < l->permits.limit ? job->options->permits : l->permits.limit;
}

/* Jobs that wait, in line or for a retry. */
static inline uint64_t tw__limiter_waiting(const struct tw_limiter *l)
{
	return l->line.count + l->delayed.count;
}

/* Threads that wait for the job need wait no longer. */
static inline bool tw__job_answers(const struct tw__job *job)
{
	return job->flags & TW__JOB_TOLD ||
	       (job->state == TW__JOB_SETTLED && job->status == TW_JOB_STATUS_TIMED_OUT);
}

/* The handle of the submit; and that of the last attempt. */
static inline tw_job tw__job_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node)};
}

static inline tw_job tw__attempt_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node), .attempt = job->attempts};
}

#endif
