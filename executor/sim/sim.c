/*
 * A simulation: an executor over one service with a manual clock and a manual drive. Calls the
 * service's public functions, and tw__run_nth for one ticket of a batch.
 *
 * At each instant the service is driven; then the workers move, one drawn worker at a time, until
 * none can; then the clock moves. A worker takes a ticket, and carries it out in a later move:
 * between the two it looks like a thread that is not scheduled. Tickets are taken in the order in
 * which they were handed over.
 *
 * All calls are made on one thread, except for the executor's submit. The lock is for that, and is
 * released while the service or a callback runs.
 */
#include <errno.h>
#include <stdlib.h>

#include "executor/base/line.h"
#include "mpsc/base/entry.h"
#include "mpsc/base/random.h"
#include "mpsc/base/reserve.h"
#include "tickwheel/sim.h"
#include "wheel/run/work.h"

enum { WORKERS_MAX = 1024 };

struct worker {
	tw_batch *batch;   /* of the ticket that it holds; NULL: none */
	uint64_t number;   /* the ticket's, over all */
	uint64_t ready_ns; /* carries its ticket out, or takes the next, not before this */
};

struct tw_sim {
	tw_executor executor; /* first */
	tw_clock *clock;
	tw_service *service;
	struct tw_sim_config config; /* complete */
	struct tw__origin origin;
	bool stepping;
	bool closing; /* with TW_CLOSE_RUN */
	int failed;   /* of that close: -ENOMEM */

	pthread_mutex_t lock;
	struct tw__line line; /* batches and works with tickets that nobody has taken */
	uint32_t head_left;   /* tickets left of the first, if some are taken */
	uint64_t taken;       /* tickets so far */
	uint64_t random, trace;

	struct worker *workers;
	struct worker *current; /* runs the callback, or NULL */
	uint64_t turn_late_ns;  /* drawn for the next turn */
	uint64_t steps;         /* at this instant */
};

/* ---------------------------------------------------------------------- trace */

/* The order of words counts. */
static void mix(tw_sim *sim, uint64_t word)
{
	sim->trace = tw__random_mix(sim->trace ^ word) + UINT64_C(0x9e3779b97f4a7c15);
}

/* worker NULL: none's. */
static void sim_event(tw_sim *sim, enum tw_sim_event_kind kind, const struct worker *worker,
		      uint64_t value)
{
	TW_ASSERT_LOCKED(&sim->lock);
	struct tw_sim_event event = {.size = sizeof event,
				     .at_ns = tw_clock_now(sim->clock),
				     .kind = kind,
				     .worker =
					 worker ? (uint32_t)(worker - sim->workers) : UINT32_MAX,
				     .value = value};
	mix(sim, event.at_ns);
	mix(sim, (uint64_t)kind << 32 | event.worker);
	mix(sim, value);
	if (sim->config.on_event)
		sim->config.on_event(sim->config.event_arg, &event);
}

uint64_t tw_sim_trace(const tw_sim *sim)
{
	return sim ? sim->trace : 0;
}

/* 0 .. bound - 1 */
static uint64_t draw(tw_sim *sim, uint64_t bound)
{
	TW_ASSERT_LOCKED(&sim->lock);
	return bound > 1 ? tw__random_upto(&sim->random, bound - 1) : 0;
}

tw_service *tw_sim_service(tw_sim *sim)
{
	return sim ? sim->service : NULL;
}

/* -------------------------------------------------------------------- workers */

/*
 * One of the workers that can move at this instant, or NULL. *next_ns: when the first one can;
 * UINT64_MAX: none has anything to do.
 */
static struct worker *choose_worker(tw_sim *sim, uint64_t now_ns, uint64_t *next_ns)
{
	struct worker *chosen = NULL;
	uint64_t movable = 0;
	*next_ns = UINT64_MAX;
	for (uint32_t i = 0; i < sim->config.workers; i++) {
		struct worker *worker = &sim->workers[i];
		if (!worker->batch && !sim->line.first)
			continue;
		if (worker->ready_ns < *next_ns)
			*next_ns = worker->ready_ns;
		if (worker->ready_ns <= now_ns && draw(sim, ++movable) == 0)
			chosen = worker;
	}
	return chosen;
}

