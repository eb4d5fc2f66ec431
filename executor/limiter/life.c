/* A limiter's birth and end. */
#include <string.h>

#include "executor/limiter/life.h"
#include "executor/limiter/idle.h"
#include "wheel/timer/timing.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/job_queue.h"
#include "executor/limiter/rate.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/tell.h"

#define RETURN_NS UINT64_C(1000000000)

bool tw__limiter_holds(tw_executor *executor, uint32_t max_concurrency, uint32_t flags)
{
	unsigned capacity = tw__executor_capacity(executor);
	return max_concurrency > 0 && max_concurrency <= TW__MAX_CONCURRENCY &&
	       (flags & TW_LIMITER_NONBLOCKING || !capacity || max_concurrency < capacity);
}

static int limiter_config_check(const struct tw_limiter_config *c)
{
	const char *bad = NULL;
	const uint32_t flags = TW_LIMITER_COLLECT | TW_LIMITER_PAUSED_REFUSES |
			       TW_LIMITER_NONBLOCKING | TW_LIMITER_PAUSED | TW_LIMITER_NO_QUEUE;
	tw__need(&bad, !(c->flags & ~flags), "flags");
	tw__need(&bad, tw__executor_is_sound(c->executor), "executor");
	tw__need(&bad, c->max_pending <= (c->flags & TW_LIMITER_NO_QUEUE ? 0 : TW__NODES_MAX),
		 "max_pending");
	tw__need(&bad, c->rate_starts <= TW__MAX_RATE, "rate_starts");
	tw__need(&bad,
		 c->rate_interval_ns <= TW_MAX_DELAY_NS &&
		     (c->rate_interval_ns == 0) == (c->rate_starts == 0),
		 "rate_interval_ns");
	tw__need(&bad, tw__limiter_holds(c->executor, c->max_concurrency, c->flags),
		 "max_concurrency");
	return tw__bad_member(-EINVAL, "tw_limiter_create", "tw_limiter_config", bad);
}

