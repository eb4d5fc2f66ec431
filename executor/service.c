/*
 * The composition root: a service is the core over an executor; if the user brings none, it gets a pool of its own. The core knows
 * nothing of the pool, the pool nothing of the service; only this file knows both.
 */
#include <errno.h>
#include <sched.h>

#include "executor/pool.h"
#include "wheel/core.h"
#include "wheel/run.h"

int tw_version(void)
{
	return TW_VERSION;
}

static unsigned usable_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > 1024 ? 1024 : (unsigned)n;
}

/* The config is complete, but for its executor perhaps. */
static int make(tw_service **out, struct tw_service_config *config)
{
	struct tw__pool *pool = NULL;
	if (!config->executor) {
		int r = tw__pool_create(&pool, config->workers ? config->workers : usable_cpus(), config);
		if (r)
			return r;
		config->executor = tw__pool_executor(pool);
	}
	tw_service *service;
	int r = tw__core_create(&service, config);
	if (r) {
		tw__pool_destroy(pool);
		return r;
	}
	tw_store_relaxed(&service->pool, pool);
	*out = service;
	return 0;
}

int tw_service_create(tw_service **out, const struct tw_service_config *cfg)
{
	struct tw_service_config config;
	if (!out)
		return -EINVAL;
	tw__clock_default_hold(true);
	int r = tw__config_read(&config, cfg);
	if (!r)
		r = make(out, &config);
	if (r)
		tw__clock_default_hold(false);
	return r;
}

/* Nothing is left: the pool is idle. Other closers wait until its threads have ended. */
static void end_pool(tw_service *service)
{
	tw__pool_destroy(tw_exchange_acq_rel(&service->pool, NULL));
}

static int check_options(const struct tw_close_options *options)
{
	if ((unsigned)options->mode > TW_CLOSE_DRAIN || options->flags & ~(uint32_t)TW_CLOSE_NO_WAIT)
		return -EINVAL;
	return 0;
}

int tw_service_close_with(tw_service *service, const struct tw_close_options *options)
{
	struct tw_close_options known;
	if (!service || !options)
		return -EINVAL;
	if (tw__forked(service))
		return -EPERM;
	int r = tw__struct_read(&known, sizeof known, offsetof(struct tw_close_options, flags), options);
	if (!r)
		r = check_options(&known);
	return r ? r : tw__core_close(service, &known, end_pool, false);
}

int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	struct tw_close_options options = {.size = sizeof options, .mode = mode, .timeout_ns = timeout_ns};
	return tw_service_close_with(service, &options);
}

static int destroy_forked(tw_service *service)
{
	if (tw__inside(service))
		return -EDEADLK; /* the callback may yet return */
	tw__pool_free_forked(tw_load_relaxed(&service->pool));
	tw__core_free_forked(service);
	return 0;
}

int tw_service_destroy(tw_service *service)
{
	static const struct tw_close_options drop = {.size = sizeof drop, .timeout_ns = TW_FOREVER};
	if (!service)
		return 0;
	if (tw__forked(service))
		return destroy_forked(service);
	int r = tw__core_close(service, &drop, end_pool, true);
	if (r)
		return r;
	tw__core_free(service);
	return 0;
}