static void take_ticket(tw_sim *sim, struct worker *worker)
{
	worker->batch = (tw_batch *)tw__link_at(sim->line.first);
	worker->number = sim->taken++;
	worker->ready_ns = tw_clock_now(sim->clock) + draw(sim, sim->config.max_late_ns + 1);
	if (!sim->head_left)
		sim->head_left = ((struct tw__work *)(void *)worker->batch)->tickets;
	if (--sim->head_left == 0)
		tw__line_pop(&sim->line); /* now: it is gone when its tickets are used up */
	sim_event(sim, TW_SIM_TAKEN, worker, worker->number);
}

/* Tickets of the same batch before this worker's, that others hold. */
static unsigned overtaken(const tw_sim *sim, const struct worker *worker)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < sim->config.workers; i++)
		count += sim->workers[i].batch == worker->batch &&
			 sim->workers[i].number < worker->number;
	return count;
}

/* Returns 1; or -ENOMEM, and the worker keeps its ticket. A close gives it back instead. */
static int run_ticket(tw_sim *sim, struct worker *worker)
{
	tw_batch *batch = worker->batch;
	unsigned nth = overtaken(sim, worker);
	sim->current = worker;
	worker->ready_ns = tw_clock_now(sim->clock);
	pthread_mutex_unlock(&sim->lock);
	int r = tw__run_nth(batch, nth);
	if (r < 0 && sim->closing) {
		sim->failed = r;
		tw_run_return(batch);
		r = 0;
	}
	pthread_mutex_lock(&sim->lock);
	sim->current = NULL;
	if (r < 0)
		return r;
	worker->batch = NULL;
	sim_event(sim, r ? TW_SIM_RAN : TW_SIM_SKIPPED, worker, worker->number);
	return 1;
}

static int move_worker(tw_sim *sim, struct worker *worker)
{
	if (worker->batch)
		return run_ticket(sim, worker);
	take_ticket(sim, worker);
	return 1;
}

/* Carries out all that workers hold or could take. A close that runs has no limit of steps. */
static int drain_workers(tw_sim *sim)
{
	struct worker *worker;
	uint64_t next_ns;
	int r = 1;
	sim->steps = 0;
	while (r == 1 && (worker = choose_worker(sim, UINT64_MAX, &next_ns)))
		r = sim->closing || sim->steps++ < sim->config.max_steps ? move_worker(sim, worker)
									 : -ELOOP;
	return r < 0 ? r : 0;
}

/*
 * A close with TW_CLOSE_RUN waits for what it submits, so that runs here. If a run cannot begin,
 * the close becomes a DROP, since it would offer that run without end.
 */
static int sim_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_sim *sim = (tw_sim *)self;
	pthread_mutex_lock(&sim->lock);
	bool refused = !sim->closing && draw(sim, 100) < sim->config.refuse_percent;
	if (!refused)
		tw__line_append(&sim->line, (tw__link)batch | TW__FOREIGN);
	sim_event(sim, refused ? TW_SIM_REFUSED : TW_SIM_HANDED, NULL, n);
	if (sim->closing)
		drain_workers(sim);
	pthread_mutex_unlock(&sim->lock);
	if (sim->closing && sim->failed)
		tw_service_close(sim->service, TW_CLOSE_DROP, 0);
	return refused ? -EAGAIN : 0;
}

/* ---------------------------------------------------------------------- steps */

static int drive(tw_sim *sim)
{
	pthread_mutex_unlock(&sim->lock);
	int r = tw_service_advance(sim->service, TW_NO_LIMIT);
	pthread_mutex_lock(&sim->lock);
	if (r < 0)
		return r;
	sim->turn_late_ns = draw(sim, sim->config.max_late_ns + 1);
	sim_event(sim, TW_SIM_TURN, NULL, 0);
	return 1;
}

