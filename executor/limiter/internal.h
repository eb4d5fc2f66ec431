/*
 * The limiter inside. One lock for all that changes, but for an inbox of jobs that come without it while all permits are out
 * (limiter/inbox.c); user's code runs outside of it.
 *
 * What follows from a change and is user's code, or may call it (callbacks, hooks, an executor's submit), is noted in a struct tw__todo
 * under the lock, and done by tw__limiter_unlock, which takes the lock again to note that it was done, until nothing is left to do.
 *
 * Runners. A permit is not given to a certain job: a **runner**, a piece of work on the executor, looks for the first in line when it
 * gets to run, and goes on with the next until there is none, or no permit. So what runs next is decided at the last moment: a pause holds
 * from its return on, a job that was cancelled leaves nothing behind with the executor, and a runner that finds an empty line goes home
 * (the permit with it). `searching` runners are on their way; running + searching never exceeds the limit when one is sent.
 *
 * Life of a job, all under the lock
 *
 *   IN_LINE    in the list of its priority.                          -> RUNNING (picked), SETTLED (cancelled, timed out, dropped)
 *   RUNNING    INSIDE: an attempt is under way, and has a permit; IN_FN: its function has not returned. Not INSIDE: the attempt is over,
 *              what follows on it is held up by a stop callback or a hook that has not returned.
 *                                                                    -> RETRYING, SETTLED
 *   RETRYING   its timer runs.                                       -> IN_LINE (the timer), SETTLED
 *   SETTLED    result final. TOLD: done has returned. INSIDE: it has timed out, its attempt goes on.
 *              TOLD, not INSIDE, no stop callback under way: released (once), then FINISHED: counted off `unfinished`.
 *
 * The node goes back when the job is FINISHED, not kept, and neither a thread that waits nor a timer's callback holds it.
 *
 * Timers run on the driver: their executor is the inline one, so that they wait for no worker. They settle and send; user code that
 * follows goes to the executor (tell.c). The driver waits for the lock only as long as others hold it, who run no user code
 * and no system call under it but those of memory.
 *
 * One timer for each job that has a time to keep: for the earliest of them. Its callback looks at the clock and at the job's state,
 * so one that comes too late, or for an attempt of before, does no harm. While the service has no timer to give, such jobs are in a heap
 * by their instants, at whose top the driver looks in each tick.
 */
#ifndef TW_EXECUTOR_LIMITER_PARTS_H
#define TW_EXECUTOR_LIMITER_PARTS_H

#include <pthread.h>
#include <stdalign.h>

#include "executor/pool/layer.h"
#include "executor/base/heap.h"
#include "executor/base/handles.h"
#include "tickwheel/limiter.h"
#include "wheel/core/context.h"
#include "wheel/base/histogram.h"
#include "wheel/core/user_code.h"

enum {
	TW__JOB_INSIDE = 1,
	TW__JOB_IN_FN = 2,
	TW__JOB_COMPLETED = 4, /* this attempt, by tw_job_complete */
	TW__JOB_CANCEL = 8,
	TW__JOB_OVERDUE = 16,  /* this attempt is past its timeout */
	TW__JOB_STOPPED = 32,  /* this attempt was told to stop */
	TW__JOB_STOPPING = 64, /* its stop callback has not returned */
	TW__JOB_TOLD = 128,
	TW__JOB_RELEASED = 256, /* or being so */
	TW__JOB_FINISHED = 512,
	TW__JOB_IS_ASYNC = 1024,
	TW__JOB_KEEP = 2048,
	TW__JOB_ADDING = 8192, /* the hook `added` has not returned: not in line yet, but as if */
	TW__JOB_ENDED = 4096   /* what follows on the attempt's end waits: for STOPPING to go, or the hook of a retry */
};

enum { TW__MAX_CONCURRENCY = 1 << 30 };

struct tw__job;

/* Of a job that is more than a function: times, retries, more callbacks. */
struct tw__job_options {
	struct tw_limiter *limiter;
	struct tw__job *job;
	uint64_t queue_timeout_ns, attempt_timeout_ns;
	uint64_t until_ns;          /* of the stay in line or the attempt, or when the retry begins; UINT64_MAX: none */
	uint64_t total_until_ns;    /* the same, of all */
	uint64_t retry_deadline_ns; /* no retry begins after it */
	struct tw_retry retry;
	uint64_t delay_ns; /* of the next retry, without jitter */
	tw_timer timer;
	uint64_t timer_at_ns;         /* UINT64_MAX: not armed */
	struct tw__heap_item untimed; /* in the heap of those that should have a timer, and have none */
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;
	struct tw__work tell; /* tell.c */
};

/* A ring with its owner in it: whoever leaves need not know which it is. */
struct tw__links {
	struct tw__links *next, *previous;
};

