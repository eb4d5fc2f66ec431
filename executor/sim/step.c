/*
 * What happens next in a simulation. At each instant the service is driven; then the workers move,
 * one drawn step at a time, until none can; then the clock moves. A worker takes a ticket, and
 * carries it out in a later step: between the two it looks like a thread that is not scheduled.
 */
#include "executor/sim/internal.h"

#include "mpsc/base/reserve.h"
#include "wheel/run/run.h"

/* ----------------------------------------------------------------------- queues */

static unsigned queue_of(const struct tw__sim_item *item)
{
	return item->batch ? TW__SIM_BATCHES : TW__SIM_TASKS;
}

int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item)
{
	TW_ASSERT_LOCKED(&sim->lock);
	struct tw__sim_queue *queue = &sim->queues[queue_of(item)];
	struct tw__sim_item *queued = tw__alloc(sizeof *queued);
	if (!queued)
		return -ENOMEM;
	*queued = *item;
	queued->number = sim->numbered;
	sim->numbered += item->tickets;
	*(queue->first ? &queue->last->next : &queue->first) = queued;
	queue->last = queued;
	return 0;
}

static void take_ticket(struct tw__sim_queue *queue, struct tw__sim_item *out)
{
	struct tw__sim_item *first = queue->first;
	*out = *first;
	if (++first->taken < first->tickets)
		return;
	queue->first = first->next;
	tw__free(first);
}

void tw__sim_drop(tw_sim *sim, unsigned queue)
{
	struct tw__sim_item item;
	for (unsigned i = 0; i < sim->config.workers; i++) {
		struct tw__sim_worker *worker = &sim->workers[i];
		if (!worker->holds || queue_of(&worker->held) != queue)
			continue;
		worker->holds = false;
		tw_run_return(worker->held.batch);
	}
	while (sim->queues[queue].first) {
		take_ticket(&sim->queues[queue], &item);
		tw_run_return(item.batch);
	}
}

/* 0 .. bound - 1. The lock is held. */
static uint64_t draw(tw_sim *sim, uint64_t bound)
{
	TW_ASSERT_LOCKED(&sim->lock);
	return bound > 1 ? tw__random_upto(&sim->random, bound - 1) : 0;
}

/* A drawn one that is not empty. One worker takes all in the order of handing over. */
static struct tw__sim_queue *draw_queue(tw_sim *sim)
{
	struct tw__sim_queue *tasks = &sim->queues[TW__SIM_TASKS];
	struct tw__sim_queue *batches = &sim->queues[TW__SIM_BATCHES];
	if (!tasks->first || !batches->first)
		return tasks->first ? tasks : batches;
	uint64_t task = tasks->first->number + tasks->first->taken;
	uint64_t run = batches->first->number + batches->first->taken;
	bool takes_task = sim->config.workers == 1 ? task < run : draw(sim, 2) == 0;
	return takes_task ? tasks : batches;
}

/* ---------------------------------------------------------------------- submits */

/*
 * In a close with TW_CLOSE_RUN: the runs, on one worker. If one cannot begin, the close becomes a
 * DROP, since it would offer that run without end.
 */
static void run_here(tw_sim *sim, tw_batch *batch, size_t n)
{
	int outer = sim->current;
	for (uint64_t number = sim->numbered - n; n; n--, number++) {
		sim->current = 0;
		int r = sim->failed ? sim->failed : tw_run_one(batch);
		if (r < 0) {
			sim->failed = r;
			tw_run_return(batch);
		}
		pthread_mutex_lock(&sim->lock);
		tw__sim_event(sim, r == 1 ? TW_SIM_RAN : TW_SIM_SKIPPED, 0, number);
		pthread_mutex_unlock(&sim->lock);
	}
	sim->current = outer;
	if (sim->failed)
		tw_service_close(sim->service, TW_CLOSE_DROP, 0);
}

int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_sim *sim = (tw_sim *)self;
	const struct tw__sim_item item = {.batch = batch, .tickets = (unsigned)n};
	pthread_mutex_lock(&sim->lock);
	bool closing = sim->closing;
	int r = 0;
	if (closing)
		sim->numbered += n;
	else if (sim->config.refuse_percent && draw(sim, 100) < sim->config.refuse_percent)
		r = -EAGAIN;
	else
		r = tw__sim_enqueue(sim, &item);
	tw__sim_event(sim, r ? TW_SIM_REFUSED : TW_SIM_HANDED, UINT32_MAX, n);
	pthread_mutex_unlock(&sim->lock);
	if (closing)
		run_here(sim, batch, n);
	return r;
}

/* ---------------------------------------------------------------------- workers */

static uint64_t draw_lateness(tw_sim *sim)
{
	return draw(sim, sim->config.max_late_ns + 1);
}

/* The lock is held. */
static bool is_waiting(const tw_sim *sim)
{
	return sim->queues[TW__SIM_TASKS].first || sim->queues[TW__SIM_BATCHES].first;
}

