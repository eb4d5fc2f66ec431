/*
 * The limiter inside: an object (executor/base/object.h) with two works: `run` has attempts, `tell`
 * the user code that the tick thread leaves. Users' functions and executors' submits run without
 * the lock.
 *
 *   state of a job                                  next, and who makes the change, under the lock
 *   COMING    not accepted yet, or in the inbox     QUEUED: submit; a look at the inbox
 *   QUEUED    in line                               RUNNING: a runner
 *   RUNNING   an attempt is in progress             ENDED: its runner; complete
 *   ENDED     nobody has decided about a retry      DELAYED: the thread that decides
 *   DELAYED   it waits for its next attempt         QUEUED: the tick thread
 *   any of these                                    SETTLED: all of them; the tick thread at a
 *                                                   timeout; cancel and close if the job waits
 *   SETTLED   its result is final                   TOLD: the thread that called `done`
 *   TOLD      `release` has not returned            FINISHED: the thread that called `release`
 *   FINISHED  the node goes when its timer is in, and nobody waits for it or its result
 *
 * The total timeout settles a job in any state. Its attempt may go on then (it has permits):
 * `release` waits for it, `done` does not.
 *
 * The state and the flags say which user code comes next (tw__job_go_on). The thread that changed
 * the state calls it. The job is BUSY meanwhile, so its user code, except its function, runs one
 * call at a time: a thread that changes the state then leaves the calls to the first thread. The
 * tick thread calls nothing: it leaves the job, BUSY, in the list `tells`, for the executor or for
 * a close that drops.
 *
 * Runners. A permit is not given to a certain job: a runner takes the first in line. A work that
 * calls a user's function is submitted again before, so a function that blocks holds up nobody.
 *
 * Users of the object: `run` (as ACTIVE) and `tell` while they are out, each timer, each call that
 * gives up the lock and comes back, a runner.
 *
 * A job with times has one timer of the service, for its next instant, run by the tick thread. It
 * goes by the clock and the state, so it may come early or late. Without a timer, a work looks at
 * the job in each tick.
 *
 * Model: test/model/inbox.pml.
 */
#ifndef TW_EXECUTOR_LIMITER_H
#define TW_EXECUTOR_LIMITER_H

#include <limits.h>

#include "executor/base/handles.h"
#include "executor/base/object.h"
#include "mpsc/base/random.h"
#include "mpsc/base/histogram.h"
#include "tickwheel/limiter.h"

enum { TW__MAX_CONCURRENCY = 1 << 30, TW__MAX_RATE = 1 << 20 };

/* -------------------------------------------------------------------- jobs */

enum tw__job_state {
	TW__JOB_COMING,
	TW__JOB_QUEUED,
	TW__JOB_RUNNING,
	TW__JOB_ENDED,
	TW__JOB_DELAYED,
	TW__JOB_SETTLED, /* the result is final from here on */
	TW__JOB_TOLD,
	TW__JOB_FINISHED
};

enum {
	TW__JOB_ASYNC = TW_LIMITER_TASK_ASYNC,
	TW__JOB_KEEP = TW_LIMITER_TASK_KEEP,
	TW__JOB_CANCELLED = 4,
	/* of the last attempt */
	TW__JOB_IN_FN = 8,
	TW__JOB_COMPLETED = 16, /* by tw_job_complete */
	TW__JOB_OVERDUE = 32,   /* it is past its timeout */
	TW__JOB_STOP_DUE = 64,
	TW__JOB_STOPPED = 128, /* `stop` was due, or is not called any more */
	TW__JOB_BUSY = 256     /* a thread calls its user code, or the job is in `tells` */
};

/* A timer of the service. */
struct tw__due {
	struct tw_limiter *limiter;
	void (*ring)(struct tw__due *due); /* on the tick thread, under the lock; may be NULL */
	tw_timer timer;
	bool is_out;          /* timer or look */
	struct tw__work look; /* in place of the timer, when none could be had */
};

/* Of a job with times, retries or more callbacks. The others share one. */
struct tw__job_options {
	struct tw__job *job;
	struct tw__due due;      /* its ring is tw__job_time */
	uint64_t total_until_ns; /* UINT64_MAX: none */
	uint64_t retry_until_ns; /* no attempt but the first begins at or after it; the same */
	uint64_t delay_ns;       /* of the next retry, without jitter */
	struct tw_limiter_task task;
};

