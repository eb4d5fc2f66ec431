/*
 * The service under simulation: random programs that schedule, cancel, move, group and close, from
 * outside and from callbacks, on a pool of a drawn size, late or refusing or neither. A ledger of
 * each timer says what may happen to it; what happens must be that (G1 to G4, G6 with one worker),
 * whatever the order; and the same seed must give the same order.
 */
#include <errno.h>

#include "test/support/rig.h"
#include "test/support/seeds.h"
#include "test/support/current.h"

TestSuite(sim_service, .timeout = 120);

enum { TIMERS = 96, GROUPS = 4, STEPS = 250 };

struct entry {
	bool alive, running;
	bool barred; /* cancelled, by itself or with its group: must not run any more */
	bool moved;  /* has no place in the order (G6) */
	tw_timer timer;
	int group; /* -1: none */
	uint64_t turn, delay_ns, due_ns;
	uint64_t period_ns, runs_left;
	uint64_t runs;
};

static struct program {
	tw_sim *sim;
	tw_service *service;
	struct entry entries[TIMERS];
	tw_group groups[GROUPS];
	uint64_t turns, scheduled, released;
	uint32_t workers;
	bool punctual; /* nobody is late, and nothing is refused */
	bool closing;
} p;

static uint64_t below(uint64_t bound)
{
	return tw_sim_random(p.sim, bound);
}

static void note(const char what, const struct entry *e)
{
	tell_fact((uint64_t)what << 32 | (uint64_t)(e - p.entries));
}

/* ------------------------------------------------------------------- callbacks */

static void act(void);

/* Nobody who should have come before still waits. */
static void check_order(const struct entry *e)
{
	for (const struct entry *o = p.entries; o < p.entries + TIMERS; o++) {
		bool waits = o->alive && !o->barred && !o->running && !o->moved;
		sim_assert(!waits || o->delay_ns != e->delay_ns || o->turn >= e->turn,
			   "came before its turn (G6)");
	}
}

static void check_run(const struct entry *e)
{
	uint64_t now_ns = tw_service_now(tw_sim_service(p.sim));
	sim_assert(e->alive && !e->running, "ran after its end, or beside itself");
	sim_assert(!e->barred, "ran though it was cancelled (G4)");
	sim_assert(!current_run().closing || p.closing, "tw_closing");
	sim_assert(p.closing || now_ns >= e->due_ns, "ran early (G1)");
	sim_assert(!p.punctual || e->period_ns || now_ns <= e->due_ns + 2 * MS, "ran late (G2)");
	if (p.workers == 1 && !e->moved && !p.closing)
		check_order(e);
}

static void run_entry(void *arg)
{
	struct entry *e = arg;
	note('r', e);
	check_run(e);
	e->running = true;
	e->runs++;
	for (uint64_t i = below(3); i > 0; i--)
		act();
	e->running = false;
	if (e->period_ns)
		e->due_ns += e->period_ns;
	if (e->runs_left)
		e->runs_left--;
}

static void release_entry(void *arg, enum tw_fate fate)
{
	struct entry *e = arg;
	note('e', e);
	sim_assert(e->alive && !e->running, "released twice, or in its run");
	sim_assert(fate != TW_FATE_FIRED || e->runs > 0, "fired without a run");
	sim_assert(fate != TW_FATE_FIRED || e->runs_left == 0 || p.closing,
		   "a series ended before its time");
	sim_assert(fate != TW_FATE_CANCELLED || e->barred, "cancelled by nobody");
	sim_assert(fate != TW_FATE_DROPPED || p.closing, "dropped by nobody");
	e->alive = false;
	p.released++;
}

/* ----------------------------------------------------------------------- steps */

static void schedule_one(void)
{
	struct entry *e = p.entries;
	while (e < p.entries + TIMERS && e->alive)
		e++;
	if (e == p.entries + TIMERS)
		return;
	uint64_t delay_ns = below(4) ? (1 + below(5)) * 3 * MS : below(2000 * MS);
	*e = (struct entry){
	    .alive = true, .turn = p.turns++, .group = (int)below(2 * GROUPS) - GROUPS};
	struct tw_period period = rate_of(delay_ns, 1 + below(20 * MS), 1 + below(5));
	struct tw_task task = {
	    .size = sizeof task, .fn = run_entry, .arg = e, .release = release_entry};
	if (below(5) == 0) {
		e->period_ns = period.period_ns;
		e->runs_left = period.count;
		e->moved = true;
		task.period = &period;
	} else {
		task.when_ns = delay_ns;
		e->delay_ns = delay_ns;
	}
	if (e->group >= 0)
		task.group = p.groups[e->group];
	e->due_ns = tw_service_now(tw_sim_service(p.sim)) + delay_ns;
	int r = tw_schedule_task(p.service, &task, &e->timer);
	if (p.closing) {
		sim_eq(r, -ESHUTDOWN);
		e->alive = false;
		return;
	}
	sim_eq(r, 0);
	p.scheduled++;
}

