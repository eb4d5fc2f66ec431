#include "mpsc/queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/process.h"

_Thread_local struct tw__thread tw__thread; /* TW__NO_QUEUE */

_Thread_local struct tw__run_record *tw__my_run_record;
_Atomic(struct tw__run_record *) tw__run_records;

/* Binds a thread to its lane in one queue. Either may end first. */
struct tw__tie {
	struct tw__tie *next; /* of the thread's; only it walks the list */
	uint64_t queue_id;
	struct tw__queue *queue;
	struct tw__lane *lane; /* NULL: the queue is gone; registry's lock */
};

static pthread_once_t threads_once = PTHREAD_ONCE_INIT;
static bool watching;
static pthread_key_t exit_key;
static bool unloaded;          /* the key is deleted; registry's lock */
static _Atomic uint32_t holds; /* objects */
static uint64_t last_queue_id; /* registry's lock */

/* ------------------------------------------------------------------ threads */

static void disown(struct tw__tie *tie)
{
	TW_ASSERT(tie->lane->tie == tie && tw_load_relaxed(&tie->queue->owner_count) > 0);
	tie->lane->tie = NULL;
	tw_add_acq_rel(&tie->queue->owner_count, (uint32_t)-1); /* QUEUE2 */
	tie->queue->ops->orphaned(tie->lane, tie->queue->context);
}

/* Runs may still be shown: a user's function may have ended the thread. */
static void record_clear(struct tw__run_record *record)
{
	uint64_t word = tw_load_relaxed(&record->word);
	tw_store_relaxed(&record->word, word + (word & 1));
	tw_store_relaxed(&record->bringing, NULL);
	record->ties = NULL;
	record->in_use = false;
}

static void record_give_up(struct tw__run_record *record)
{
	TW_ASSERT_LOCKED(&tw__registry);
	for (struct tw__tie *tie = record->ties, *next; tie; tie = next) {
		next = tie->next;
		if (tie->lane)
			disown(tie);
		tw__free(tie);
	}
	record_clear(record);
}

/* The unload may have freed its record. */
static void thread_ends(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&tw__registry);
	struct tw__run_record *record = tw__my_run_record;
	tw__thread.queue_id = TW__NO_QUEUE;
	tw__my_run_record = NULL;
	if (record)
		record_give_up(record);
	pthread_mutex_unlock(&tw__registry);
}

static void threads_after_fork_in_child(void)
{
	tw__thread.queue_id = TW__NO_QUEUE;
	/* QUEUE3 */
	for (struct tw__run_record *record = tw_load_acquire(&tw__run_records); record;
	     record = record->next) {
		if (record == tw__my_run_record)
			record->ties = NULL;
		else
			record_clear(record);
	}
}

static void threads_unload(void)
{
	pthread_mutex_lock(&tw__registry);
	bool free_all = !tw_load_acquire(&holds) /* QUEUE4 */ && !tw__fork_generation(false);
	struct tw__run_record *record = free_all ? tw_load_relaxed(&tw__run_records) : NULL;
	for (struct tw__run_record *next; record; record = next) {
		next = record->next;
		if (record->in_use)
			*record->mine = NULL;
		record_give_up(record);
		tw__free(record);
	}
	if (free_all)
		tw_store_relaxed(&tw__run_records, NULL);
	/* last: a thread that ends before it waits for the lock, so what it has is there */
	unloaded = pthread_key_delete(exit_key) == 0;
	pthread_mutex_unlock(&tw__registry);
}

static void threads_watch(void)
{
	watching = pthread_atfork(NULL, NULL, threads_after_fork_in_child) == 0 &&
		   pthread_key_create(&exit_key, thread_ends) == 0 && atexit(threads_unload) == 0;
}

void tw__unload_hold(void)
{
	pthread_once(&threads_once, threads_watch);
	tw_add_acq_rel(&holds, 1); /* QUEUE4 */
}

void tw__unload_drop(void)
{
	tw_add_acq_rel(&holds, (uint32_t)-1); /* QUEUE4 */
}

