#include "mpsc/queue.h"

#include <stdlib.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/locked.h"
#include "mpsc/base/process.h"

_Thread_local struct tw__thread tw__thread = {.queue_id = TW__NO_QUEUE};

/*
 * Binds a thread to its lane in one queue. Both ends may go first: the queue clears `lane`, the
 * thread frees the tie.
 */
struct tie {
	struct tie *next;              /* of the thread's; only it walks the list */
	struct tie **mine;             /* the thread's list */
	struct tie *next_of_all, **at; /* at NULL: inherited by a forked child */
	uint64_t queue_id;
	struct tw__queue *queue;
	struct tw__lane *lane; /* NULL: the queue is gone; registry's lock */
};

static _Thread_local struct tie *my_ties;

static uint64_t last_queue_id; /* registry's lock */

/* For the unload alone: all that this process has made. Registry's lock. */
static struct tie *all_ties;

static void tie_enlist(struct tie *tie)
{
	TW_ASSERT_LOCKED(&tw__registry);
	tie->at = &all_ties;
	tie->next_of_all = all_ties;
	if (tie->next_of_all)
		tie->next_of_all->at = &tie->next_of_all;
	all_ties = tie;
}

static void tie_free(struct tie *tie)
{
	TW_ASSERT_LOCKED(&tw__registry);
	if (tie->at)
		*tie->at = tie->next_of_all;
	if (tie->at && tie->next_of_all)
		tie->next_of_all->at = tie->at;
	free(tie);
}

/*
 * The thread forgets its lane. The list may be half written: it starts anew, without the ties of
 * the thread that has forked.
 */
static void queue_after_fork_in_child(void)
{
	tw__thread.queue_id = TW__NO_QUEUE;
	all_ties = NULL;
	for (struct tie *tie = my_ties; tie; tie = tie->next)
		tie->at = NULL;
}

static void disown(struct tie *tie)
{
	if (!tie->lane)
		return;
	TW_ASSERT(tie->lane->tie == tie && tw_load_relaxed(&tie->queue->owner_count) > 0);
	tie->lane->tie = NULL;
	tw_add_acq_rel(&tie->queue->owner_count, (uint32_t)-1); /* QUEUE2 */
	tie->queue->ops->orphaned(tie->lane, tie->queue->context);
}

static void queue_thread_ends(void)
{
	TW_ASSERT_LOCKED(&tw__registry);
	tw__thread.queue_id = TW__NO_QUEUE;
	for (struct tie *tie = my_ties, *next; tie; tie = next) {
		next = tie->next;
		disown(tie);
		tie_free(tie);
	}
	my_ties = NULL;
}

static void queue_unload(void)
{
	TW_ASSERT_LOCKED(&tw__registry);
	while (all_ties) {
		*all_ties->mine = NULL;
		tie_free(all_ties);
	}
}

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static bool watched;

static void watch(void)
{
	static struct tw__keeper keeper = {.thread_ends = queue_thread_ends,
					   .unload = queue_unload,
					   .after_fork_in_child = queue_after_fork_in_child};
	watched = tw__keeper_add(&keeper);
}

void tw__queue_init(struct tw__queue *queue, uint32_t bound, const struct tw__queue_ops *ops,
		    void *context)
{
	const size_t smallest = sizeof(struct tw__lane);
	TW_ASSERT(ops->lane_size >= smallest && ops->init && ops->use && ops->orphaned);
	*queue = (struct tw__queue){.bound = bound, .ops = ops, .context = context};
	tw__unload_hold();
	pthread_mutex_lock(&tw__registry);
	queue->id = ++last_queue_id;
	pthread_mutex_unlock(&tw__registry);
}

void tw__queue_fini(struct tw__queue *queue)
{
	pthread_mutex_lock(&tw__registry);
	for (struct tw__lane *lane = tw__queue_first(queue), *next; lane; lane = next) {
		next = lane->next;
		if (lane->tie)
			((struct tie *)lane->tie)->lane = NULL;
		tw__lane_fini(lane);
		free(lane);
	}
	tw_store_relaxed(&queue->lanes, NULL);
	pthread_mutex_unlock(&tw__registry);
	tw__unload_drop();
}

void tw__queue_abandon(struct tw__queue *queue)
{
	pthread_mutex_lock(&tw__registry);
	for (struct tw__lane *lane = tw__queue_first(queue); lane; lane = lane->next)
		if (lane->tie)
			((struct tie *)lane->tie)->lane = NULL;
	pthread_mutex_unlock(&tw__registry);
}

static struct tw__lane *adopt(struct tw__queue *queue)
{
	TW_ASSERT_LOCKED(&tw__registry);
	for (struct tw__lane *lane = tw__queue_first(queue); lane; lane = lane->next)
		if (!lane->tie)
			return lane;
	return NULL;
}

static struct tw__lane *queue_make(struct tw__queue *queue)
{
	TW_ASSERT_LOCKED(&tw__registry);
	struct tw__lane *lane = aligned_alloc(TW__CACHE_LINE, queue->ops->lane_size);
	if (!lane)
		return NULL;
	if (!tw__lane_init(lane, queue->bound, queue->ops->use, queue->context)) {
		free(lane);
		return NULL;
	}
	queue->ops->init(lane, queue->context);
	lane->next = tw_load_relaxed(&queue->lanes);
	tw_store_relaxed(&queue->lane_count, tw_load_relaxed(&queue->lane_count) + 1);
	tw_store_seq_cst(&queue->lanes, lane); /* QUEUE1: pairs with queue_first */
	return lane;
}

/* Ties of queues that are gone. */
static void drop_stale_ties(void)
{
	TW_ASSERT_LOCKED(&tw__registry);
	for (struct tie **at = &my_ties; *at;) {
		struct tie *tie = *at;
		if (tie->lane) {
			at = &tie->next;
			continue;
		}
		*at = tie->next;
		tie_free(tie);
	}
}

static struct tie *new_tie(struct tw__queue *queue)
{
	pthread_once(&watch_once, watch);
	struct tie *tie = watched ? malloc(sizeof *tie) : NULL;
	if (!tie)
		return NULL;
	pthread_mutex_lock(&tw__registry);
	drop_stale_ties();
	bool ready = tw__thread_watch();
	struct tw__lane *lane = ready ? adopt(queue) : NULL;
	if (ready && !lane)
		lane = queue_make(queue);
	if (lane) {
		*tie = (struct tie){.next = my_ties,
				    .mine = &my_ties,
				    .queue_id = queue->id,
				    .queue = queue,
				    .lane = lane};
		tie_enlist(tie);
		lane->tie = tie;
		my_ties = tie;
		tw_add_acq_rel(&queue->owner_count, 1); /* QUEUE2 */
	}
	pthread_mutex_unlock(&tw__registry);
	if (!lane) {
		free(tie);
		return NULL;
	}
	return tie;
}

struct tw__lane *tw__queue_attach(struct tw__queue *queue)
{
	struct tie *tie = my_ties;
	while (tie && tie->queue_id != queue->id)
		tie = tie->next;
	if (!tie)
		tie = new_tie(queue);
	if (!tie)
		return NULL;
	TW_ASSERT(tie->queue == queue && tie->lane && tie->lane->tie == tie);
	tw__thread.queue_id = queue->id;
	tw__thread.lane = tie->lane;
	return tie->lane;
}
