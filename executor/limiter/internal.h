/*
 * The limiter inside. One lock for all that changes, except for an inbox of jobs that come without
 * it while all permits are out (limiter/inbox.c); user's code runs outside of it.
 *
 * What follows from a change and is user's code, or may call it (callbacks, hooks, an executor's
 * submit), is noted in a struct tw__limiter_deferred under the lock, and done by
 * tw__limiter_unlock, which takes the lock again to note that it was done, until nothing is left to
 * do.
 *
 * Runners. A permit is not given to a certain job: a **runner**, a piece of work on the executor,
 * looks for the first queued job when it gets to run, and goes on with the next until there is
 * none, or no permit. So what runs next is decided at the last moment: a pause holds from its
 * return on, a job that was cancelled leaves nothing behind with the executor, and a runner that
 * finds an empty queue returns (with the permit). `searching` runners are on their way; running +
 * searching never exceeds the limit when one is sent.
 *
 * Life of a job, all under the lock
 *
 *   QUEUED     in the list of its priority.
 *              -> RUNNING (picked), SETTLED (cancelled, timed out, dropped)
 *   RUNNING    INSIDE: an attempt is under way, and has its permits. IN_FN: its function has not
 *              returned. ENDED: the attempt is over; a stop callback that has not returned, or
 *              retry.allow, holds up what follows.
 *              -> RETRYING, SETTLED
 *   RETRYING   its delay runs.
 *              -> QUEUED (the delay is over), SETTLED
 *   SETTLED    result final. TOLD: done has returned. INSIDE: it has timed out, its attempt goes
 *              on. TOLD, not INSIDE, and neither a stop callback nor retry.allow under way:
 *              released (once), then FINISHED: counted off `unfinished`.
 *
 * The total timeout settles a job in any state, also while user code of the job runs.
 *
 * The node goes back when the job is FINISHED, not kept, and held by nobody: by no thread that
 * waits, no look of the driver, and no work `tell`.
 *
 * One timer serves all jobs that have a time to keep, which are in a heap by their instants
 * (retry.c). It runs on the driver, so it waits for no worker. It settles jobs and sends runners;
 * user code that follows goes to the executor (tell.c). The driver waits for the lock only as long
 * as others hold it, who run no user code and no system call under it but those of memory. The
 * timer goes by the clock and the job's state, so it does no harm if it comes too early or late.
 */
#ifndef TW_EXECUTOR_LIMITER_PARTS_H
#define TW_EXECUTOR_LIMITER_PARTS_H

#include "executor/base/bell.h"
#include "executor/base/object.h"
#include "executor/base/heap.h"
#include "executor/base/handles.h"
#include "tickwheel/limiter.h"
#include "mpsc/base/histogram.h"

enum {
	TW__JOB_INSIDE = 1,
	TW__JOB_IN_FN = 2,
	TW__JOB_COMPLETED = 4, /* this attempt, by tw_job_complete */
	TW__JOB_CANCEL = 8,
	TW__JOB_OVERDUE = 16,  /* this attempt is past its timeout */
	TW__JOB_STOPPED = 32,  /* `stop` was called for this attempt */
	TW__JOB_STOPPING = 64, /* its stop callback has not returned */
	TW__JOB_TOLD = 128,
	TW__JOB_RELEASED = 256, /* or being so */
	TW__JOB_FINISHED = 512,
	TW__JOB_IS_ASYNC = 1024,
	TW__JOB_KEEP = 2048,
	/* what follows on the attempt's end waits: for STOPPING to go, or retry.allow */
	TW__JOB_ENDED = 4096,
	TW__JOB_STARTING = 8192 /* the event STARTED has not returned: `done` is held up */
};

/*
 * Who decides about the retry of a job that has ENDED. A timeout may settle the job in each state.
 * In DUE and SENT the job is in another thread's list, or on its way there: that thread tells.
 */
enum tw__asking {
	TW__ASKING_NOT,
	TW__ASKING_DUE,  /* a thread has it to do */
	TW__ASKING_SENT, /* the executor has it to do, which asks retry.allow: `tell` */
	TW__ASKING_RUNS  /* retry.allow has not returned: no release meanwhile */
};

enum { TW__MAX_CONCURRENCY = 1 << 30, TW__MAX_RATE = 1 << 20 };

struct tw__job;

/* A ring with its owner in it: a link that leaves need not know which ring it is in. */
struct tw__links {
	struct tw__links *next, *previous;
};