static struct tw__run_record *record_get(void)
{
	struct tw__run_record *first = tw_load_relaxed(&tw__run_records), *record = first;
	while (record && record->in_use)
		record = record->next;
	if (record || !(record = tw__alloc_aligned(TW__CACHE_LINE, sizeof *record)))
		return record;
	memset(record, 0, sizeof *record);
	record->next = first;
	tw_store_release(&tw__run_records, record); /* QUEUE3 */
	return record;
}

tw_cold struct tw__run_record *tw__run_record_make(void)
{
	pthread_once(&threads_once, threads_watch);
	if (!watching)
		return NULL;
	pthread_mutex_lock(&tw__registry);
	struct tw__run_record *record = record_get();
	bool watched = record && (unloaded || pthread_setspecific(exit_key, record) == 0);
	if (watched) {
		record->in_use = true;
		record->mine = &tw__my_run_record;
		tw_store_relaxed(&record->thread_id, (uint32_t)gettid());
		tw__my_run_record = record;
	}
	pthread_mutex_unlock(&tw__registry);
	return watched ? record : NULL; /* planted: descriptor_lost */
}

/* ------------------------------------------------------------------- queues */

void tw__queue_init(struct tw__queue *queue, uint32_t bound, const struct tw__queue_ops *ops,
		    void *context)
{
	const size_t smallest = sizeof(struct tw__lane);
	TW_ASSERT(ops->lane_size >= smallest && ops->init && ops->fini && ops->pack &&
		  ops->orphaned);
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
			lane->tie->lane = NULL;
		queue->ops->fini(lane);
		tw__lane_fini(lane);
		tw__free(lane);
	}
	tw_store_relaxed(&queue->lanes, NULL);
	pthread_mutex_unlock(&tw__registry);
	tw__unload_drop();
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
	struct tw__lane *lane = tw__alloc_aligned(TW__CACHE_LINE, queue->ops->lane_size);
	if (!lane)
		return NULL;
	if (!tw__lane_init(lane, queue->bound, queue->ops->pack, queue->context)) {
		tw__free(lane);
		return NULL;
	}
	if (!queue->ops->init(lane, queue->context)) {
		tw__lane_fini(lane);
		tw__free(lane);
		return NULL;
	}
	lane->next = tw_load_relaxed(&queue->lanes);
	tw_store_seq_cst(&queue->lanes, lane); /* QUEUE1: pairs with queue_first */
	return lane;
}

/* Frees ties of queues that are gone. */
static void drop_stale_ties(struct tw__run_record *record)
{
	TW_ASSERT_LOCKED(&tw__registry);
	for (struct tw__tie **at = &record->ties; *at;) {
		struct tw__tie *tie = *at;
		if (tie->lane) {
			at = &tie->next;
			continue;
		}
		*at = tie->next;
		tw__free(tie);
	}
}

static struct tw__tie *new_tie(struct tw__queue *queue)
{
	struct tw__run_record *record = tw__my_run_record;
	if (!record && !(record = tw__run_record_make()))
		return NULL;
	struct tw__tie *tie = tw__alloc(sizeof *tie);
	if (!tie)
		return NULL;
	pthread_mutex_lock(&tw__registry);
	drop_stale_ties(record);
	struct tw__lane *lane = adopt(queue);
	if (!lane)
		lane = queue_make(queue);
	if (lane) {
		*tie = (struct tw__tie){
		    .next = record->ties, .queue_id = queue->id, .queue = queue, .lane = lane};
		record->ties = lane->tie = tie;
		tw_add_acq_rel(&queue->owner_count, 1); /* QUEUE2 */
	}
	pthread_mutex_unlock(&tw__registry);
	if (lane)
		return tie;
	tw__free(tie);
	return NULL;
}

tw_cold struct tw__lane *tw__queue_attach(struct tw__queue *queue)
{
	struct tw__tie *tie = tw__my_run_record ? tw__my_run_record->ties : NULL;
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