static uint64_t next_turn_ns(tw_sim *sim)
{
	uint64_t next_ns;
	if (tw_service_next_expiry(sim->service, &next_ns)) /* it is closed */
		return UINT64_MAX;
	return next_ns < UINT64_MAX - sim->turn_late_ns ? next_ns + sim->turn_late_ns : next_ns;
}

enum { LATER = 2 };

/* Plays one event up to limit_ns. Returns 1, LATER, 0: there is none, or an error. */
static int step(tw_sim *sim, uint64_t limit_ns)
{
	if (sim->steps++ >= sim->config.max_steps) {
		sim->steps = 0;
		return -ELOOP;
	}
	for (;;) {
		uint64_t now_ns = tw_clock_now(sim->clock), next_ns;
		struct worker *worker = choose_worker(sim, now_ns, &next_ns);
		if (worker)
			return move_worker(sim, worker);
		uint64_t turn_ns = next_turn_ns(sim);
		if (turn_ns < next_ns)
			next_ns = turn_ns;
		if (next_ns > limit_ns)
			return next_ns == UINT64_MAX ? 0 : LATER;
		if (next_ns > now_ns) {
			tw_clock_manual_set(sim->clock, next_ns);
			sim->steps = 0;
		}
		if (turn_ns == next_ns)
			return drive(sim);
	}
}

/* A public call that plays begins, with the lock. */
static int sim_enter(const char *call, tw_sim *sim)
{
	int r = TW__ORIGIN_CHECK(call, sim, "sim");
	if (r)
		return r;
	if (sim->stepping)
		return tw__waits_inside(call);
	pthread_mutex_lock(&sim->lock);
	sim->stepping = true;
	sim->steps = 0;
	return 0;
}

static int sim_leave(tw_sim *sim, int r)
{
	sim->stepping = false;
	pthread_mutex_unlock(&sim->lock);
	return r;
}

int tw_sim_step(tw_sim *sim)
{
	int r = sim_enter(__func__, sim);
	if (r)
		return r;
	r = step(sim, INT64_MAX);
	return sim_leave(sim, r == LATER ? 0 : r);
}

int tw_sim_run(tw_sim *sim, uint64_t ns)
{
	int r = sim_enter(__func__, sim);
	if (r)
		return r;
	uint64_t now_ns = tw_clock_now(sim->clock);
	uint64_t limit_ns = ns == TW_FOREVER ? INT64_MAX : now_ns + ns;
	if (limit_ns > INT64_MAX || limit_ns < now_ns) {
		sim_leave(sim, 0);
		return tw__bad(-ERANGE, __func__, "ns");
	}
	do
		r = step(sim, limit_ns);
	while (r == 1);
	if (r == LATER || (r == 0 && ns != TW_FOREVER))
		tw_clock_manual_set(sim->clock, limit_ns);
	return sim_leave(sim, r == LATER ? 1 : r);
}

void tw_sim_spend(tw_sim *sim, uint64_t ns)
{
	if (!sim || !sim->current)
		return;
	uint64_t *ready_ns = &sim->current->ready_ns;
	*ready_ns =
	    *ready_ns < INT64_MAX && ns < INT64_MAX - *ready_ns ? *ready_ns + ns : INT64_MAX;
}

/* ------------------------------------------------------------------------ end */

/*
 * RUN: the workers play before the close, and inside it (sim_submit). DROP: in between. The lock is
 * held; it is released meanwhile.
 */
static int close_service(tw_sim *sim, enum tw_close_mode mode)
{
	bool runs = mode == TW_CLOSE_RUN;
	int r = runs ? drive(sim) : 0;
	if (r == -ENOMEM)
		return r; /* a thread that cannot drive the service could not close it either */
	r = runs ? drain_workers(sim) : 0;
	if (r)
		return r;
	sim->failed = 0;
	sim->closing = runs;
	do {
		pthread_mutex_unlock(&sim->lock);
		r = tw_service_close(sim->service, mode, runs ? TW_FOREVER : 0);
		pthread_mutex_lock(&sim->lock);
	} while (r == -ETIMEDOUT && !(r = drain_workers(sim)));
	sim->closing = false;
	return sim->failed ? sim->failed : r;
}