/* Tickets of the same batch before this one, that others hold. */
static unsigned overtaken(const tw_sim *sim, const struct tw__sim_item *held)
{
	unsigned count = 0;
	for (unsigned i = 0; i < sim->config.workers; i++)
		count += sim->workers[i].holds && sim->workers[i].held.batch == held->batch &&
			 sim->workers[i].held.taken < held->taken;
	return count;
}

/* -ENOMEM: the ticket is not used up. */
static int sim_run(tw_sim *sim, unsigned index)
{
	struct tw__sim_worker *worker = &sim->workers[index];
	int r = 1;
	sim->current = (int)index;
	sim->spent_ns = 0;
	if (worker->held.batch) {
		r = tw__run_nth(worker->held.batch, overtaken(sim, &worker->held));
	} else {
		void *former = tw_context_get();
		tw_context_set(worker->held.context);
		worker->held.fn(worker->held.arg);
		tw_context_set(former);
	}
	sim->current = -1;
	if (r < 0)
		return r;
	worker->holds = false;
	worker->ready_ns = tw_clock_now(sim->clock) + sim->spent_ns;
	pthread_mutex_lock(&sim->lock);
	tw__sim_event(sim, r ? TW_SIM_RAN : TW_SIM_SKIPPED, index,
		      worker->held.number + worker->held.taken);
	pthread_mutex_unlock(&sim->lock);
	return 1;
}

/* The lock is held. */
static void sim_take(tw_sim *sim, unsigned index)
{
	struct tw__sim_worker *worker = &sim->workers[index];
	take_ticket(draw_queue(sim), &worker->held);
	worker->holds = true;
	worker->ready_ns = tw_clock_now(sim->clock) + draw_lateness(sim);
	tw__sim_event(sim, TW_SIM_TAKEN, index, worker->held.number + worker->held.taken);
}

int tw__sim_move_worker(tw_sim *sim, uint64_t now_ns)
{
	pthread_mutex_lock(&sim->lock);
	bool waiting = is_waiting(sim), takes = false;
	uint64_t runners = 0, takers = 0, nth = 0;
	for (unsigned i = 0; i < sim->config.workers; i++) {
		bool ready = sim->workers[i].ready_ns <= now_ns;
		runners += ready && sim->workers[i].holds;
		takers += ready && !sim->workers[i].holds && waiting;
	}
	unsigned i = 0;
	if (runners + takers) {
		/* takers differ in name only: together they weigh as much as one runner */
		takes = takers && draw(sim, runners + 1) == 0;
		nth = draw(sim, takes ? takers : runners);
		while (sim->workers[i].holds == takes || sim->workers[i].ready_ns > now_ns || nth--)
			i++;
		if (takes)
			sim_take(sim, i);
	}
	pthread_mutex_unlock(&sim->lock);
	return runners + takers == 0 ? 0 : takes ? 1 : sim_run(sim, i);
}

/* ------------------------------------------------------------------------ clock */

static uint64_t next_turn_ns(tw_sim *sim)
{
	uint64_t next_ns;
	if (tw_service_next_expiry(sim->service, &next_ns)) /* it is closed */
		return UINT64_MAX;
	return next_ns < UINT64_MAX - sim->turn_late_ns ? next_ns + sim->turn_late_ns : next_ns;
}

static uint64_t next_move_ns(tw_sim *sim)
{
	uint64_t next_ns = UINT64_MAX;
	pthread_mutex_lock(&sim->lock);
	bool waiting = is_waiting(sim);
	pthread_mutex_unlock(&sim->lock);
	for (unsigned i = 0; i < sim->config.workers; i++) {
		const struct tw__sim_worker *worker = &sim->workers[i];
		if ((worker->holds || waiting) && worker->ready_ns < next_ns)
			next_ns = worker->ready_ns;
	}
	return next_ns;
}

static int drive(tw_sim *sim)
{
	int r = tw_service_advance(sim->service, TW_NO_LIMIT);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sim->lock);
	sim->turn_late_ns = draw_lateness(sim);
	tw__sim_event(sim, TW_SIM_TURN, UINT32_MAX, 0);
	pthread_mutex_unlock(&sim->lock);
	return 1;
}

int tw__sim_step(tw_sim *sim, uint64_t limit_ns)
{
	if (sim->steps++ >= sim->config.max_steps) {
		sim->steps = 0;
		return -ELOOP;
	}
	int r = tw__sim_move_worker(sim, tw_clock_now(sim->clock));
	if (r)
		return r;
	uint64_t turn_ns = next_turn_ns(sim), move_ns = next_move_ns(sim);
	uint64_t next_ns = turn_ns < move_ns ? turn_ns : move_ns;
	if (next_ns > limit_ns)
		return next_ns == UINT64_MAX ? 0 : TW__SIM_LATER;
	if (next_ns > tw_clock_now(sim->clock)) {
		tw_clock_manual_set(sim->clock, next_ns);
		sim->steps = 0;
	}
	return turn_ns > next_ns ? tw__sim_move_worker(sim, next_ns) : drive(sim);
}
