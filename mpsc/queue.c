#include "mpsc/queue.h"

#include <stdlib.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/fork.h"
#include "mpsc/base/locked.h"

_Thread_local struct tw__thread tw__thread = {TW__NO_QUEUE, NULL};

/*
 * Binds a thread to its lane in one queue. Both ends may go first: the queue clears `lane`, the
 * thread frees the tie.
 */
struct tie {
	struct tie *next; /* of the thread's; only it walks the list */
	uint64_t queue_id;
	struct tw__queue *queue;
	struct tw__lane *lane; /* NULL: the queue is gone; registry's lock */
};

static _Thread_local struct tie *my_ties;

static uint64_t last_queue_id; /* registry's lock */

static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;

static void disown(struct tie *tie)
{
	if (!tie->lane)
		return;
	TW_ASSERT(tie->lane->tie == tie && tw_load_relaxed(&tie->queue->owner_count) > 0);
	tie->lane->tie = NULL;
	tw_add_acq_rel(&tie->queue->owner_count, (uint32_t)-1); /* QUEUE2 */
	tie->queue->ops->orphaned(tie->lane, tie->queue->context);
}

/*
 * Runs when a thread ends; if a later exit handler uses a queue again, it attaches anew and this
 * runs once more.
 */
static void queue_thread_exits(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&tw__registry);
	tw__thread = (struct tw__thread){TW__NO_QUEUE, NULL};
	for (struct tie *tie = my_ties, *next; tie; tie = next) {
		next = tie->next;
		disown(tie);
		free(tie);
	}
	my_ties = NULL;
	pthread_mutex_unlock(&tw__registry);
}

static void make_exit_key(void)
{
	exit_key_made = pthread_key_create(&exit_key, queue_thread_exits) == 0;
}

static bool watch_thread_exit(void)
{
	pthread_once(&exit_key_once, make_exit_key);
	/* planted: descriptor_lost */
	return exit_key_made && pthread_setspecific(exit_key, &my_ties) == 0;
}

void tw__queue_init(struct tw__queue *queue, uint32_t bound, const struct tw__queue_ops *ops,
		    void *context)
{
	const size_t smallest = sizeof(struct tw__lane);
	TW_ASSERT(ops->lane_size >= smallest && ops->init && ops->use && ops->orphaned);
	*queue = (struct tw__queue){.bound = bound, .ops = ops, .context = context};
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
		free(tie);
	}
}

static struct tie *new_tie(struct tw__queue *queue)
{
	struct tie *tie = malloc(sizeof *tie);
	if (!tie || !watch_thread_exit()) {
		free(tie);
		return NULL;
	}
	pthread_mutex_lock(&tw__registry);
	drop_stale_ties();
	struct tw__lane *lane = adopt(queue);
	if (!lane)
		lane = queue_make(queue);
	if (lane) {
		*tie = (struct tie){my_ties, queue->id, queue, lane};
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
	tw__thread = (struct tw__thread){queue->id, tie->lane};
	return tie->lane;
}