/* Of a job that is more than a function: times, retries, more callbacks. */
struct tw__job_options {
	struct tw_limiter *limiter;
	struct tw__job *job;
	uint64_t queue_timeout_ns, attempt_timeout_ns;
	/* of the stay in the queue or the attempt, or when the retry begins; UINT64_MAX: none */
	uint64_t until_ns;
	uint64_t total_until_ns;    /* the same, of all */
	uint64_t retry_deadline_ns; /* no retry begins after it */
	struct tw_retry retry;
	uint64_t delay_ns;        /* of the next retry, without jitter */
	uint32_t permits;         /* of each attempt */
	uint32_t extra;           /* permits that the attempt under way has, beyond one */
	bool has_timed_out;       /* the attempt before the retry that waits */
	uint8_t asking;           /* enum tw__asking */
	struct tw__heap_item due; /* in the heap of the jobs that keep a time */
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;
	struct tw__work tell;
	struct tw__links telling; /* while `tell` is out */
};

struct tw__job {
	struct tw__node node;
	union {
		struct tw__links links; /* QUEUED */
		struct {
			struct tw__job *next, *previous; /* RETRYING, or to do */
		};
	};
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	void *context;
	const char *name;                /* or NULL */
	struct tw__job_options *options; /* or NULL */
	uint64_t id;
	uint64_t since_ns; /* it entered the queue, or its attempt began */
	uint64_t queued_ns, run_ns;
	void *value;
	int error;
	uint32_t attempts;
	uint16_t flags;
	int16_t priority;
	uint8_t state;         /* enum tw_job_state */
	uint8_t status;        /* enum tw_job_status, SETTLED */
	uint16_t holds;        /* of the options: `tell` is out, or the driver looks */
	uint32_t waiters;      /* threads */
	_Atomic uint32_t bell; /* 1: tw__job_answers; threads sleep on it */
};

/* All jobs of one priority, in order. */
struct tw__priority_level {
	struct tw__heap_item item; /* in the heap of those levels that may have jobs */
	struct tw__links jobs;
	int32_t priority;
};

/* See limiter/job_queue.c. */
struct tw__job_queue {
	struct tw__priority_level **levels; /* by priority; each that a job ever had */
	uint32_t levels_n, levels_room;
	struct tw__heap heap;
	uint64_t count; /* jobs */
	uint64_t lows;  /* of these, with a priority below 0 */
	uint64_t extra; /* permits that these wait for, beyond one for each */
};

struct tw__runner {
	struct tw__work work;
	struct tw_limiter *limiter;
	struct tw__runner *next;  /* free, or to do */
	struct tw__runner *other; /* of all */
};

struct tw__listener {
	struct tw__listener *next;
	tw_idle_fn *fn;
	void *arg;
	void *context;               /* of its on_idle, or start */
	struct tw__results *results; /* of the idle that it is called for */
	bool due;                    /* that idle was reached */
};

/* Results since the last idle whose listeners were called. */
struct tw__results {
	size_t n, room;
	uint32_t refs;
	bool delivered; /* idle was reached: the next submit begins anew */
	struct tw_job_result items[];
};

struct tw__permits {
	uint64_t limit;
	uint64_t running;     /* permits that are out */
	uint64_t extra;       /* of these: beyond one for each attempt */
	uint64_t late;        /* attempts of jobs that have timed out */
	uint64_t searching;   /* runners that the executor has not begun to run */
	uint64_t runners_out; /* with the executor, or running */
	struct tw__runner *free_runners;
	struct tw__runner *first_runner; /* of all, linked by `other` */
	uint64_t runners;
};

/*
 * See limiter/rate.c: a ring of when tokens come back, the first to come first; those taken for
 * what has not begun yet.
 */
struct tw__rate {
	uint64_t *tokens;
	uint32_t first, used;
	uint64_t out;
	uint32_t room; /* of the ring; above `starts` for a while after the rate has shrunk */
	uint32_t starts;
	uint64_t interval_ns;
	uint64_t awaited_ns; /* when a token comes that a job awaits; UINT64_MAX: none */
};

/* Jobs that have ended, and threads that wait for that. */
struct tw__ends {
	uint64_t unfinished;
	uint64_t settled;
	/* their nodes are given back in pieces: each time is a meeting with those who submit */
	struct tw__job *gone;
	unsigned gone_n;
	uint64_t between; /* jobs that are ENDED: neither running nor pending nor settled */
	struct tw__bell quiet, room;
};

