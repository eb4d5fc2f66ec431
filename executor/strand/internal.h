/*
 * A strand: an object (base/object.h) whose runner runs one thing at a time, in order.
 *
 * All that comes goes into the inbox, without the lock: tasks, delayed ones when they are due,
 * batches of timers, and work of objects above. It moves to the line under the lock: by the runner,
 * when the line is empty, and by calls that need to see what is there. The order is that of the
 * pushes. A batch stays first in line until its last run has begun.
 *
 * Once the strand is closed, tasks and timers in the line end as cancelled, by the thread that
 * takes them out: the closer or the runner. Work of others is left to the runner.
 *
 * A series whose next timer is refused stays in the line, though it is early. The runner comes
 * again in the next tick, and tries again, or runs it if it is due. Until then the strand is
 * ACTIVE, and what is submitted waits for that tick, too.
 *
 * A task in the inbox, or whose timer is set, is **away**: if it ends, its node waits for the
 * thread that takes it out of the inbox.
 *
 *   state      where it is                      who may change the state, the lock held
 *   COMING     in the inbox                     a look at the inbox, a cancel
 *   QUEUED     in the line                      the runner, a cancel, close
 *   DELAYED    with its timer, or due and in    a look at the inbox, a cancel, close
 *              the inbox
 *   RUNNING    with the runner                  the runner, a cancel
 *   STOPPED    the same, and cancelled          the runner: a series ends
 *   RELEASING  its release is being called      the thread that calls it
 *   ENDED      away, and over                   a look at the inbox puts its node
 *
 *   flag       meaning
 *   OPTIONS    context, release, name and period are set
 *   AWAY       in the inbox, or on its way there
 *   TIMED      its delay is a user of the strand, until it is taken
 *
 * All under the lock, except that a new task belongs to its submitter, and that nobody changes the
 * flags of the task that runs.
 */
#ifndef TW_EXECUTOR_STRAND_H
#define TW_EXECUTOR_STRAND_H

#include "executor/base/object.h"
#include "mpsc/base/atomics.h"
#include "tickwheel/strand.h"

enum tw__item_state {
	TW__ITEM_COMING,
	TW__ITEM_QUEUED,
	TW__ITEM_DELAYED,
	TW__ITEM_RUNNING,
	TW__ITEM_STOPPED,
	TW__ITEM_RELEASING,
	TW__ITEM_ENDED
};

enum tw__item_flag { TW__ITEM_OPTIONS = 1, TW__ITEM_AWAY = 2, TW__ITEM_TIMED = 4 };

/* A task. Without options and a delay only its first 64 bytes are touched. */
struct tw__item {
	struct tw__node node;     /* mode, missed: of a series */
	tw__link came;            /* the next one in the inbox */
	struct tw__in_line place; /* in the line, or among the delayed ones */
	tw_fn *fn;
	void *arg;
	/* OPTIONS, except for the timer. */
	_Alignas(TW__CACHE_LINE) void *context;
	tw_release_fn *release;
	const char *name;
	tw_timer timer;
	uint64_t due_ns;    /* of a series: the nominal instant */
	uint64_t period_ns; /* 0: no series; the next two mean nothing then */
	uint64_t runs_left; /* 0: no end */
	uint64_t overruns;  /* instants missed since the last run */
};

_Static_assert(sizeof(struct tw__item) == TW__SMALL_NODE, "two cache lines");

/* Steps between which others get the lock. */
enum { TW__STRAND_PIECE = 64 };

/* All under the object's lock, if not said otherwise. */
struct tw_strand {
	_Alignas(TW__CACHE_LINE) tw_executor executor; /* first */
	struct tw__object object;
	struct tw__line line;
	uint32_t queued;    /* tasks in the line */
	uint16_t head_left; /* tickets left of the batch at the head, if some are used up */
	bool running;       /* a task or a timer */
	uint64_t runs, cancelled;
};

_Static_assert(offsetof(struct tw_strand, object) == sizeof(tw_executor), "tw__object_ops");
_Static_assert(sizeof(struct tw_strand) == 3 * TW__CACHE_LINE, "three cache lines");
_Static_assert(offsetof(struct tw_strand, object.lock) % TW__CACHE_LINE == 0,
	       "the runner's line is not the one that all push to");

static inline struct tw__nodes *tw__strand_tasks(tw_strand *strand)
{
	return tw__object_small_nodes(&strand->object);
}

static inline tw_strand *tw__strand_of(struct tw__object *object)
{
	return TW__OWNER(tw_strand, object, object);
}

static inline tw_strand *tw__item_owner(const struct tw__item *task)
{
	return tw__strand_of(tw_load_relaxed(&task->node.owner));
}

static inline struct tw__item *tw__item_in_line(tw__link link)
{
	return TW__OWNER(struct tw__item, place, link);
}

static inline bool tw__strand_closed(const tw_strand *strand)
{
	return tw_load_relaxed(&strand->object.closed);
}

/* False: closed, and the task is still the caller's. */
static inline bool tw__item_push(tw_strand *strand, struct tw__item *task)
{
	task->node.flags |= TW__ITEM_AWAY;
	if (tw_likely(tw__object_push(&strand->object, (tw__link)&task->came, false)))
		return true;
	task->node.flags &= (uint8_t)~TW__ITEM_AWAY;
	return false;
}

/* ------------------------------------------------- run.c; the lock is held */

/* Brings the task into the inbox when it is due. As tw__object_delay. */
int tw__item_delay(struct tw__item *task, uint32_t flags, uint64_t when_ns);

/* Moves a piece of the inbox to the line. True: there is more. */
bool tw__strand_gather(tw_strand *strand);

/*
 * The task has left the line, or is delayed or coming, and no other thread ends it. Calls its
 * release, with the lock released meanwhile, and puts its node (with the batch, unless NULL). The
 * caller is a user, or the runner.
 */
void tw__strand_end(tw_strand *strand, struct tw__item *task, enum tw_fate fate,
		    struct tw__node_batch *batch);

/* Ends what is left of the batch that was first in line. */
void tw__strand_end_batch(tw_strand *strand, tw_batch *batch);

void tw__strand_run_work(struct tw__work *work);

#endif
