/*
 * The composition root: a service is the core over an executor; if the user brings none, it gets a pool of its own. The core knows
 * nothing of the pool, the pool nothing of the service; only this file knows both.
 */
#include <errno.h>

#include "executor/pool.h"
#include "wheel/core.h"
#include "wheel/spawn.h"

/* Plain tasks have no way into a pool that a service has made for itself. */
enum { OWN_POOLS_QUEUE = 16 };

int tw_version(void)
{
	return TW_VERSION;
}

/* The pool that the service is to use: its own, a shared one, or none (*pool NULL). */
static int choose_pool(const struct tw_service_config *config, tw_pool **pool, bool *owned)
{
	*pool = tw__pool_of(config->executor);
	*owned = !config->executor;
	if (!*owned)
		return 0;
	return tw__pool_create(pool, config->workers ? config->workers : tw__usable_cpus(), OWN_POOLS_QUEUE, config);
}

static int join_pool(struct tw_service_config *config, struct tw__source **source)
{
	tw_pool *pool;
	bool owned;
	int r = choose_pool(config, &pool, &owned);
	if (r || !pool)
		return r;
	r = tw__pool_join(source, pool, owned);
	if (r && owned)
		tw_pool_destroy(pool);
	if (!r)
		config->executor = tw__source_executor(*source);
	return r;
}

int tw_service_create(tw_service **out, const struct tw_service_config *cfg)
{
	struct tw_service_config config;
	struct tw__source *source = NULL;
	if (!out)
		return -EINVAL;
	int r = tw__config_read(&config, cfg);
	if (!r)
		r = join_pool(&config, &source);
	if (r)
		return r;
	tw_service *service;
	r = tw__core_create(&service, &config);
	if (r) {
		tw__pool_leave(source, NULL);
		return r;
	}
	tw_store_relaxed(&service->pool, source);
	*out = service;
	return 0;
}

int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	int r = tw__core_close(service, mode, timeout_ns);
	if (r == 0)
		tw__pool_leave(tw_exchange_acq_rel(&service->pool, NULL),
			       service); /* settled; the first closer ends it */
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
