/*
 * What happens next. At each instant the service is driven. Then the workers move, one drawn step
 * at a time, until none can. Then the clock moves to the next instant at which
 * something happens.
 *
 * A worker moves in two steps, as in the pool: it takes a run (of a batch: it claims the next
 * entry), and later carries it out. Between the two the others may move as far as they can. To them
 * this looks like a thread that is not scheduled.
 */

#include "executor/sim/step.h"
#include "wheel/run/work.h"
#include "wheel/timer/timing.h"
#include "wheel/service/clock_manual.h"

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

static bool is_of_timers(const struct tw__sim_item *item)
{
	return item->batch && !tw__batch_is_work(item->batch);
}

int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item)
{
	struct tw__sim_queue *queue =
	    &sim->queues[is_of_timers(item) ? TW__SIM_TIMERS : TW__SIM_TASKS];
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

/* Draws a number of 0 .. bound - 1; bound is at least 1. */
static uint64_t draw_locked(tw_sim *sim, uint64_t bound)
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

/* Draws a queue, and takes one ticket of its first item into *run. False: nothing waits. */
static bool take_ticket(tw_sim *sim, struct tw__sim_run *run)
{
	pthread_mutex_lock(&sim->lock);
	struct tw__sim_queue *queue = sim->config.workers == 1 ? oldest(sim) : any(sim);
	if (queue)
		take_first(sim, queue, run);
	pthread_mutex_unlock(&sim->lock);
	return queue != NULL;
}

/* ---------------------------------------------------------------------- steps */

/* -------------------------------------------------------------------- workers */

static uint64_t draw_lateness(tw_sim *sim)
{
	return draw_locked(sim, sim->config.max_late_ns + 1);
}

/* For a batch of timers: prepares the thread's part of the service for a run. NULL: no memory. */
static struct tw__local *place_in(tw_service *service)
{
	struct tw__local *local = tw__local_of(service);
	return local && tw__local_ready_to_run(local) ? local : NULL;
}

static int sim_take(tw_sim *sim, unsigned index)
{
	struct tw__sim_worker *worker = &sim->workers[index];
	struct tw__sim_run *run = &worker->held;
	if (!take_ticket(sim, run))
		return 0;
	if (is_of_timers(&run->item))
		run->index = tw__batch_claim(run->item.batch, tw__batch_sequence(run->item.batch));
	worker->holds = true;
	worker->ready_ns = tw_clock_now(sim->clock) + draw_lateness(sim);
	tw__sim_event(sim, TW_SIM_TAKEN, index, run->item.number);
	return 1;
}

/* True: a callback ran. */
static bool carry_out_timer(const struct tw__sim_run *run, struct tw__local *local)
{
	struct tw__run_clock clock = {0};
	bool ran = tw__batch_run(run->item.batch, local, (unsigned)run->index, &clock);
	tw__batch_finish(run->item.batch, 1);
	return ran;
}

static void carry_out_task(const struct tw__sim_item *task)
{
	void *former = tw__context_enter(task->context);
	task->fn(task->arg);
	tw__context_leave(former);
}

static bool carry_out(const struct tw__sim_run *run, struct tw__local *local)
{
	if (!run->item.batch)
		carry_out_task(&run->item);
	else if (run->index >= 0)
		return carry_out_timer(run, local);
	else
		tw__work_run((struct tw__work *)(void *)run->item.batch);
	return true;
}

static int sim_run(tw_sim *sim, unsigned index)
{
	struct tw__sim_worker *worker = &sim->workers[index];
	struct tw__sim_run held = worker->held;
	struct tw__local *local =
	    held.index >= 0 ? place_in(tw__batch_service(held.item.batch)) : NULL;
	if (held.index >= 0 && !local)
		return -ENOMEM;
	worker->holds = false;
	sim->current = (int)index;
	sim->spent_ns = 0;
	bool ran = carry_out(&held, local);
	sim->current = -1;
	worker->ready_ns = tw_clock_now(sim->clock) + sim->spent_ns;
	tw__sim_event(sim, ran ? TW_SIM_RAN : TW_SIM_SKIPPED, index, held.item.number);
	return 1;
}

static bool can_run(const struct tw__sim_worker *worker, uint64_t now_ns)
{
	return worker->holds && worker->ready_ns <= now_ns;
}

static bool can_take(const tw_sim *sim, const struct tw__sim_worker *worker, uint64_t now_ns)
{
	return tw_load_relaxed(&sim->waiting) && !worker->holds && worker->ready_ns <= now_ns;
}

int tw__sim_move_worker(tw_sim *sim, uint64_t now_ns)
{
	unsigned runners = 0, takers = 0;
	for (unsigned i = 0; i < sim->config.workers; i++) {
		runners += can_run(&sim->workers[i], now_ns);
		takers += can_take(sim, &sim->workers[i], now_ns);
	}
	if (runners + takers == 0)
		return 0;
	/* All takers together weigh as much as one runner: they differ in name only. */
	bool takes = takers && draw_locked(sim, runners + 1) == 0;
	uint64_t nth = draw_locked(sim, takes ? takers : runners);
	for (unsigned i = 0; i < sim->config.workers; i++) {
		const struct tw__sim_worker *worker = &sim->workers[i];
		bool can = takes ? can_take(sim, worker, now_ns) : can_run(worker, now_ns);
		if (can && nth-- == 0)
			return takes ? sim_take(sim, i) : sim_run(sim, i);
	}
	return 0;
}

/* ---------------------------------------------------------------------- clock */

/* NULL: the service is closed. */
static struct tw__clock_listener *driver_of(const tw_sim *sim)
{
	return tw__clock_manual_first(sim->clock);
}

static uint64_t next_turn_ns(const tw_sim *sim)
{
	struct tw__clock_listener *driver = driver_of(sim);
	uint64_t next_ns = driver ? driver->next_ns(driver) : UINT64_MAX;
	return next_ns < UINT64_MAX - sim->turn_late_ns ? next_ns + sim->turn_late_ns : next_ns;
}

static uint64_t next_move_ns(const tw_sim *sim)
{
	uint64_t next_ns = UINT64_MAX;
	for (unsigned i = 0; i < sim->config.workers; i++) {
		const struct tw__sim_worker *worker = &sim->workers[i];
		if ((worker->holds || tw_load_relaxed(&sim->waiting)) && worker->ready_ns < next_ns)
			next_ns = worker->ready_ns;
	}
	return next_ns;
}

uint64_t tw__sim_next_ns(tw_sim *sim)
{
	uint64_t turn_ns = next_turn_ns(sim), move_ns = next_move_ns(sim);
	return turn_ns < move_ns ? turn_ns : move_ns;
}

static int go_on(tw_sim *sim, uint64_t limit_ns)
{
	uint64_t turn_ns = next_turn_ns(sim), move_ns = next_move_ns(sim);
	uint64_t next_ns = turn_ns < move_ns ? turn_ns : move_ns;
	if (next_ns > limit_ns || next_ns == UINT64_MAX)
		return 0;
	if (next_ns > tw_clock_now(sim->clock)) {
		tw_clock_manual_set(sim->clock, next_ns);
		sim->steps = 0;
	}
	if (turn_ns > next_ns)
		return tw__sim_move_worker(sim, next_ns);
	struct tw__clock_listener *driver = driver_of(sim);
	driver->moved(driver);
	sim->turn_late_ns = draw_lateness(sim);
	tw__sim_event(sim, TW_SIM_TURN, UINT32_MAX, 0);
	return 1;
}

int tw__sim_step(tw_sim *sim, uint64_t limit_ns)
{
	if (sim->steps++ >= sim->config.max_steps) {
		sim->steps = 0;
		return -ELOOP;
	}
	int r = tw__sim_move_worker(sim, tw_clock_now(sim->clock));
	return r ? r : go_on(sim, limit_ns);
}