struct tw__job {
	struct tw__node node;
	union {
		struct tw__in_line place; /* in the inbox, or in `tells` */
		struct {                  /* in line, or delayed: a ring for each priority */
			struct tw__job *next, *previous;
			struct tw__job *lower; /* from the ring's first to the next ring's */
		};
	};
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	void *context;
	const char *name;
	struct tw__job_options *options;
	uint64_t id;       /* 0: not accepted yet */
	uint64_t since_ns; /* it came into line; its attempt began; DELAYED: its next one may */
	uint64_t queued_ns, run_ns;
	void *value;
	int error;
	uint32_t attempts;
	uint32_t took; /* permits that its attempt has */
	uint16_t flags;
	int16_t priority;
	uint8_t state;         /* enum tw__job_state */
	uint8_t status;        /* enum tw_job_status, from SETTLED on */
	uint32_t waiters;      /* threads in tw_job_wait */
	_Atomic uint32_t bell; /* 1: tw__job_answers; they sleep on it */
};

/* Jobs in order of priority; those of one priority are first in, first out. */
struct tw__job_line {
	struct tw__job *first;
	uint64_t count;
	uint64_t extra; /* permits that these wait for, beyond one for each */
};

/* ----------------------------------------------------------------- limiter */

struct tw__results {
	size_t n, room;
	uint32_t refs;
	bool delivered; /* idle was reached: the next submit begins a new collection */
	struct tw_job_result items[];
};

struct tw__listener {
	struct tw__in_line place;
	tw_idle_fn *fn;
	void *arg;
	void *context;
	struct tw__results *results;
};

struct tw__idles {
	uint64_t reached; /* times that it was idle, or got a listener while it was */
	uint64_t told;    /* of these: whose listeners have returned */
	bool event_due, telling;
	struct tw__line waiting, due;
};

/* A token comes back an interval after its attempt started. */
struct tw__rate {
	uint64_t *starts_ns; /* ring */
	uint32_t room, first, used;
	uint32_t out;         /* tokens of attempts that have left the line and not begun */
	uint32_t most;        /* 0: no rate */
	uint64_t interval_ns; /* INT64_MAX: none comes back */
	struct tw__due due;
};

struct tw__counters {
	uint64_t added, settled, ended[TW_JOB_STATUS_DROPPED + 1];
	uint64_t retried, rejected, refused_completions;
	struct tw__histogram queue, run;
};

/* The object's word, to which submitters write, and its lock are on two lines. */
struct tw_limiter {
	alignas(TW__CACHE_LINE) uint64_t random;
	struct tw__object object; /* its work: `tell` */
	bool active;              /* ACTIVE, as far as known under the lock */
	bool run_out, tell_out;
	bool paused, ended; /* ended: dropped. Nothing starts, nothing is retried */

	struct tw__job_line line, delayed;
	struct {
		uint64_t limit;
		uint64_t out;
		uint64_t attempts; /* that have them */
		uint64_t late;     /* of these: of jobs that have timed out */
	} permits;
	uint64_t unfinished;
	uint32_t room_sleepers;     /* threads that wait for room */
	struct tw__node_batch gone; /* given back in pieces: each is a meeting with submitters */
	struct tw__line tells;      /* jobs whose user code the executor calls */
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

_Static_assert(offsetof(struct tw_limiter, object.lock) == TW__CACHE_LINE, "lines");

extern struct tw__job_options tw__plain_options;

static inline bool tw__job_is_plain(const struct tw__job *job)
{
	return job->options == &tw__plain_options;
}

static inline uint64_t tw__lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* UINT64_MAX: never. */
static inline uint64_t tw__instant_after(uint64_t now_ns, uint64_t span_ns)
{
	return span_ns ? now_ns + span_ns : UINT64_MAX;
}

static inline uint64_t tw__job_needs(const struct tw_limiter *l, const struct tw__job *job)
{
	return tw__lesser(job->options->task.permits, l->permits.limit);
}

/* tw_job_wait returns the result. */
static inline bool tw__job_answers(const struct tw__job *job)
{
	return job->state >= TW__JOB_TOLD ||
	       (job->state == TW__JOB_SETTLED && job->status == TW_JOB_STATUS_TIMED_OUT);
}

static inline uint64_t tw__elapsed(uint64_t since_ns, uint64_t now_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0; /* threads read the clock at will */
}

/* Listeners, or the event, are due, and no thread calls them. */
static inline bool tw__idle_is_due(const struct tw_limiter *l)
{
	return l->idles.told != l->idles.reached && !l->idles.telling;
}

/* The handle of the submit. */
static inline tw_job tw__job_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node)};
}