struct tw__job {
	struct tw__node node;
	union {
		struct tw__links links; /* IN_LINE */
		struct {
			struct tw__job *next, *previous; /* RETRYING, or to do */
		};
	};
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	void *context;
	struct tw__job_options *options; /* or NULL */
	uint64_t id;
	uint64_t since_ns; /* it entered the line, or its attempt began */
	uint64_t queued_ns, run_ns;
	void *value;
	int error;
	uint32_t attempts;
	uint16_t flags;
	int16_t priority;
	uint8_t state;         /* enum tw_job_state */
	uint8_t status;        /* enum tw_job_status, SETTLED */
	uint16_t timers;       /* armed, or whose callback has not come to its end; and `tell` while it is out */
	uint32_t waiters;      /* threads */
	_Atomic uint32_t bell; /* 1: TOLD; threads sleep on it */
};

/* All of one priority in line, in turn. */
struct tw__rank {
	struct tw__heap_item item; /* in the heap of those ranks that may have jobs */
	struct tw__links jobs;
	int32_t priority;
};

/* See limiter/line.c. */
struct tw__line {
	struct tw__rank **ranks; /* by priority; each that a job ever had */
	uint32_t ranks_n, ranks_room;
	struct tw__heap heap;
	uint64_t count;    /* jobs */
	uint64_t lows;     /* of these, with a priority below 0 */
	uint64_t aging_ns; /* constant */
};

struct tw__runner {
	struct tw__work work;
	struct tw_limiter *limiter;
	struct tw__runner *next; /* free, or to do */
};

struct tw__listener {
	struct tw__listener *next;
	tw_idle_fn *fn;
	void *arg;
	void *context;               /* of its on_idle, or start */
	struct tw__results *results; /* due: of the idle it is told of */
};

/* Results since the last idle that was told. */
struct tw__results {
	size_t n, room;
	uint32_t refs;
	bool delivered; /* idle was reached: the next submit begins anew */
	struct tw_job_result items[];
};

struct tw_limiter {
	alignas(TW__CACHE_LINE) _Atomic(uintptr_t) inbox; /* limiter/inbox.c */
	alignas(TW__CACHE_LINE) pthread_mutex_t lock;     /* for all that is not constant, but for the inbox */
	bool attended;                                    /* what the inbox says */

	/* Line. */
	struct tw__line line;
	uint64_t pending; /* in line, or to be tried again */
	uint64_t retrying;
	struct tw__job *first_retrying;
	bool started, paused, above_low_water;

	/* Permits. */
	uint64_t limit;
	uint64_t running, late;
	uint64_t searching;
	uint64_t runners_out; /* with the executor, or running */
	uint64_t runners_in;  /* of these: running */
	struct tw__runner *free_runners;
	uint64_t runners;

	/* Rate (limiter/rate.c): a ring of when tokens come back, the first to come first; those taken for what has not begun yet. */
	uint64_t *tokens;
	uint32_t first_token, tokens_used;
	uint64_t tokens_out;
	bool rate_armed; /* or `rate_retry` is out */
	tw_timer rate_timer;
	struct tw__work rate_retry; /* by way of the driver, when no timer could be had */

	/* Ends. */
	uint64_t unfinished;
	uint64_t settled;
	struct tw__job
	    *gone; /* their nodes are given back some at a time: each time is a meeting with those who submit */
	unsigned gone_n;
	uint64_t between;           /* jobs that are ENDED: neither running nor pending nor settled */
	uint64_t idles, idles_told; /* times it was idle; whose listeners have returned */
	bool telling;               /* somebody tells those in `due` */
	struct tw__listener *listeners, **listeners_end, *due, **due_end;
	struct tw__results *results;
	_Atomic uint32_t quiet_bell, room_bell;
	uint32_t quiet_waiters, room_waiters;
	uint64_t timers_out;        /* armed, or whose callback has not come to its end */
	uint64_t tellers_out;       /* works `tell` with the executor */
	bool homecoming;            /* destroy waits until nothing is out */
	uint64_t timed;             /* jobs with options */
	struct tw__heap untimed;    /* with room for all of these; by instant */
	struct tw__work time_retry; /* out while there are any */
	bool time_retry_out;
	uint64_t calls; /* that use the limiter after an unlock: destroy waits for them */
	uint64_t random;

	/* Counters. */
	uint64_t added, succeeded, failed, cancelled, timed_out, dropped, retried, rejected, refused_completions;
	uint64_t queue_sum_ns, run_sum_ns;
	struct tw__histogram queue, run;

	alignas(TW__CACHE_LINE) struct tw__nodes nodes;

	/* Constant. */
	alignas(TW__CACHE_LINE) tw_service *service;
	bool has_inbox;
	struct tw__base base;
	tw_executor *jobs_executor; /* of runners: the base's, or its face for work that may block */
	struct tw_limiter_config config;
};

