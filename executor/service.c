/*
 * A service: the core over an executor, a pool of its own if the user gives none. Only this file
 * knows both core and pool.
 */

#include "mpsc/base/process.h"
#include "executor/pool/layer.h"
#include "wheel/service/parts.h"

int tw_version(void)
{
	return TW_VERSION;
}

/* The service's own, a shared one, or none (*out is NULL). */
static int join_pool(struct tw_service_config *config, tw_pool **out)
{
	bool owned = !config->executor;
	*out = tw__pool_of(config->executor);
	int r = owned ? tw__pool_create(out, 0, config) : 0;
	if (r || !*out)
		return r;
	config->executor = tw_pool_executor(*out);
	return tw__pool_join(*out, true); /* of its own pool: cannot fail */
}

static int service_make(tw_service **out, struct tw_service_config *config)
{
	tw_pool *pool;
	int r = join_pool(config, &pool);
	if (r)
		return r;
	tw_service *service;
	r = tw__core_create(&service, config);
	if (r) {
		if (pool)
			tw__pool_leave(pool, true);
		return r;
	}
	tw_store_relaxed(&service->watch.pool, pool);
	service->watch.pool_look = tw__pool_look;
	*out = service;
	return 0;
}

tw_cold int tw_service_create(tw_service **out, const struct tw_service_config *cfg)
{
	TW__UNCANCELLED;
	struct tw_service_config config;
	if (!out)
		return tw__invalid("out is NULL");
	int r = tw__config_read(&config, cfg);
	if (!r)
		r = tw__system_refused("tw_service_create", service_make(out, &config));
	if (!r)
		tw__clock_default_fix();
	return r;
}

/* The pool is idle. Other calls of close wait until its threads have ended. */
static void end_pool(tw_service *service)
{
	pthread_mutex_lock(&tw__registry); /* pool_stats and liveness may be reading it */
	tw_pool *pool = tw_load_relaxed(&service->watch.pool);
	tw_store_relaxed(&service->watch.pool, NULL);
	pthread_mutex_unlock(&tw__registry);
	if (pool)
		tw__pool_leave(pool, true);
}

static int service_end(const char *call, tw_service *service, enum tw_close_mode mode,
		       uint64_t timeout_ns, bool alone)
{
	int r = tw__core_close(service, mode, timeout_ns, end_pool, alone);
	if (r != -EDEADLK)
		return r;
	if (tw__inside(service) || tw__inside_work(service))
		return tw__waits_inside(call);
	return tw__refuse(r, call,
			  "TW_CLOSE_DRAIN would wait for timers on a clock that only the caller "
			  "advances; advance it first");
}

int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	TW__UNCANCELLED;
	int r = tw__service_check(service);
	if (r)
		return r;
	if ((unsigned)mode > TW_CLOSE_DRAIN)
		return tw__bad(-EINVAL, __func__, "mode");
	return service_end(__func__, service, mode, timeout_ns, false);
}

static void free_kept(struct tw__kept *kept)
{
	if (kept)
		kept->free(kept);
}

static int service_destroy_forked(tw_service *service)
{
	if (tw__inside(service) || tw__inside_work(service))
		return -EDEADLK; /* the callback or task may yet return */
	if (tw__service_is_held(service))
		return -EBUSY;
	struct tw__kept *kept = tw_load_relaxed(&service->kept);
	tw_pool *pool = tw_load_relaxed(&service->watch.pool);
	if (pool)
		tw__pool_leave(pool, true);
	tw__core_free_forked(service);
	free_kept(kept);
	return 0;
}

tw_cold int tw_service_destroy(tw_service *service)
{
	TW__UNCANCELLED;
	if (!service)
		return 0;
	if (tw__forked(service))
		return service_destroy_forked(service);
	int r = service_end(__func__, service, TW_CLOSE_DROP, TW_FOREVER, true);
	if (r)
		return r;
	struct tw__kept *kept = tw_load_acquire(&service->kept);
	tw__core_free(service);
	free_kept(kept);
	return 0;
}
