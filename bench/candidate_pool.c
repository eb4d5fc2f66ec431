/*
 * Ours, of W11 and W12: "tickwheel-batch" hands due timers over in batches, as every service does,
 * to a shared pool, driven by hand so that the hand-over can be timed; "tickwheel-pool" submits
 * plain tasks. A layer above pools joins here: create, destroy, post.
 */
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/candidate.h"
#include "tickwheel.h"

struct ours {
	tw_pool *pool;
	tw_service *service; /* NULL where there is none */
};

static void destroy(void *me)
{
	struct ours *self = me;
	tw_service_destroy(self->service);
	tw_pool_destroy(self->pool);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = setup->threads};
	struct ours *self = touched_array(1, sizeof *self);
	if (self && tw_pool_create(&self->pool, &config) < 0) {
		free(self);
		return NULL;
	}
	return self;
}

/* ---- plain tasks */

static int post(void *me, expiry_fn *fn, void *arg)
{
	return tw_pool_submit(((struct ours *)me)->pool, fn, arg);
}

const struct candidate candidate_pool = {
    .name = "tickwheel-pool",
    .what = "tw_pool_submit, a plain task each",
    .workloads = ON_POOL | ON_LAYERS,
    .create = create,
    .destroy = destroy,
    .post = post,
};

/* ---- batches of due timers */

static void *create_service(const struct candidate_setup *setup)
{
	struct ours *self = create(setup);
	if (!self)
		return NULL;
	struct tw_service_config config = {.size = sizeof config,
					   .drive = TW_DRIVE_MANUAL,
					   .executor = tw_pool_executor(self->pool)};
	if (tw_service_create(&self->service, &config) < 0) {
		destroy(self);
		return NULL;
	}
	return self;
}

/* All filed, and due when this returns. */
static int submit_bulk(void *me, expiry_fn *fn, void *const *args, uint32_t n)
{
	struct ours *self = me;
	uint64_t due_ns = tw_service_now(self->service) + 3 * TW_MILLISECOND + n * UINT64_C(1500);
	for (uint32_t i = 0; i < n; i++)
		if (tw_schedule_at(self->service, due_ns, fn, args[i], NULL) < 0)
			return -1;
	int early = tw_service_advance(self->service, TW_NO_LIMIT);
	sleep_until_ns(due_ns + TICK_NS);
	return early > 0 ? 1 : early;
}

static void go(void *me)
{
	tw_service_advance(((struct ours *)me)->service, TW_NO_LIMIT);
}

const struct candidate candidate_batch = {
    .name = "tickwheel-batch",
    .what = "due timers in batches, to a shared pool",
    .workloads = ON_POOL,
    .create = create_service,
    .destroy = destroy,
    .submit_bulk = submit_bulk,
    .go = go,
};