/* What is to be done when the lock is free. */
struct tw__todo {
	struct tw__runner *runners;               /* to be sent */
	struct tw__job *stops, **stops_end;       /* attempts to be told to stop */
	struct tw__job *settled, **settled_end;   /* to be told */
	struct tw__job *retries, **retries_end;   /* their hook is to be called, then they wait */
	struct tw__job *releases, **releases_end; /* told, and over */
	bool low_water;
	bool idle;
};

/* life.c: whether the executor has room for so many jobs that block, and one run more. */
bool tw__limiter_holds(tw_executor *executor, uint32_t max_concurrency, uint32_t flags);

/* -EINVAL, with a text. */
int tw__concurrency_refused(const char *call, tw_executor *executor, uint32_t max_concurrency);

/* All that was submitted is known. */
void tw__limiter_lock(struct tw_limiter *l, struct tw__todo *todo);

/* All that matters to a runner, which has come to the end of an attempt. */
void tw__limiter_lock_lazily(struct tw_limiter *l, struct tw__todo *todo);

/* Again, by somebody who has given it up for a while. */
static inline void tw__limiter_relock(struct tw_limiter *l);

/* Unlocks, and does what was noted, and what follows from that. No lock is held afterwards. */
void tw__limiter_unlock(struct tw_limiter *l, struct tw__todo *todo);

/*
 * For the driver, when it is not the limiter's executor: takes the user code out of todo, which is about this job alone (which
 * has options), for a piece of work. NULL: there is none, or this is the executor. It goes to tw__limiter_unlock_on_driver.
 */
struct tw__work *tw__tell_later(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* Unlocks, sends runners, and submits the work (NULL: none). */
void tw__limiter_unlock_on_driver(struct tw_limiter *l, struct tw__todo *todo, struct tw__work *later);

static inline void tw__jobs_append(struct tw__job ***end, struct tw__job *job)
{
	job->next = NULL;
	**end = job;
	*end = &job->next;
}

/* Calls of user's code, on this thread; innermost first. */
struct tw__limiter_call {
	const struct tw_limiter *limiter;
	const struct tw__job *job; /* or NULL */
	struct tw__limiter_call *outer;
	struct tw__context_saved saved;
	struct tw__run_level *shown; /* NULL: nothing yet */
};

/* What the call runs now: for those who look at what is under way (wheel/core/user_code.h). since_ns as there. */
void tw__limiter_call_show(struct tw__limiter_call *call, enum tw_run_kind kind, tw_fn *fn, uint64_t since_ns);

void tw__limiter_call_begin(struct tw__limiter_call *call, struct tw_limiter *l, const struct tw__job *job);
void tw__limiter_call_end(struct tw__limiter_call *call);

/* Whether this thread is in a call of the limiter's (job NULL), or of the job's. */
bool tw__limiter_is_inside(const struct tw_limiter *l, const struct tw__job *job);

/* ------------------------------------------------- limiter/inbox.c, under the lock */

enum { TW__ATTENDED = 1 };

/* At birth, under no lock. */
void tw__inbox_init(struct tw_limiter *l);

/* Not under the lock: whether the job has been left there, for whoever takes the lock next. A plain one; since_ns is set. *out: as at a submit. */
bool tw__inbox_leave(struct tw_limiter *l, struct tw__job *job, tw_job *out);

/* Takes over what is there. */
void tw__inbox_take(struct tw_limiter *l);

static inline void tw__inbox_look(struct tw_limiter *l)
{
	if (l->attended && tw_load_relaxed(&l->inbox) != TW__ATTENDED)
		tw__inbox_take(l);
}

static inline void tw__limiter_relock(struct tw_limiter *l)
{
	pthread_mutex_lock(&l->lock);
	tw__inbox_look(l);
}

/* Before the lock is given up by somebody who may have given permits back, or out. */
void tw__inbox_attend(struct tw_limiter *l, struct tw__todo *todo);

/* A job is submitted; it enters the line next. */
void tw__job_accept(struct tw_limiter *l, struct tw__job *job);

/* -------------------------------------------------- limiter/line.c, under the lock */

/* A job of that priority can be added from now on. 0 or -ENOMEM. */
int tw__line_reserve(struct tw__line *line, int32_t priority);

/* The last of its priority; its since_ns is set. */
void tw__line_add(struct tw__line *line, struct tw__job *job);
void tw__line_remove(struct tw__line *line, struct tw__job *job);

/* Whose turn it is, and stays in line; NULL: nobody's. */
struct tw__job *tw__line_first(struct tw__line *line);

void tw__line_free(struct tw__line *line);

/* ------------------------------------------------- limiter/queue.c, under the lock */

/* Into the line, or for another stay there. */
void tw__line_enter(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);
void tw__line_leave(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo);

/* One waits more, or less. */
void tw__pending_more(struct tw_limiter *l);
void tw__pending_less(struct tw_limiter *l, struct tw__todo *todo);

/* Those who wait for room look again. */
void tw__room_ring(struct tw_limiter *l);

/* How many jobs in line could start now: permits and tokens that are there. 0 while nothing may start. */
uint64_t tw__startable(struct tw_limiter *l, uint64_t now_ns);

/* Sends as many runners as there are jobs, permits and tokens for. */
void tw__dispatch(struct tw_limiter *l, uint64_t now_ns, struct tw__todo *todo);

/* One runner more, if there is a use for it. 0 or -ENOMEM. */
int tw__runner_reserve(struct tw_limiter *l, uint64_t wanted);

/* -------------------------------------------------- limiter/rate.c, under the lock */

/* At birth, under no lock. */
void tw__rate_init(struct tw_limiter *l);

/* Tokens that are there; UINT64_MAX without a rate. */
uint64_t tw__rate_tokens(struct tw_limiter *l, uint64_t now_ns);

/* tw__rate_allows, where there is a rate. */
bool tw__rate_has_token(struct tw_limiter *l, uint64_t beyond, uint64_t now_ns);

/* Whether so many tokens and one more are there; if not, they will be looked for when they are. */
static inline bool tw__rate_allows(struct tw_limiter *l, uint64_t beyond, uint64_t now_ns)
{
	return tw_likely(!l->tokens) || tw__rate_has_token(l, beyond, now_ns);
}

/* An attempt for which a token was taken: its function is called next. Not under the lock. */
void tw__rate_begin(struct tw_limiter *l);

/* ------------------------------------------------- limiter/retry.c, under the lock */

/* At birth, under no lock. */
void tw__times_init(struct tw_limiter *l);

/* Arms, moves or disarms the job's timer by its state. 0, or why no timer could be had. */
int tw__job_arm(struct tw_limiter *l, struct tw__job *job);

/* The same; without a timer its time is kept by looking at it in each tick of the service, until there is one. */
void tw__job_keep_time(struct tw_limiter *l, struct tw__job *job);
void tw__job_disarm(struct tw_limiter *l, struct tw__job *job);

/* Whether a time of the job, in line or running, has passed, whatever its timer says. Reads the clock if there is one to keep. */
bool tw__job_is_late(const struct tw_limiter *l, const struct tw__job *job);

/* The same at a reading of the clock. */
bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns);