/* The handle of the last attempt. */
static inline tw_job tw__attempt_handle(const struct tw__job *job)
{
	return (tw_job){.id = tw__node_handle(&job->node), .attempt = job->attempts};
}

/* ---------------------------------------------------------------------- lock.c */

void tw__job_line_add(struct tw__job_line *line, struct tw__job *job);
void tw__job_line_remove(struct tw__job_line *line, struct tw__job *job);

/* Lets the due ring at that instant, and no other. UINT64_MAX: it does not ring. */
void tw__due_set(struct tw__due *due, uint64_t at_ns);
void tw__due_stop(struct tw__due *due);

/* Counts the start of an attempt that took a token: its function is called next. */
void tw__rate_begin(struct tw_limiter *l);

/* starts 0: no rate. Returns 0, or -ENOMEM: nothing has changed. */
int tw__rate_set(struct tw_limiter *l, uint32_t starts, uint64_t interval_ns);

/* Puts the job into line: for the first time; for a retry. */
void tw__job_accept(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);
void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

void tw__job_leave_line(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Takes over what came, in that number of steps at most; a job takes two. */
void tw__inbox_look(struct tw_limiter *l, unsigned steps);

/* Takes the lock, and over what came. */
void tw__limiter_lock(struct tw_limiter *l);

/* The same for a public function, which becomes a user. Returns 0, or why it is refused. */
int tw__limiter_enter(const char *call, struct tw_limiter *l);

/*
 * Drops n users and the lock, and submits the works that have something to do. A thread that has
 * changed nothing may unlock the object instead.
 */
void tw__limiter_leave(struct tw_limiter *l, uint32_t n);

/* Tells whether the first in line may start. If it lacks only a token, the limiter looks again. */
bool tw__limiter_may_start(struct tw_limiter *l);

bool tw__limiter_has_room(struct tw_limiter *l);

/* -------------------------------------------------------------------- settle.c */

/* Makes the result final. The job is in no line. tw__job_go_on is next. */
void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error);

void tw__settle_by_result(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Wakes those who wait for the job. */
void tw__job_wake(struct tw__job *job);

/* Frees the node of a FINISHED job if its timer is in, and nobody waits for it or its result. */
void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job);

void tw__job_stop(struct tw__job *job);

/* The attempt gets its result. Returns false if that came too late. */
bool tw__attempt_answer(struct tw_limiter *l, struct tw__job *job, int error, void *value,
			uint64_t now_ns);

/* The attempt has really ended: its permits return. tw__job_go_on is next. */
void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Tells whether a retry after this delay is within the count and the times. */
bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns,
		       uint64_t delay_ns);

/* The same, before jitter and retry.allow choose the delay. */
bool tw__job_may_want_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns);

/*
 * Sets the due for the job's next instant, or stops it. Not needed if that has become later: a due
 * that rings early does the same.
 */
void tw__job_keep_time(struct tw__job *job);
bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns);

/* Does what follows if a time of the job has passed; else false. tw__job_go_on is next. */
bool tw__job_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Makes room for one result more than there may come. Returns 0 or -ENOMEM. */
int tw__results_reserve(struct tw_limiter *l);
void tw__results_put(struct tw__results *results);
struct tw_job_result tw__result_of(const struct tw__job *job);

/* tw__tell_idle is next: it calls the listeners that wait, with the results of now. */
void tw__idle_reached(struct tw_limiter *l);

static inline struct tw__listener *tw__listener_of(tw__link link)
{
	return TW__OWNER(struct tw__listener, place, link);
}

/* ---------------------------------------------------------------------- tell.c */

enum tw__teller {
	TW__TICK,    /* calls nothing itself */
	TW__CALLER,  /* all but retry.allow */
	TW__EXECUTOR /* all */
};

/*
 * Calls the user code of the job that is due, without the lock. The caller is a user, and does not
 * touch the job afterwards.
 */
void tw__job_go_on(struct tw_limiter *l, struct tw__job *job, enum tw__teller teller);

void tw__job_time(struct tw__due *due);

/* Calls the event and the listeners that are due, without the lock. The caller is a user. */
void tw__tell_idle(struct tw_limiter *l);

/* Calls one thing that the tick thread has left, without the lock. The caller is a user. */
void tw__tell_next(struct tw_limiter *l);

void tw__limiter_tell(struct tw__work *work);
void tw__limiter_run(struct tw__work *work);

#endif
