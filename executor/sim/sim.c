/* A simulation's public calls. Calls step.c. */
#include "executor/sim/internal.h"
#include "mpsc/base/reserve.h"

/* ---------------------------------------------------------------------- trace */

/* The order of words counts. */
static void mix(tw_sim *sim, uint64_t word)
{
	sim->trace = tw__random_mix(sim->trace ^ word) + UINT64_C(0x9e3779b97f4a7c15);
}

void tw__sim_event(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker, uint64_t value)
{
	TW_ASSERT_LOCKED(&sim->lock);
	struct tw_sim_event event = {sizeof event, tw_clock_now(sim->clock), kind, worker, value};
	mix(sim, event.at_ns);
	mix(sim, (uint64_t)kind << 32 | worker);
	mix(sim, value);
	if (sim->config.on_event)
		sim->config.on_event(sim->config.event_arg, &event);
}

uint64_t tw_sim_trace(const tw_sim *sim)
{
	return sim ? sim->trace : 0;
}

uint64_t tw_sim_random(tw_sim *sim, uint64_t bound)
{
	return sim && bound > 1 ? tw__random_upto(&sim->random_of_user, bound - 1) : 0;
}

/* ---------------------------------------------------------------------- parts */

tw_service *tw_sim_service(tw_sim *sim)
{
	return sim ? sim->service : NULL;
}

void tw_sim_spend(tw_sim *sim, uint64_t ns)
{
	if (sim && sim->current >= 0)
		sim->spent_ns += ns <= INT64_MAX - sim->spent_ns ? ns : INT64_MAX - sim->spent_ns;
}

int tw_sim_submit(tw_sim *sim, tw_fn *fn, void *arg)
{
	int r = fn ? TW__ORIGIN_CHECK(__func__, sim, "sim") : tw__invalid("fn is NULL");
	if (r)
		return r;
	const struct tw__sim_item task = {
	    .fn = fn, .arg = arg, .context = tw_context_get(), .tickets = 1};
	pthread_mutex_lock(&sim->lock);
	r = tw__sim_enqueue(sim, &task);
	if (!r)
		tw__sim_event(sim, TW_SIM_HANDED, UINT32_MAX, 1);
	pthread_mutex_unlock(&sim->lock);
	return r;
}

/* -------------------------------------------------------------------- running */

/* A public call that steps begins. */
static int sim_enter(const char *call, tw_sim *sim)
{
	int r = TW__ORIGIN_CHECK(call, sim, "sim");
	if (r)
		return r;
	if (sim->stepping)
		return tw__waits_inside(call);
	sim->stepping = true;
	sim->steps = 0;
	return 0;
}

int tw_sim_step(tw_sim *sim)
{
	int r = sim_enter(__func__, sim);
	if (r)
		return r;
	r = tw__sim_step(sim, INT64_MAX);
	sim->stepping = false;
	return r == TW__SIM_LATER ? 0 : r;
}

static int run(const char *call, tw_sim *sim, uint64_t ns, bool until_idle)
{
	int r = sim_enter(call, sim);
	if (r)
		return r;
	uint64_t now_ns = tw_clock_now(sim->clock);
	uint64_t limit_ns = ns < INT64_MAX - now_ns ? now_ns + ns : INT64_MAX;
	do
		r = tw__sim_step(sim, limit_ns);
	while (r == 1);
	if (r == TW__SIM_LATER || (r == 0 && !until_idle))
		tw_clock_manual_set(sim->clock, limit_ns);
	if (r == TW__SIM_LATER)
		r = until_idle ? -ETIMEDOUT : 0;
	sim->stepping = false;
	return r;
}

int tw_sim_run_for(tw_sim *sim, uint64_t ns)
{
	if (sim && ns > INT64_MAX - tw_clock_now(sim->clock))
		return tw__bad(-ERANGE, __func__, "ns");
	return run(__func__, sim, ns, false);
}

int tw_sim_run_until_idle(tw_sim *sim, uint64_t most_ns)
{
	return run(__func__, sim, most_ns, true);
}

/* ------------------------------------------------------------------------ end */

/* Carries out all that workers hold or could take. */
static int drain_workers(tw_sim *sim)
{
	int r;
	sim->steps = 0;
	while ((r = tw__sim_move_worker(sim, UINT64_MAX)) == 1)
		if (sim->steps++ >= sim->config.max_steps)
			return -ELOOP;
	return r;
}

/*
 * RUN: submit runs what the close hands over, since the close waits for that. DROP: a close that
 * does not wait drops all. The workers then play what they hold.
 */
static int close_service(tw_sim *sim, enum tw_close_mode mode)
{
	int r = mode == TW_CLOSE_RUN ? tw_service_advance(sim->service, 1) : 0;
	if (r == -ENOMEM)
		return r; /* a thread that cannot drive the service could not close it either */
	sim->closing = mode == TW_CLOSE_RUN;
	sim->failed = 0;
	if (sim->closing)
		tw__sim_drop(sim, TW__SIM_BATCHES);
	uint64_t timeout_ns = sim->closing ? TW_FOREVER : 0;
	while ((r = tw_service_close(sim->service, mode, timeout_ns)) == -ETIMEDOUT)
		if ((r = drain_workers(sim)))
			break;
	sim->closing = false;
	if (sim->failed)
		return sim->failed;
	return r ? r : drain_workers(sim); /* plain tasks */
}

int tw_sim_close(tw_sim *sim, enum tw_close_mode mode)
{
	if ((unsigned)mode > TW_CLOSE_RUN)
		return tw__bad(-EINVAL, __func__, "mode");
	int r = sim_enter(__func__, sim);
	if (r)
		return r;
	r = close_service(sim, mode);
	sim->stepping = false;
	return r;
}

static void sim_free(tw_sim *sim)
{
	for (unsigned i = 0; i < TW__SIM_QUEUES; i++) /* in a forked child something may be left */
		for (struct tw__sim_item *item; (item = sim->queues[i].first);) {
			sim->queues[i].first = item->next;
			tw__free(item);
		}
	pthread_mutex_destroy(&sim->lock);
	tw__free(sim->workers);
	tw_clock_manual_destroy(sim->clock);
	tw__free(sim);
}

/* Drops timers, then the tasks that no worker has begun. */
static int close_for_good(tw_sim *sim)
{
	if (sim->stepping)
		return tw__waits_inside("tw_sim_destroy");
	int r = tw_service_close(sim->service, TW_CLOSE_DROP, 0);
	if (r && r != -ETIMEDOUT)
		return r;
	tw__sim_drop(sim, TW__SIM_TASKS);
	return tw_sim_close(sim, TW_CLOSE_DROP);
}

int tw_sim_destroy(tw_sim *sim)
{
	if (!sim)
		return 0;
	int r = tw__origin_inherited(&sim->origin) ? 0 : close_for_good(sim);
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
	tw__need(&bad, config->workers <= TW__SIM_WORKERS_MAX, "workers");
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
	config.seed = tw__random_of(sim->config.seed, 2) | 1;
	return tw_service_create(&sim->service, &config);
}

int tw_sim_create(tw_sim **out, const struct tw_sim_config *cfg)
{
	static const struct tw_executor_ops ops = {sizeof ops, tw__sim_submit};
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
	sim->current = -1;
	sim->random = tw__random_of(config.seed, 0);
	sim->random_of_user = tw__random_of(config.seed, 1);
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