static void limiter_free_all(struct tw_limiter *l)
{
	struct tw__runner *runner;
	struct tw__listener *listener;
	while ((runner = l->permits.free_runners)) {
		l->permits.free_runners = runner->next;
		free(runner);
	}
	while ((listener = l->idles.first)) {
		l->idles.first = listener->next;
		free(listener);
	}
	free(l->results);
	free(l->rate.tokens);
	tw__job_queue_free(&l->queue);
	tw__heap_free(&l->times.heap);
	tw__nodes_fini(&l->nodes);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void set_up(struct tw_limiter *l, tw_service *service,
		   const struct tw_limiter_config *config)
{
	l->service = service;
	l->config = *config;
	l->paused = l->config.flags & TW_LIMITER_PAUSED;
	if (!l->config.max_pending && !(l->config.flags & TW_LIMITER_NO_QUEUE))
		l->config.max_pending = TW__NODES_MAX;
	l->permits.limit = config->max_concurrency;
	l->rate.starts = l->rate.room = config->rate_starts;
	l->rate.interval_ns = config->rate_interval_ns;
	l->out.telling = (struct tw__links){&l->out.telling, &l->out.telling};
	pthread_mutex_init(&l->lock, NULL);
	tw__nodes_init(&l->nodes, sizeof(struct tw__job));
	tw__inbox_init(l);
	tw__times_init(l);
}

/* The service is held, and so is its pool. */
static int create_held(tw_limiter **out, tw_service *service, struct tw_limiter_config *config)
{
	if (!config->executor)
		config->executor = service->executor;
	int r = limiter_config_check(config);
	if (r)
		return r;
	struct tw_limiter *l = aligned_alloc(_Alignof(struct tw_limiter), sizeof *l);
	if (!l)
		return -ENOMEM;
	memset(l, 0, sizeof *l);
	set_up(l, service, config);
	if (l->rate.starts &&
	    !(l->rate.tokens = calloc(config->rate_starts, sizeof *l->rate.tokens)))
		r = -ENOMEM;
	if (!r)
		r = tw__job_queue_reserve(&l->queue, 0); /* for the inbox */
	if (!r)
		r = tw__layer_hold(&l->base, service, config->executor);
	if (r) {
		limiter_free_all(l);
		return r;
	}
	tw__idle_init(l);
	l->random = config->seed ? tw__random_mix(config->seed) : tw__service_draw_seed(service);
	*out = l;
	return 0;
}

int tw_limiter_create(tw_limiter **out, tw_service *service, const struct tw_limiter_config *cfg)
{
	struct tw_limiter_config config;
	if (!out || !service || !cfg)
		return tw__invalid("%s is NULL", !out ? "out" : service ? "config" : "service");
	int r = TW__STRUCT_READ(tw_limiter_config, &config, executor, cfg);
	if (!r)
		r = tw__service_hold(service);
	if (r)
		return r;
	r = create_held(out, service, &config);
	tw__service_let_go(service);
	return r;
}

static bool all_returned(const struct tw_limiter *l)
{
	return !l->permits.runners_out && l->times.armed_ns == UINT64_MAX && !l->out.tellers &&
	       !l->idles.telling && !l->out.calls;
}

/*
 * How long to wait for what is out. What runs now ends by itself, and what a pool's other workers
 * or the tick thread have queued will run. Another executor may be the caller's own, who is here:
 * one that has threads needs no longer than this.
 */
static uint64_t patience(const struct tw_limiter *l)
{
	uint64_t queued = l->permits.searching + l->out.tellers;
	tw_pool *pool = tw__pool_of(l->base.executor);
	bool by_itself =
	    pool ? !tw__pool_is_worker(pool) : l->base.executor == &tw__inline_executor;
	if (!queued || (by_itself && (pool || l->service->threaded)))
		return RETURN_NS;
	return l->service->threaded ? RETURN_NS / 50 : 0;
}

/* The timer, or the work in its place, which the driver has not taken yet. The lock is held. */
static void recall(struct tw_limiter *l)
{
	if (tw_cancel(l->service, l->times.timer) == TW_CANCELLED ||
	    (l->times.armed_ns == 0 && tw__work_recall(&l->times.retry)))
		l->times.armed_ns = UINT64_MAX;
}

/*
 * Nothing is left to run. What the executor refuses of the runners, the driver returns: an executor
 * that refuses for good does not keep the limiter from its end. The lock is held.
 */
static void runners_leave(struct tw_limiter *l)
{
	for (struct tw__runner *runner = l->permits.first_runner; l->closed && runner;
	     runner = runner->other)
		tw__base_leave_work(&l->base, &runner->work);
}

/*
 * Waits for runners and the timer's callback, which return by themselves. The lock is held, and
 * given up meanwhile.
 */
static bool await_all_returned(struct tw_limiter *l)
{
	recall(l);
	runners_leave(l);
	uint64_t end_ns = tw__deadline_in(patience(l));
	bool in_time = true;
	l->out.destroying = true;
	while (!all_returned(l) && in_time)
		in_time = tw__limiter_await(l, &l->ends.quiet, end_ns);
	l->out.destroying = false;
	return all_returned(l);
}

static int limiter_end(tw_limiter *l)
{
	if (tw__limiter_is_inside(l, NULL))
		return tw__waits_inside("tw_limiter_destroy");
	tw__limiter_relock(l);
	bool over = !l->ends.unfinished && !l->permits.running && !l->ends.quiet.waiters &&
		    !l->ends.room.waiters && await_all_returned(l);
	pthread_mutex_unlock(&l->lock);
	if (!over)
		return -EBUSY;
	tw__layer_let_go(&l->base);
	limiter_free_all(l);
	return 0;
}

int tw_limiter_destroy(tw_limiter *l)
{
	return TW__BASE_DESTROY(l, limiter_free_all, limiter_end);
}
