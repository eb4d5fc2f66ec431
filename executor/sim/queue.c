/*
 * Hand-overs that wait for the simulated workers: a queue for each service, as in a pool, and one
 * for works and plain tasks.
 */

#include "executor/sim/queue.h"
#include "wheel/timer/timing.h"
#include "wheel/run/work.h"
#include "wheel/run/run.h"

/* In the order in which services first hand something over, so addresses have no influence. */
static struct tw__sim_queue *queue_of(tw_sim *sim, tw_service *service)
{
	if (!service)
		return &sim->queues[0];
	unsigned i = 1;
	while (i < TW__SIM_QUEUES - 1 && sim->queues[i].service &&
	       sim->queues[i].service != service)
		i++;
	sim->queues[i].service = service;
	return &sim->queues[i];
}

static int sim_make_room(struct tw__sim_queue *queue)
{
	if (queue->count < queue->room)
		return 0;
	size_t room = queue->room ? 2 * queue->room : 64;
	struct tw__sim_item *items = malloc(room * sizeof *items);
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < queue->count; i++)
		items[i] = queue->items[(queue->first + i) & (queue->room - 1)];
	free(queue->items);
	queue->items = items;
	queue->room = room;
	queue->first = 0;
	return 0;
}

static tw_service *service_of(const struct tw__sim_item *item)
{
	return item->batch && !tw__batch_is_work(item->batch) ? tw__batch_service(item->batch)
							      : NULL;
}

int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item)
{
	struct tw__sim_queue *queue = queue_of(sim, service_of(item));
	int r = sim_make_room(queue);
	if (r)
		return r;
	struct tw__sim_item *at =
	    &queue->items[(queue->first + queue->count++) & (queue->room - 1)];
	*at = *item;
	at->number = sim->numbered;
	sim->numbered += item->tickets;
	tw_add_relaxed(&sim->waiting, 1);
	return 0;
}

/* With the lock. */
static uint64_t sim_draw(tw_sim *sim, uint64_t bound)
{
	return bound > 1 ? tw__random_upto(&sim->random, bound - 1) : 0;
}

uint64_t tw__sim_draw(tw_sim *sim, uint64_t bound)
{
	pthread_mutex_lock(&sim->lock);
	uint64_t drawn = sim_draw(sim, bound);
	pthread_mutex_unlock(&sim->lock);
	return drawn;
}

int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_sim *sim = (tw_sim *)self;
	pthread_mutex_lock(&sim->lock);
	bool refused =
	    sim->config.refuse_percent && sim_draw(sim, 100) < sim->config.refuse_percent;
	int r = refused
		    ? -EAGAIN
		    : tw__sim_enqueue(sim, &(struct tw__sim_item){.batch = batch, .tickets = n});
	tw__sim_event_locked(sim, r ? TW_SIM_REFUSED : TW_SIM_HANDED, UINT32_MAX, n);
	pthread_mutex_unlock(&sim->lock);
	return r;
}

/* One worker takes all in the order of hand-over. */
static struct tw__sim_queue *oldest(tw_sim *sim)
{
	struct tw__sim_queue *found = NULL;
	for (struct tw__sim_queue *q = sim->queues; q < sim->queues + TW__SIM_QUEUES; q++)
		if (q->count &&
		    (!found || q->items[q->first].number < found->items[found->first].number))
			found = q;
	return found;
}

static struct tw__sim_queue *any(tw_sim *sim)
{
	unsigned count = 0;
	for (unsigned i = 0; i < TW__SIM_QUEUES; i++)
		count += sim->queues[i].count > 0;
	uint64_t nth = sim_draw(sim, count);
	for (struct tw__sim_queue *q = sim->queues; q < sim->queues + TW__SIM_QUEUES; q++)
		if (q->count && nth-- == 0)
			return q;
	return NULL;
}

static void take_first(tw_sim *sim, struct tw__sim_queue *queue, struct tw__sim_run *run)
{
	struct tw__sim_item *first = &queue->items[queue->first];
	*run = (struct tw__sim_run){.item = *first, .index = -1};
	first->number++;
	if (--first->tickets == 0) {
		queue->first = (queue->first + 1) & (queue->room - 1);
		queue->count--;
		tw_sub_seq_cst(&sim->waiting, 1);
	}
}

bool tw__sim_take(tw_sim *sim, struct tw__sim_run *run)
{
	pthread_mutex_lock(&sim->lock);
	struct tw__sim_queue *queue = sim->config.workers == 1 ? oldest(sim) : any(sim);
	if (queue)
		take_first(sim, queue, run);
	pthread_mutex_unlock(&sim->lock);
	return queue != NULL;
}
