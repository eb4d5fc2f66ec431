/* What the calling thread runs: a stack of frames. */
#ifndef TW_WHEEL_FRAME_H
#define TW_WHEEL_FRAME_H

#include "mpsc/base/private.h"
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

#endif
