/*
 * The composition root: a service is the core over an executor; if the user brings none, it gets a pool of its own. The core knows
 * nothing of the pool, the pool nothing of the service; only this file knows both.
 */
#include <errno.h>
#include <sched.h>

#include "executor/pool.h"
#include "wheel/core.h"

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

int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	int r = tw__core_close(service, mode, timeout_ns);
	if (r == 0)
		tw__pool_destroy(
		    tw_exchange_acq_rel(&service->pool, NULL)); /* settled: it is idle; the first closer ends it */
	return r;
}

int tw_service_destroy(tw_service *service)
{
	if (!service)
		return 0;
	int r = tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER);
	if (r)
		return r;
	tw__core_free(service);
	return 0;
}
