/*
 * What threads run.
 *
 *   - A stack of frames, which only the thread sees (tw_self, "may I wait here?").
 *   - A context (contract: tickwheel/context.h).
 *   - The user's function under way, for tw_service_liveness: all that calls one does so between
 *     tw__user_begin and tw__user_end. Of runs inside one another the outermost is shown: it began
 *     first. No clock is read; the first look at a run without a date dates it, so it may look
 *     younger than it is, never older.
 *
 * Pairing table
 *   USER1  owner, fn, arg, name, since_ns: store-release, then word: store-release (begin) -> word:
 *       load-acquire, the others: load-acquire, then the word again (look): if the word is the
 *       same, the fields are that run's. Each store is a release, so none of the next run's fields
 *       is visible before this run's end.
 *   USER2  since_ns: the word, marked as no date: store-release (begin) -> CAS acq_rel to the date
 *       (look): only the run with that word is dated. Without it a look that was held up since it
 *       read the clock would make a later run look older than it is.
 */
#ifndef TW_WHEEL_FRAME_H
#define TW_WHEEL_FRAME_H

#include "mpsc/base/atomics.h"
#include "tickwheel/context.h"
#include "wheel/core/service.h"

/*
 * What this thread is inside of: a callback or a release; or, with `within`, a service's work or
 * poll, or the drops of a pool. Members from `service` on are zero then.
 */
struct tw__run {
	struct tw__run *outer;
	const void *within;     /* an address that nothing else uses; NULL: a callback, a release */
	const tw_clock *drives; /* of a poll: its service's clock; else NULL */
	bool hides;             /* a piece of work: tw_self does not name what it runs inside of */
	tw_service *service;    /* NULL: a run of a strand's series, for tw_current alone */
	uint32_t slot, generation;
	/* indices of the member's group (group.h), and of the next slot whose release is owed */
	uint32_t group, owed;
	void *context; /* what it is under, or NULL */
	uint64_t overruns;
	uint64_t due_ns;   /* when it was due: a series' nominal instant, or else a tick */
	uint64_t begun_ns; /* 0: no run, but a release */
	uint64_t rearm_ns; /* the deadline it has asked for */
	bool rearm, closing, releasing;
	bool rearm_if_earlier; /* a series keeps its next instant if that is not later */
};

extern _Thread_local struct tw__run *tw__current_run;

/* Whether this thread is inside a callback or release of the service. */
bool tw__inside(const tw_service *service);

/* Whether the calling thread is in a callback of a service on this clock, or drives one. */
bool tw__clock_in_callback(const tw_clock *clock);

static inline void tw__frame_begin(struct tw__run *frame)
{
	frame->outer = tw__current_run;
	tw__current_run = frame;
}

static inline void tw__frame_end(const struct tw__run *frame)
{
	tw__current_run = frame->outer;
}

/* Tells whether this thread is within it, at any depth. */
bool tw__is_within(const void *what);

/* ------------------------------------------------------------------ contexts */

/*
 * What is taken to be run later captures the context then, and enters and leaves it around the run.
 * enter and leave pair on one thread, and nest. A layer that keeps contexts of its own for what it
 * schedules through timers tells the timers not to: TW_TASK_CONTEXT with NULL. The layers do not
 * see the core's thread-local.
 */
#ifdef TW_LAYER
static inline void *tw__context_capture(void)
{
	return tw_context_get();
}

static inline void tw__context_leave(void *former)
{
	if (tw_context_get() != former)
		tw_context_set(former);
}
#else
static inline void *tw__context_capture(void)
{
	return tw__thread.context;
}

static inline void tw__context_leave(void *former)
{
	tw__thread.context = former;
}
#endif

/* Returns the former context, for leave. */
static inline void *tw__context_enter(void *context)
{
	void *former = tw__context_capture();
	tw__context_leave(context);
	return former;
}

/* ------------------------------------------------------------------ user code */

/* In since_ns of a run without a date: the rest is the record's word before the run. */
#define TW__USER_UNDATED (UINT64_C(1) << 63)

/* Any function as the name of what runs. It is not called by this type. */
#define TW__NAMED_BY(function) ((tw_fn *)(void (*)(void))(function))

/*
 * A user's function begins. owner: the service, or of a pool's own task the pool; NULL: nobody
 * looks. since_ns: a cached reading of the owner's clock, or 0. The answer goes to tw__user_end;
 * NULL: the run is not shown.
 */
static inline struct tw__run_record *tw__user_begin(const void *owner, tw_fn *fn, void *arg,
						    const char *name, uint64_t since_ns)
{
	struct tw__run_record *record = tw__my_run_record;
	if (tw_unlikely(!owner) || (tw_unlikely(!record) && !(record = tw__run_record_make())))
		return NULL;
	uint64_t word = tw_load_relaxed(&record->word);
	if (tw_unlikely(word & 1)) /* inside another run */
		return NULL;
	tw_store_release(&record->owner, owner); /* USER1 */
	tw_store_release(&record->fn, fn);
	tw_store_release(&record->arg, arg);
	tw_store_release(&record->name, name);
	/* USER2 */
	tw_store_release(&record->since_ns, since_ns ? since_ns : TW__USER_UNDATED | word);
	tw_store_release(&record->word, word + 1);
	return record;
}

/* The run is over. Nothing but the thread's own record is touched: the owner may be gone. */
static inline void tw__user_end(struct tw__run_record *record)
{
	if (tw_likely(record != NULL))
		tw_store_release(&record->word, tw_load_relaxed(&record->word) + 1); /* USER1 */
}

/*
 * The same for the layers. frame: NULL; or the frame that becomes the thread's current one, and is
 * exchanged for the former.
 */
TW_PRIVATE struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg,
						  const char *name, struct tw__run **frame);

#endif