static int sim_close(const char *call, tw_sim *sim, enum tw_close_mode mode)
{
	int r = sim_enter(call, sim);
	return r ? r : sim_leave(sim, close_service(sim, mode));
}

int tw_sim_close(tw_sim *sim, enum tw_close_mode mode)
{
	if ((unsigned)mode > TW_CLOSE_RUN)
		return tw__bad(-EINVAL, __func__, "mode");
	return sim_close(__func__, sim, mode);
}

static void sim_free(tw_sim *sim)
{
	pthread_mutex_destroy(&sim->lock);
	tw__free(sim->workers);
	tw_clock_manual_destroy(sim->clock);
	tw__free(sim);
}

int tw_sim_destroy(tw_sim *sim)
{
	if (!sim)
		return 0;
	bool inherited = tw__origin_inherited(&sim->origin);
	int r = inherited ? 0 : sim_close(__func__, sim, TW_CLOSE_DROP);
	if (!r)
		r = tw_service_destroy(sim->service);
	if (!r)
		sim_free(sim);
	return r;
}

/* ---------------------------------------------------------------------- birth */

static int sim_complete(struct tw_sim_config *config)
{
	if (!config->workers)
		config->workers = 4;
	if (!config->max_steps)
		config->max_steps = UINT64_C(1) << 24;
	const char *bad = NULL;
	tw__need(&bad, config->workers <= WORKERS_MAX, "workers");
	tw__need(&bad, config->refuse_percent <= 90, "refuse_percent");
	tw__need(&bad, config->start_ns <= INT64_MAX, "start_ns");
	tw__need(&bad, config->max_late_ns <= TW_MAX_DELAY_NS, "max_late_ns");
	return tw__bad_member(-EINVAL, "tw_sim_create", "tw_sim_config", bad);
}

static int make_service(tw_sim *sim)
{
	struct tw_service_config config;
	int r = TW__CONFIG_READ(tw_service_config, &config, buckets, sim->config.service);
	if (r)
		return r;
	if (config.clock || config.executor || config.drive || config.workers ||
	    config.max_workers || config.seed)
		return tw__bad_member(-EINVAL, "tw_sim_create", "tw_sim_config", "service");
	config.size = sizeof config;
	config.clock = sim->clock;
	config.executor = &sim->executor;
	config.drive = TW_DRIVE_MANUAL;
	config.seed = tw__random_of(sim->config.seed, 1) | 1;
	return tw_service_create(&sim->service, &config);
}

int tw_sim_create(tw_sim **out, const struct tw_sim_config *cfg)
{
	static const struct tw_executor_ops ops = {sizeof ops, sim_submit};
	struct tw_sim_config config;
	if (!out)
		return tw__invalid("out is NULL");
	int r = TW__CONFIG_READ(tw_sim_config, &config, workers, cfg);
	if (!r)
		r = sim_complete(&config);
	if (r)
		return r;
	tw_sim *sim = tw__alloc_zeroed(1, sizeof *sim);
	if (!sim || !tw__origin_init(&sim->origin)) {
		tw__free(sim);
		return -ENOMEM;
	}
	sim->executor.ops = &ops;
	sim->config = config;
	sim->random = tw__random_of(config.seed, 0);
	tw__line_init(&sim->line);
	pthread_mutex_init(&sim->lock, NULL);
	sim->workers = tw__alloc_zeroed(config.workers, sizeof *sim->workers);
	r = sim->workers ? tw_clock_manual_create(&sim->clock, config.start_ns) : -ENOMEM;
	if (!r)
		r = make_service(sim);
	if (r) {
		sim_free(sim);
		return r;
	}
	*out = sim;
	return 0;
}
