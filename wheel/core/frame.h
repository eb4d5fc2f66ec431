/* What the calling thread runs: a stack of frames. */
#ifndef TW_WHEEL_FRAME_H
#define TW_WHEEL_FRAME_H

#include "mpsc/base/private.h"
#include "wheel/core/service.h"

struct tw__run_record;

/* A callback under way on this thread; nested if it drives another service. */
struct tw__run {
	struct tw__run *outer;
	tw_service *service;          /* NULL: a run of a strand's series, for tw_current alone */
	struct tw__run_record *shown; /* which shows it (user_code.h), or NULL */
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

TW_PRIVATE extern _Thread_local struct tw__run *tw__current_run;

/* Whether this thread is inside a callback or release of the service. */
bool tw__inside(const tw_service *service);

/* Whether the calling thread is in a callback of a service on this clock, or drives one. */
bool tw__clock_in_callback(const tw_clock *clock);

/*
 * Something that the calling thread is inside of, named by an address that nothing else uses: a
 * work of a service, a task of a scheduler, a release.
 */
struct tw__within {
	const void *what;
	struct tw__within *outer;
	const tw_clock *drives; /* the clock of the service whose poll this is; else NULL */
	/* the callback that the innermost work runs inside of: tw_self does not name it */
	const struct tw__run *hidden;
};

extern _Thread_local struct tw__within *tw__innermost;

static inline void tw__within_begin(struct tw__within *within, const void *what)
{
	*within = (struct tw__within){.what = what,
				      .outer = tw__innermost,
				      .hidden = tw__innermost ? tw__innermost->hidden : NULL};
	tw__innermost = within;
}

static inline void tw__within_end(const struct tw__within *within)
{
	tw__innermost = within->outer;
}

/* Tells whether this thread is inside of it, at any depth. */
bool tw__is_within(const void *what);

#endif
