/*
 * What threads run: a stack of frames, which only the thread sees; a context (tickwheel/context.h);
 * and the user's function under way, for tw_service_liveness.
 *
 * All user functions are called between tw__user_begin and tw__user_end. Of runs inside one another
 * the outermost is shown. No clock is read: the first look dates a run without a date.
 *
 * Pairing table
 *   USER1  owner, fn, arg, name, since_ns: store-release, then word: store-release (begin) -> word:
 *       load-acquire, the others: load-acquire, then the word again (look): if the word is the
 *       same, the fields are that run's.
 *   USER2  since_ns: the word, marked as no date: store-release (begin) -> CAS acq_rel to the date
 *       (look): only the run with that word is dated, and no later one.
 */
#ifndef TW_WHEEL_FRAME_H
#define TW_WHEEL_FRAME_H

#include "mpsc/base/atomics.h"
#include "tickwheel/context.h"
#include "wheel/core/service.h"

/*
 * A callback or a release; or, with `within`, a service's work or poll, or a pool's drops: then the
 * members from `service` on are zero.
 */
struct tw__run {
	struct tw__run *outer;
	const void *within;     /* a unique address; NULL: a callback, a release */
	const tw_clock *drives; /* of a poll: its clock */
	bool hides;             /* work: tw_self does not name what is outside */
	tw_service *service;    /* NULL: a run of a strand's series */
	uint32_t slot, generation;
	/* of the member's group; of the next slot whose release is owed */
	uint32_t group, owed;
	void *context;
	uint64_t overruns;
	uint64_t due_ns;   /* a series' nominal instant, or a tick */
	uint64_t begun_ns; /* 0: a release */
	uint64_t rearm_ns; /* the deadline it has asked for */
	bool rearm, closing, releasing;
	bool rearm_if_earlier; /* a series keeps an earlier next instant */
};

extern _Thread_local struct tw__run *tw__current_run;

/* Whether this thread is in a callback or release of the service. */
bool tw__inside(const tw_service *service);

/* Whether this thread is in a callback of a service on this clock, or drives one. */
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

/* Whether this thread is inside of `what`, at any depth. */
bool tw__is_within(const void *what);

/* ------------------------------------------------------------------ contexts */

/*
 * Work that runs later captures the context, and installs it for the run; runs nest. The
 * layers do not see the core's thread-local.
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

static inline void *tw__context_enter(void *context)
{
	void *former = tw__context_capture();
	tw__context_leave(context);
	return former;
}

/* ------------------------------------------------------------------ user code */

/* In since_ns of a run without a date, with the word before the run. */
#define TW__USER_UNDATED (UINT64_C(1) << 63)

/* As the name of what runs; not called by this type. */
#define TW__NAMED_BY(function) ((tw_fn *)(void (*)(void))(function))

/*
 * owner: the service, or of a pool's own task the pool; NULL: nobody looks. since_ns: a cached
 * reading of the owner's clock, or 0. The answer goes to tw__user_end.
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

/* The run has ended. The owner may be gone. */
static inline void tw__user_end(struct tw__run_record *record)
{
	if (tw_likely(record != NULL))
		tw_store_release(&record->word, tw_load_relaxed(&record->word) + 1); /* USER1 */
}

/* For the layers. frame: NULL; or the thread's next frame, exchanged for the former. */
TW_PRIVATE struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg,
						  const char *name, struct tw__run **frame);

#endif