struct tw__idles {
	uint64_t count, told; /* times the limiter was idle; whose listeners have returned */
	uint64_t begun;       /* times whose event was called */
	bool telling;         /* a thread, or `work`, tells the listeners that are due */
	struct tw__work work;
	struct tw__listener *first, **end; /* in order: those that are due come first */
};

/* What destroy waits for. */
struct tw__limiter_out {
	uint64_t tellers; /* works `tell`, and that of idles, with the executor */
	struct tw__links telling;
	uint64_t calls;  /* that use the limiter after an unlock */
	bool destroying; /* destroy waits until nothing is out */
};

/* Jobs with timeouts or retries: see limiter/retry.c. */
struct tw__times {
	uint64_t retrying; /* jobs that wait for their next attempt */
	struct tw__job *first_retrying;
	uint64_t timed;       /* jobs with options */
	struct tw__heap heap; /* of those that keep a time; with room for all */
	uint64_t armed_ns;    /* see retry.c */
	tw_timer timer;
	struct tw__work retry; /* in place of the timer, when none could be had */
};

struct tw__limiter_counters {
	uint64_t ended[TW_JOB_STATUS_DROPPED + 1]; /* by status */
	uint64_t added, retried, rejected, refused_completions;
	struct tw__histogram queue, run;
};

struct tw_limiter {
	alignas(TW__CACHE_LINE) _Atomic(uintptr_t) inbox; /* limiter/inbox.c */
	/* for all that is not constant, except for the inbox */
	alignas(TW__CACHE_LINE) pthread_mutex_t lock;
	bool open; /* what the inbox says */

	/* Line. */
	struct tw__job_queue queue;
	uint64_t pending; /* queued, or to be tried again */
	bool closed;      /* refuses jobs */
	/* closed, and what waited was dropped: nothing starts, nothing is retried */
	bool ended;
	bool paused;

	struct tw__permits permits;
	struct tw__ends ends;
	struct tw__idles idles;
	struct tw__results *results;
	struct tw__limiter_out out;
	struct tw__times times;
	struct tw__rate rate;
	uint64_t random;
	struct tw__limiter_counters counters;

	alignas(TW__CACHE_LINE) struct tw__nodes nodes;

	/* Constant. */
	alignas(TW__CACHE_LINE) tw_service *service;
	bool has_inbox;
	struct tw__base base;
	struct tw_limiter_config config;
};

/*
 * What is to be done when the lock is free. A job is in one list at most, and its state says what
 * is called for it (tell.c).
 */
struct tw__limiter_deferred {
	struct tw__runner *runners;           /* to be sent */
	struct tw__job *first_job, *last_job; /* in order */
	bool idle;
};

/* User code is to be called. */
static inline bool tw__deferred_calls(const struct tw__limiter_deferred *deferred)
{
	return deferred->first_job || deferred->idle;
}

static inline void tw__defer_job(struct tw__limiter_deferred *deferred, struct tw__job *job)
{
	job->next = NULL;
	*(deferred->first_job ? &deferred->last_job->next : &deferred->first_job) = job;
	deferred->last_job = job;
}

/* Permits that the next attempt takes. */
static inline uint64_t tw__job_needs(const struct tw_limiter *l, const struct tw__job *job)
{
	if (tw_likely(!job->options))
		return 1;
	return job->options->permits < l->permits.limit ? job->options->permits : l->permits.limit;
}

/* Threads that wait for the job need wait no longer. */
static inline bool tw__job_answers(const struct tw__job *job)
{
	return job->flags & TW__JOB_TOLD ||
	       (job->state == TW_JOB_STATE_SETTLED && job->status == TW_JOB_STATUS_TIMED_OUT);
}

/* The handle of the submit. */
static inline tw_job tw__job_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node)};
}

/* The handle of the attempt that runs, or was the last. */
static inline tw_job tw__attempt_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node), .attempt = job->attempts};
}

/* Calls of user's code, on this thread; innermost first. */
struct tw__limiter_call {
	const struct tw_limiter *limiter;
	const struct tw__job *job; /* or NULL */
	struct tw__limiter_call *outer;
	struct tw__run_record *shown; /* NULL: nothing yet */
	void *former;                 /* context */
};

#endif
