/*
 * An item: what an object runs for its user, with a handle that stays safe (handles.h), a context,
 * a release, a delay and a period. 128 bytes; without options and a delay it touches the first 64
 * only. An object whose items hold more begins their struct with an item.
 *
 * A delay is a timer that the driver runs. Its callback pushes the item into its object's inbox and
 * does nothing else. An item in the inbox, or whose timer is set, is **away**: it cannot be put. If
 * an item ends while it is away, its node waits for the thread that takes it out of the inbox.
 *
 *   state      where it is                      who may change the state, the lock held
 *   COMING     in the inbox                     who takes it, a cancel
 *   QUEUED     in a line of the object          the runner, a cancel, close
 *   DELAYED    its timer is set; or in the      who takes it, a cancel, close
 *              inbox, due
 *   RUNNING    with the runner                  the runner, a cancel
 *   STOPPED    the same, and cancelled          the runner: a series ends
 *   RELEASING  with who calls its release       that thread
 *   ENDED      away, and over                   who takes it puts it
 *
 *   flag       meaning
 *   OPTIONS    context, release, name and period are set; else it has none of them
 *   AWAY       in the inbox, or on its way there
 *   TIMED      its delay is a user of its object, until it is taken
 *   UNTIMED    a series in the line whose next run is not due: its timer was refused
 *
 * All under the object's lock, except that a new item belongs to its submitter, and that the runner
 * reads the flags of the item that it runs, which nobody changes meanwhile.
 */
#ifndef TW_EXECUTOR_ITEM_H
#define TW_EXECUTOR_ITEM_H

#include "executor/base/handles.h"
#include "executor/base/object.h"
#include "mpsc/base/atomics.h"
#include "tickwheel/task.h"

enum tw__item_state {
	TW__ITEM_COMING,
	TW__ITEM_QUEUED,
	TW__ITEM_DELAYED,
	TW__ITEM_RUNNING,
	TW__ITEM_STOPPED,
	TW__ITEM_RELEASING,
	TW__ITEM_ENDED
};

enum tw__item_flag {
	TW__ITEM_OPTIONS = 1,
	TW__ITEM_AWAY = 2,
	TW__ITEM_TIMED = 4,
	TW__ITEM_UNTIMED = 8
};

struct tw__item {
	struct tw__node node;
	tw__link came;            /* the next one in the inbox */
	struct tw__in_line place; /* in the line of due items, or of delayed ones */
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

_Static_assert(sizeof(struct tw__item) == 2 * TW__CACHE_LINE, "two cache lines");

static inline struct tw__object *tw__item_owner(const struct tw__item *item)
{
	return tw_load_relaxed(&item->node.owner);
}

static inline struct tw__item *tw__item_that_came(tw__link link)
{
	return TW__OWNER(struct tw__item, came, link);
}

static inline struct tw__item *tw__item_in_line(tw__link link)
{
	return TW__OWNER(struct tw__item, place, link);
}

/*
 * Takes a new one without options; state COMING. The nodes have at least the size of an item.
 * Returns 0, -ENOMEM or -EAGAIN.
 */
static inline int tw__item_get(struct tw__nodes *nodes, struct tw__object *owner, tw_fn *fn,
			       void *arg, struct tw__item **out)
{
	struct tw__node *node;
	int r = tw__node_get(nodes, owner, &node);
	if (tw_unlikely(r))
		return r;
	struct tw__item *item = *out = (struct tw__item *)(void *)node;
	node->state = TW__ITEM_COMING;
	node->flags = 0;
	item->fn = fn;
	item->arg = arg;
	return 0;
}

/* Sets its options. period NULL: it runs once. */
void tw__item_options(struct tw__item *item, const char *name, tw_release_fn *release,
		      void *context, const struct tw_period *period);

static inline bool tw__item_is_series(const struct tw__item *item)
{
	return item->node.flags & TW__ITEM_OPTIONS && item->period_ns;
}

/* Puts its node: immediately, or with the batch. It is not away. */
static inline void tw__item_put(struct tw__nodes *nodes, struct tw__item *item,
				struct tw__node_batch *batch)
{
	TW_ASSERT(!(item->node.flags & TW__ITEM_AWAY));
	if (batch)
		tw__node_put_later(nodes, batch, &item->node);
	else
		tw__node_put(nodes, &item->node);
}

/* Finds the owner's item by its handle. NULL: it has ended, or never was. The lock is held. */
struct tw__item *tw__item_find(struct tw__nodes *nodes, const struct tw__object *owner,
			       uint64_t handle);

/* ------------------------------------------------------------------------- inbox */

/* Pushes it into its owner's inbox. False: closed, and it is still the caller's. */
static inline bool tw__item_push(struct tw__item *item, struct tw__object *owner)
{
	item->node.flags |= TW__ITEM_AWAY;
	if (tw_likely(tw__object_push(owner, (tw__link)&item->came, false)))
		return true;
	item->node.flags &= (uint8_t)~TW__ITEM_AWAY;
	return false;
}

bool tw__item_arrives_slowly(struct tw__nodes *nodes, struct tw__item *item);

/*
 * It was taken from the inbox. True: it is QUEUED now, and the caller puts it into its line. False:
 * it has ended meanwhile. The lock is held.
 */
static inline bool tw__item_arrives(struct tw__nodes *nodes, struct tw__item *item)
{
	if (tw_unlikely(item->node.state != TW__ITEM_COMING))
		return tw__item_arrives_slowly(nodes, item);
	item->node.state = TW__ITEM_QUEUED;
	item->node.flags &= (uint8_t)~TW__ITEM_AWAY;
	return true;
}

/* ------------------------------------------------------------------------ delays */

/*
 * Brings it into the inbox when it is due. flags: TW_TASK_AT: when_ns is an instant, else a
 * delay. The lock is held. Returns as tw__object_delay.
 */
int tw__item_delay(struct tw__item *item, uint32_t flags, uint64_t when_ns);

/* Takes a DELAYED one back. It may be away still. The lock is held. */
void tw__item_undelay(struct tw__item *item);

/*
 * The run of a series is over: chooses its next instant, due_ns. *now: it is due already. False:
 * there is none.
 */
bool tw__item_next(struct tw__item *item, bool *now);

/* ----------------------------------------------------------------- run and the end */

void tw__item_call_with_options(struct tw__item *item);

/* Calls fn, under the item's context. runner: the caller's own frame. Without the lock. */
static inline void tw__item_call(struct tw__item *item, struct tw__inside *runner)
{
	runner->item = item;
	if (tw_unlikely(item->node.flags & TW__ITEM_OPTIONS)) {
		tw__item_call_with_options(item);
	} else {
		struct tw__run_record *shown = tw__layer_begin(
		    tw__object_service(tw__item_owner(item)), item->fn, item->arg, NULL, NULL);
		void *former = tw__context_enter(NULL);
		item->fn(item->arg);
		tw__context_leave(former);
		tw__user_end(shown);
	}
	runner->item = NULL;
}

/*
 * It has left its line, or is COMING or DELAYED, and no other thread ends it: calls its release,
 * with the lock released meanwhile, and puts its node when it is not away. The caller is a user, or
 * the runner.
 */
void tw__item_end(struct tw__nodes *nodes, struct tw__item *item, enum tw_fate fate,
		  struct tw__node_batch *batch);

#endif