/* The attempt has just ended, or been completed: one that is past its time is timed out now if its timer has not come yet. */
void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo);

/* Whether an attempt that fails may be followed by another, apart from times. */
bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job);

/* Whether an attempt that has failed, or will have by the time it ends, is to be followed by another. */
bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns);

/* How long it waits for its next attempt, jitter included. */
uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job);

/* It waits until then. */
void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns);

/* todo NULL: it goes on to the line. */
void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* ------------------------------------------------ limiter/settle.c, under the lock */

/* The attempt under way has really ended. */
void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value, uint64_t now_ns,
		     struct tw__todo *todo);

/* Final. Not in line and not retrying any more. */
void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error, struct tw__todo *todo);

/* Frees the node when its time has come. */
void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job);

/* Notes that the attempt is to be told to stop, once; a job that has been settled is told of that afterwards. */
void tw__job_stop(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* Settled, and nothing holds up its being told. */
void tw__job_note_settled(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* Its done has returned, or it has none. */
void tw__job_told(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* One is through with everything. */
void tw__job_finish(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo);

/* The attempt has ended, nothing holds up what follows. `job->error` and `job->value` are its own. */
void tw__attempt_decide(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo);

/* What had to wait a little after an attempt's end need not wait longer. */
void tw__attempt_go_on(struct tw_limiter *l, struct tw__job *job);

/* Wakes those who wait for the limiter to be quiet. */
void tw__limiter_ring(struct tw_limiter *l);

/* All that was added is finished: those who listen now are told of this idle, whatever is submitted before they are. idle.c */
void tw__idle_reached(struct tw_limiter *l);

/* Tells idle listeners, with the lock given up meanwhile. idle.c */
void tw__idle_tell(struct tw_limiter *l);

/* One that listens, under this thread's context; NULL: no memory. */
struct tw__listener *tw__listener_make(tw_idle_fn *fn, void *arg);

/* It is told of the next idle; of this one if the limiter is idle. */
void tw__listener_add(struct tw_limiter *l, struct tw__listener *listener, struct tw__todo *todo);

/* Room for one result more than there may come. 0 or -ENOMEM. */
int tw__results_reserve(struct tw_limiter *l);
void tw__results_put(struct tw__results *results);

void tw__result_of(const struct tw__job *job, struct tw_job_result *out);

#endif
