/* A limiter on real threads: those of a service of its own. */
#ifndef TEST_SUPPORT_POOLED_LIMITER_H
#define TEST_SUPPORT_POOLED_LIMITER_H

#include "limited.h"

static tw_service *service;
static tw_limiter *limiter;

static inline tw_limiter *make_limiter(const struct tw_limiter_config *config)
{
	tw_limiter *made;
	expect_eq(tw_limiter_create(&made, service, config), 0);
	return made;
}

/* cfg.size is set here. */
static inline void open_pooled(struct tw_service_config cfg, uint32_t max_concurrency)
{
	struct tw_limiter_config config = limited_config(max_concurrency);
	cfg.size = sizeof cfg;
	expect_eq(tw_service_create(&service, &cfg), 0);
	limiter = make_limiter(&config);
}

static inline struct tw_limiter_stats stats_now(void)
{
	struct tw_limiter_stats stats = {.size = sizeof stats};
	expect_eq(tw_limiter_stats(limiter, &stats), 0);
	return stats;
}

static inline void close_pooled(void)
{
	expect_eq(tw_limiter_wait_idle(limiter, 50 * SECOND), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
}

#endif