static void cancel_one(struct entry *e)
{
	bool was_alive = e->alive, was_running = e->running, was_barred = e->barred;
	if (was_alive && !was_running)
		e->barred = true; /* first: its release is called inside */
	int r = tw_cancel(p.service, e->timer);
	if (!was_alive)
		sim_eq(r, TW_GONE);
	else if (was_running)
		sim_eq(r, TW_RUNNING);
	else
		sim_eq(r, was_barred ? TW_GONE : TW_CANCELLED);
	if (was_running)
		e->barred = true;
}

static void reset_one(struct entry *e)
{
	if (p.closing || (e->running && e->period_ns))
		return;
	uint64_t delay_ns = below(40 * MS),
		 due_ns = tw_service_now(tw_sim_service(p.sim)) + delay_ns;
	int r = tw_reset(p.service, e->timer, delay_ns);
	if (!e->alive || (e->barred && !e->running)) {
		sim_eq(r, -ENOENT);
	} else if (e->barred) {
		sim_eq(r, -ECANCELED);
	} else {
		sim_eq(r, 0);
		e->due_ns = due_ns;
		e->moved = true;
	}
}

static void cancel_group(int g)
{
	for (struct entry *e = p.entries; e < p.entries + TIMERS; e++)
		e->barred |= e->alive && e->group == g;
	sim_eq(tw_group_cancel(p.service, p.groups[g]), 0);
}

static void act(void)
{
	struct entry *e = &p.entries[below(TIMERS)];
	switch (below(10)) {
	case 0:
	case 1:
		cancel_one(e);
		break;
	case 2:
	case 3:
		reset_one(e);
		break;
	case 4:
		if (below(6) == 0)
			cancel_group((int)below(GROUPS));
		break;
	default:
		schedule_one();
		break;
	}
}

/* ------------------------------------------------------------------- a program */

static void open_program(uint64_t seed)
{
	struct tw_service_config service = {.size = sizeof service, .buckets = 64};
	struct tw_sim_config cfg = {.size = sizeof cfg, .seed = seed, .service = &service};
	uint64_t random = seed;
	p = (struct program){.workers = 1 + (uint32_t)random_below(&random, 5)};
	cfg.workers = p.workers;
	if (random_below(&random, 2))
		cfg.max_late_ns = random_below(&random, 10 * MS);
	if (random_below(&random, 2))
		cfg.refuse_percent = (uint32_t)random_below(&random, 60);
	p.punctual = !cfg.max_late_ns && !cfg.refuse_percent;
	sim_eq(tw_sim_create(&p.sim, &cfg), 0);
	p.service = tw_sim_service(p.sim);
	for (int i = 0; i < GROUPS; i++)
		sim_eq(tw_group_create(&p.groups[i], p.service), 0);
}

static void end_program(void)
{
	unsigned how = (unsigned)below(3);
	p.closing = how < 2;
	sim_eq(p.closing ? tw_sim_close(p.sim, how ? TW_CLOSE_RUN : TW_CLOSE_DROP)
			 : tw_sim_run_until_idle(p.sim, TW_FOREVER),
	       0);
	struct tw_service_stats stats = stats_of(p.service);
	for (struct entry *e = p.entries; e < p.entries + TIMERS; e++)
		sim_assert(!e->alive, "has not come to its end");
	sim_eq(p.released, p.scheduled);
	sim_eq(stats.scheduled, p.scheduled);
	sim_eq(stats.fired + stats.cancelled + stats.dropped, p.scheduled);
	sim_eq(stats.pending, 0);
	char why[200] = "";
	sim_assert(tw_service_validate(p.service, why, sizeof why) == 0, why);
}

static uint64_t run_program(uint64_t seed)
{
	open_program(seed);
	for (int i = 0; i < STEPS; i++) {
		if (below(3))
			act();
		else
			sim_go_on(p.sim);
	}
	end_program();
	uint64_t trace = trace_with_facts(p.sim);
	sim_eq(tw_sim_destroy(p.sim), 0);
	return trace;
}

Test(sim_service, keeps_its_promises_in_any_order_and_the_same_seed_goes_the_same_way)
{
	for_each_seed_twice(300, run_program);
}
