/*
 * Strands under simulation: random programs that submit, cancel, close and destroy, from outside,
 * from tasks and from releases, on strands over the simulated workers and over other strands. A
 * ledger says of each task what may happen to it and what must have come before.
 */
#include <errno.h>

#include "test/support/rig.h"
#include "test/support/seeds.h"

TestSuite(sim_strand, .timeout = 120);

enum { ENTRIES = 120, STRANDS = 5, LIVES = 24, STEPS = 220 };

enum kind { AT_ONCE, DELAYED, SERIES, TIMER };

/* One strand from create to destroy. */
struct life {
	tw_strand *strand;
	const struct life *base; /* another strand; NULL: the workers */
	bool closed, destroyed;
	bool busy; /* something of it runs, or of a strand on it */
};

struct entry {
	enum kind kind;
	struct life *life;
	bool alive, running;
	bool barred; /* cancelled, or its strand was closed: must not run any more */
	/* a timer whose strand was closed: must not run, and ends when it is due */
	bool ends_unrun;
	uint64_t turn, submitted_ns, delay_ns, due_ns, period_ns;
	uint64_t runs;
	tw_strand_task_id task;
	tw_timer timer;
};

static struct program {
	tw_sim *sim;
	tw_service *service;
	struct life lives[LIVES];
	struct life *strands[STRANDS];
	struct entry entries[ENTRIES];
	int lived;
	uint64_t turns, submitted, released;
	bool punctual; /* nobody is late, and nothing is refused */
} p;

static void note(const char what, const struct entry *e)
{
	tell_fact((uint64_t)what << 32 | (uint64_t)(e - p.entries));
}

/* ----------------------------------------------------------------------- runs */

static void act(void);
static void cancel_one(struct entry *e);

static uint64_t tick_of(uint64_t due_ns)
{
	return (due_ns + MS - 1) / MS;
}

/*
 * Whether o, which waits, should have come before e, which begins: both of one strand. Delayed
 * tasks come tick by tick.
 */
static bool goes_before(const struct entry *o, const struct entry *e)
{
	if (o->kind == SERIES || e->kind == SERIES)
		return false;
	if (o->kind == AT_ONCE)
		return e->kind == AT_ONCE ? o->turn < e->turn : o->submitted_ns < e->due_ns;
	if (o->kind == DELAYED && e->kind == DELAYED)
		return tick_of(o->due_ns) < tick_of(e->due_ns) ||
		       (o->due_ns == e->due_ns && o->turn < e->turn);
	return o->kind == TIMER && e->kind == TIMER && o->delay_ns == e->delay_ns &&
	       o->turn < e->turn;
}

static void check_order(const struct entry *e)
{
	for (const struct entry *o = p.entries; o < p.entries + ENTRIES; o++) {
		bool waits =
		    o->alive && !o->barred && !o->ends_unrun && !o->running && o->life == e->life;
		sim_assert(!waits || !goes_before(o, e), "a task came before its turn");
	}
}

static void check_run(const struct entry *e)
{
	uint64_t now_ns = tw_service_now(tw_sim_service(p.sim));
	sim_assert(e->alive && !e->running, "ran after its end, or beside itself");
	sim_assert(!e->barred && !e->ends_unrun, "ran though it was cancelled");
	sim_assert(now_ns >= e->due_ns, "ran early");
	sim_assert(!p.punctual || now_ns <= e->due_ns + 2 * MS, "ran late");
	sim_assert(tw_strand_current() == e->life->strand, "ran elsewhere");
	for (const struct life *life = e->life; life; life = life->base)
		sim_assert(!life->busy, "two of one strand overlap");
	check_order(e);
}

static void mark_busy(const struct life *life, bool busy)
{
	for (; life; life = life->base)
		p.lives[life - p.lives].busy = busy;
}

static void run_entry(void *arg)
{
	struct entry *e = arg;
	note('r', e);
	check_run(e);
	e->running = true;
	e->runs++;
	mark_busy(e->life, true);
	for (uint64_t i = drawn_below(3); i > 0; i--)
		act();
	mark_busy(e->life, false);
	e->running = false;
	e->due_ns += e->period_ns;
}

static void release_entry(void *arg, enum tw_fate fate)
{
	struct entry *e = arg;
	note('e', e);
	sim_assert(e->alive && !e->running, "released twice, or in its run");
	if (fate == TW_FATE_FIRED)
		sim_assert(e->runs == 1 && e->kind != SERIES, "fired without a run");
	else
		sim_assert(fate == TW_FATE_CANCELLED && (e->barred || e->ends_unrun),
			   "cancelled by nobody");
	if (drawn_below(4) == 0)
		cancel_one(&p.entries[drawn_below(ENTRIES)]);
	e->alive = false;
	p.released++;
}

/* ---------------------------------------------------------------------- steps */

static int submit_task(struct entry *e)
{
	struct tw_period period = {.size = sizeof period,
				   .first_ns = e->delay_ns,
				   .period_ns = e->period_ns,
				   .missed = TW_MISSED_BURST};
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = run_entry,
				      .arg = e,
				      .delay_ns = e->period_ns ? 0 : e->delay_ns,
				      .period = e->period_ns ? &period : NULL,
				      .release = release_entry};
	return tw_strand_submit_task(e->life->strand, &spec, &e->task);
}

static int schedule_timer(struct entry *e)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = run_entry,
			       .arg = e,
			       .when_ns = e->delay_ns,
			       .release = release_entry,
			       .executor = tw_strand_executor(e->life->strand)};
	return tw_schedule_task(p.service, &task, &e->timer);
}

