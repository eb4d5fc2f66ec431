/*
 * What happens next. At each instant the services are driven, in a drawn order. Then the workers
 * move, one drawn step at a time, until none can. Then the clock moves to the next instant at which
 * something happens.
 *
 * A worker moves in two steps, as in the pool: it takes a run (of a batch: it claims the next
 * entry), and later carries it out. Between the two the others may move as far as they can. To them
 * this looks like a thread that is not scheduled.
 */

#include "executor/sim/step.h"
#include "wheel/run/watchdog.h"
#include "wheel/run/run.h"
#include "wheel/run/work.h"
#include "wheel/service/clock_manual.h"
#include "executor/sim/queue.h"

/* -------------------------------------------------------------------- workers */

static uint64_t draw_lateness(tw_sim *sim)
{
	return tw__sim_draw(sim, sim->config.max_late_ns + 1);
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
	if (!tw__sim_take(sim, run))
		return 0;
	if (run->item.batch && !tw__batch_is_work(run->item.batch))
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
	tw__running_none(local);
	tw__batch_finish(run->item.batch, 1);
	return ran;
}

static bool carry_out(const struct tw__sim_run *run, struct tw__local *local)
{
	if (!run->item.batch)
		run->item.fn(run->item.arg);
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

/* Draws one of the workers that `can`; -1: none. */
static int move_one(tw_sim *sim, uint64_t now_ns)
{
	unsigned runners = 0, takers = 0;
	for (unsigned i = 0; i < sim->config.workers; i++) {
		runners += can_run(&sim->workers[i], now_ns);
		takers += can_take(sim, &sim->workers[i], now_ns);
	}
	if (runners + takers == 0)
		return 0;
	/* All takers together weigh as much as one runner: they differ in name only. */
	bool takes = takers && tw__sim_draw(sim, runners + 1) == 0;
	uint64_t nth = tw__sim_draw(sim, takes ? takers : runners);
	for (unsigned i = 0; i < sim->config.workers; i++) {
		const struct tw__sim_worker *worker = &sim->workers[i];
		bool can = takes ? can_take(sim, worker, now_ns) : can_run(worker, now_ns);
		if (can && nth-- == 0)
			return takes ? sim_take(sim, i) : sim_run(sim, i);
	}
	return 0;
}

int tw__sim_step_workers(tw_sim *sim)
{
	return move_one(sim, UINT64_MAX);
}

/* ---------------------------------------------------------------------- clock */

/* Begins with a drawn one: so of two services each comes first at times. */
static void drive_services(tw_sim *sim)
{
	unsigned count = 0;
	for (struct tw__clock_listener *l = tw__clock_manual_first(sim->clock); l; l = l->next)
		count++;
	struct tw__clock_listener *l = tw__clock_manual_first(sim->clock);
	for (uint64_t skip = tw__sim_draw(sim, count); skip > 0; skip--)
		l = l->next;
	for (; count > 0; count--) {
		struct tw__clock_listener *next = l->next;
		l->moved(l);
		l = next ? next : tw__clock_manual_first(sim->clock);
	}
}

static uint64_t next_turn_ns(tw_sim *sim)
{
	uint64_t next_ns = UINT64_MAX;
	for (struct tw__clock_listener *l = tw__clock_manual_first(sim->clock); l; l = l->next) {
		uint64_t ns = l->next_ns(l);
		next_ns = ns < next_ns ? ns : next_ns;
	}
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

static void set_clock(tw_sim *sim, uint64_t now_ns)
{
	if (now_ns <= tw_clock_now(sim->clock))
		return;
	tw_clock_manual_set(sim->clock, now_ns);
	sim->steps = 0;
}

static int go_on(tw_sim *sim, uint64_t limit_ns)
{
	uint64_t turn_ns = next_turn_ns(sim), move_ns = next_move_ns(sim);
	uint64_t next_ns = turn_ns < move_ns ? turn_ns : move_ns;
	if (next_ns > limit_ns || next_ns == UINT64_MAX)
		return 0;
	set_clock(sim, next_ns);
	if (turn_ns > next_ns)
		return move_one(sim, next_ns);
	drive_services(sim);
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
	int r = move_one(sim, tw_clock_now(sim->clock));
	return r ? r : go_on(sim, limit_ns);
}