static void submit_one(void)
{
	struct entry *e = p.entries;
	while (e < p.entries + ENTRIES && e->alive)
		e++;
	if (e == p.entries + ENTRIES)
		return;
	*e = (struct entry){
	    .alive = true, .life = p.strands[drawn_below(STRANDS)], .turn = p.turns++};
	e->kind = drawn_below(2) ? AT_ONCE : (enum kind)(1 + drawn_below(3));
	if (e->kind != AT_ONCE)
		e->delay_ns =
		    1 + drawn_below(2) * drawn_below(50 * MS) + (1 + drawn_below(4)) * 2 * MS;
	if (e->kind == SERIES)
		e->period_ns = 1 + drawn_below(20 * MS);
	e->submitted_ns = tw_service_now(tw_sim_service(p.sim));
	e->due_ns = e->submitted_ns + e->delay_ns;
	bool refused = e->life->closed;
	if (e->kind == TIMER) {
		e->ends_unrun = refused;
		sim_eq(schedule_timer(e), 0);
	} else {
		sim_eq(submit_task(e), refused ? -ESHUTDOWN : 0);
		sim_assert(!refused || e->task.id == 0, "a refused task has a handle");
		e->alive = !refused;
	}
	p.submitted += e->alive;
}

/* A task that has been taken from it, and has not been reported yet, may be found or not. */
static void cancel_one(struct entry *e)
{
	if (!e->life || (e->kind != TIMER && e->life->destroyed))
		return;
	struct entry was = *e;
	/* first: its release is called inside */
	e->barred |= e->alive && (!e->running || e->kind == SERIES);
	int r = e->kind == TIMER ? tw_cancel(p.service, e->timer)
				 : tw_strand_cancel(e->life->strand, e->task);
	if (!was.alive)
		sim_eq(r, TW_GONE);
	else if (was.running)
		sim_eq(r, TW_RUNNING);
	else if (!was.barred && !was.ends_unrun && !(was.runs && !was.period_ns))
		sim_eq(r, TW_CANCELLED);
}

/* Its tasks are barred; timers end when they are due. */
static void mark_closed(struct life *life)
{
	life->closed = true;
	for (struct entry *e = p.entries; e < p.entries + ENTRIES; e++) {
		if (!e->alive || e->life != life || e->running)
			continue;
		e->barred |= e->kind != TIMER;
		e->ends_unrun |= e->kind == TIMER;
	}
	for (struct entry *e = p.entries; e < p.entries + ENTRIES; e++)
		e->barred |= e->alive && e->life == life && e->running && e->kind == SERIES;
}

static void open_strand(int slot)
{
	struct life *life = p.strands[slot] = &p.lives[p.lived++];
	/* the first two stay to the end */
	life->base = slot > 1 && drawn_below(3) == 0 ? p.strands[drawn_below(2)] : NULL;
	sim_eq(tw_strand_create(&life->strand, p.service,
				life->base ? tw_strand_executor(life->base->strand) : NULL),
	       0);
}

static void end_strand(int slot)
{
	struct life *life = p.strands[slot];
	mark_closed(life);
	if (drawn_below(2) || slot < 2 || p.lived == LIVES) {
		bool inside = tw_strand_current() == life->strand;
		sim_eq(tw_strand_close(life->strand, 0), inside ? -ETIMEDOUT : 0);
		return;
	}
	life->destroyed = true; /* first: releases are called inside */
	open_strand(slot);
	sim_eq(tw_strand_destroy(life->strand), 0);
}

static void act(void)
{
	switch (drawn_below(12)) {
	case 0:
	case 1:
	case 2:
		cancel_one(&p.entries[drawn_below(ENTRIES)]);
		break;
	case 3:
		if (drawn_below(12) == 0)
			end_strand((int)drawn_below(STRANDS));
		break;
	default:
		submit_one();
		break;
	}
}

/* ------------------------------------------------------------------ a program */

static void open_program(uint64_t seed)
{
	struct tw_sim_config cfg = {.size = sizeof cfg, .seed = seed};
	uint64_t random = seed;
	p = (struct program){0};
	cfg.workers = 1 + (uint32_t)random_below(&random, 5);
	cfg.max_late_ns = random_below(&random, 2) * random_below(&random, 5 * MS);
	cfg.refuse_percent = (uint32_t)(random_below(&random, 2) * random_below(&random, 50));
	p.punctual = !cfg.max_late_ns && !cfg.refuse_percent;
	sim_eq(tw_sim_create(&p.sim, &cfg), 0);
	p.service = tw_sim_service(p.sim);
	for (int i = 0; i < STRANDS; i++)
		open_strand(i);
}

static void end_program(void)
{
	sim_assert(tw_sim_run(p.sim, 100 * MS) >= 0, "run");
	sim_eq(tw_sim_destroy(p.sim), -EBUSY);
	for (int i = STRANDS - 1; i >= 0; i--) {
		mark_closed(p.strands[i]);
		sim_eq(tw_strand_close(p.strands[i]->strand, 0), 0);
	}
	sim_eq(tw_sim_run(p.sim, TW_FOREVER), 0);
	for (const struct entry *e = p.entries; e < p.entries + ENTRIES; e++)
		sim_assert(!e->alive, "has not come to its end");
	sim_eq(p.released, p.submitted);
	for (int i = STRANDS - 1; i >= 0; i--)
		sim_eq(tw_strand_destroy(p.strands[i]->strand), 0);
}

static uint64_t run_program(uint64_t seed)
{
	open_program(seed);
	for (int i = 0; i < STEPS; i++) {
		if (drawn_below(3))
			act();
		else
			sim_go_on(p.sim);
	}
	end_program();
	uint64_t trace = trace_with_facts(p.sim);
	sim_eq(tw_sim_destroy(p.sim), 0);
	return trace;
}

Test(sim_strand, keeps_its_promises_in_any_order_and_the_same_seed_goes_the_same_way)
{
	for_each_seed_twice(200, run_program);
}
