/*
 * The limiter as a whole: life, start, pause, stop, idle.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/futex.h"
#include "wheel/timer/timing.h"

enum { MAX_CONCURRENCY = 1 << 30, MAX_RATE = 1 << 20 };
#define HOMECOMING_NS UINT64_C(1000000000)

/* --------------------------------------------------------------------- idle */

static struct tw__listener *next_listener(struct tw_limiter *l)
{
	struct tw__listener *first = l->due;
	if (first && !(l->due = first->next))
		l->due_end = &l->due;
	return first;
}

/* All that wait for the next idle are told of this one, and get its results. */
static void move_listeners(struct tw_limiter *l)
{
	if (!l->listeners)
		return;
	for (struct tw__listener *listener = l->listeners; listener && l->results; listener = listener->next) {
		listener->results = l->results;
		l->results->refs++;
	}
	*l->due_end = l->listeners;
	l->due_end = l->listeners_end;
	l->listeners = NULL;
	l->listeners_end = &l->listeners;
}

void tw__idle_reached(struct tw_limiter *l)
{
	l->idles++;
	if (l->results)
		l->results->delivered = true;
	move_listeners(l);
}

/* False: in a forked child, without the lock. */
static bool tell_one(struct tw_limiter *l, struct tw__listener *listener)
{
	struct tw__limiter_call call;
	struct tw__results *results = listener->results;
	struct tw__context_saved saved;
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, NULL);
	tw__context_enter(listener->context, &saved);
	tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(listener->fn), 0);
	listener->fn(listener->arg, results ? results->items : NULL, results ? results->n : 0);
	tw__context_leave(&saved);
	tw__limiter_call_end(&call);
	if (tw__forked(l->service))
		return false;
	tw__context_release(listener->context);
	free(listener);
	tw__limiter_relock(l);
	tw__results_put(results);
	return true;
}

static bool tell_hook(struct tw_limiter *l)
{
	struct tw__limiter_call call;
	if (!l->config.hooks.idle)
		return true;
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, NULL);
	tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(l->config.hooks.idle), 0);
	l->config.hooks.idle(l->config.hooks.hooks_arg);
	tw__limiter_call_end(&call);
	if (tw__forked(l->service))
		return false;
	tw__limiter_relock(l);
	return true;
}

static bool tell_due(struct tw_limiter *l)
{
	struct tw__listener *listener;
	bool here = true;
	while (here && (listener = next_listener(l)))
		here = tell_one(l, listener);
	return here;
}

bool tw__idle_tell(struct tw_limiter *l)
{
	if (l->telling)
		return true; /* whoever tells goes on with these */
	l->telling = true;
	while (l->idles_told != l->idles || l->due) {
		uint64_t idles = l->idles;
		if (l->idles_told != idles && !tell_hook(l))
			return false;
		if (!tell_due(l))
			return false;
		l->idles_told = idles;
	}
	l->telling = false;
	if (l->quiet_waiters)
		tw__limiter_ring(l);
	return true;
}

static struct tw__listener *make_listener(tw_idle_fn *fn, void *arg)
{
	struct tw__listener *listener = malloc(sizeof *listener);
	if (listener)
		*listener = (struct tw__listener){.fn = fn, .arg = arg, .context = tw__context_capture()};
	return listener;
}

/* The lock is held. */
static void add_listener(struct tw_limiter *l, struct tw__listener *listener, struct tw__todo *todo)
{
	*l->listeners_end = listener;
	l->listeners_end = &listener->next;
	if (l->unfinished != 0)
		return;
	move_listeners(l);
	todo->idle = true;
}

int tw_limiter_on_idle(tw_limiter *l, tw_idle_fn *fn, void *arg)
{
	struct tw__todo todo;
	if (!l || !fn)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	struct tw__listener *listener = make_listener(fn, arg);
	if (!listener)
		return -ENOMEM;
	tw__limiter_lock(l, &todo);
	add_listener(l, listener, &todo);
	tw__limiter_unlock(l, &todo);
	return 0;
}

/* ------------------------------------------------------------------ waiting */

static bool is_idle(const struct tw_limiter *l)
{
	return l->unfinished == 0 && !l->telling && l->idles == l->idles_told;
}

/* But for what waits: so after a stop. */
static bool is_at_rest(const struct tw_limiter *l)
{
	return l->unfinished == l->pending && !l->telling && l->idles == l->idles_told;
}

/*
 * An idle that comes after the call's beginning, and has been told, is enough, though it may be over. One of before is not, even if it
 * is told only now: somebody has submitted since. The lock is held, and given up meanwhile.
 */
static int await(struct tw_limiter *l, bool (*is)(const struct tw_limiter *), uint64_t timeout_ns)
{
	uint64_t now_ns = timeout_ns && timeout_ns != TW_FOREVER ? tw_clock_now(tw_clock_monotonic()) : 0;
	uint64_t deadline_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
	uint64_t before = l->unfinished == 0 && l->idles_told != l->idles ? l->idles - 1 : l->idles;
	bool in_time = timeout_ns != 0;
	l->quiet_waiters++;
	while (!is(l) && l->idles_told <= before && in_time) {
		uint32_t seen = tw_load_relaxed(&l->quiet_bell);
		pthread_mutex_unlock(&l->lock);
		in_time = tw__futex_wait(&l->quiet_bell, seen, deadline_ns);
		tw__limiter_relock(l);
	}
	l->quiet_waiters--;
	return is(l) || l->idles_told > before ? 0 : -ETIMEDOUT;
}

int tw_limiter_wait_idle(tw_limiter *l, uint64_t timeout_ns)
{
	if (!l)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	if (timeout_ns && tw__limiter_is_inside(l, NULL))
		return -EDEADLK;
	tw__limiter_relock(l);
	int r = await(l, is_idle, timeout_ns);
	pthread_mutex_unlock(&l->lock);
	return r;
}

/* ------------------------------------------------------ start, pause, resume */

int tw_limiter_start(tw_limiter *l, tw_idle_fn *idle, void *arg)
{
	struct tw__todo todo;
	if (!l)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	struct tw__listener *listener = idle ? make_listener(idle, arg) : NULL;
	if (idle && !listener)
		return -ENOMEM;
	uint64_t now_ns = tw_now(l->service);
	tw__limiter_lock(l, &todo);
	l->started = true;
	if (listener)
		add_listener(l, listener, &todo);
	tw__dispatch(l, now_ns, &todo);
	tw__limiter_unlock(l, &todo);
	return 0;
}

static int set_paused(tw_limiter *l, bool paused)
{
	struct tw__todo todo;
	if (!l)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	uint64_t now_ns = tw_now(l->service);
	tw__limiter_lock(l, &todo);
	l->paused = paused;
	if (paused && l->config.flags & TW_LIMITER_PAUSED_REFUSES)
		tw__room_ring(l); /* those who wait for room are refused */
	tw__dispatch(l, now_ns, &todo);
	tw__limiter_unlock(l, &todo);
	return 0;
}

int tw_limiter_pause(tw_limiter *l)
{
	return set_paused(l, true);
}

int tw_limiter_resume(tw_limiter *l)
{
	return set_paused(l, false);
}

int tw_limiter_set_max_concurrency(tw_limiter *l, uint32_t max_concurrency)
{
	struct tw__todo todo;
	if (!l || max_concurrency == 0 || max_concurrency > MAX_CONCURRENCY)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	uint64_t now_ns = tw_now(l->service);
	tw__limiter_lock(l, &todo);
	uint64_t before = l->limit;
	l->limit = max_concurrency;
	int r = tw__runner_reserve(l, l->unfinished);
	if (r)
		l->limit = before;
	tw__dispatch(l, now_ns, &todo);
	tw__limiter_unlock(l, &todo);
	return r;
}

/* --------------------------------------------------------------------- stop */

/* In the order in which they would have run; those that wait for a retry last. */
static void drop_all(struct tw_limiter *l, uint64_t now_ns, struct tw__todo *todo)
{
	struct tw__job *job;
	while ((job = tw__line_first(&l->line))) {
		tw__line_leave(l, job, now_ns, todo);
		tw__settle(l, job, TW_JOB_DROPPED, -ESHUTDOWN, todo);
	}
	while ((job = l->first_retrying)) {
		tw__retrying_leave(l, job, todo);
		tw__settle(l, job, TW_JOB_DROPPED, -ESHUTDOWN, todo);
	}
}

int tw_limiter_stop(tw_limiter *l, uint64_t timeout_ns)
{
	struct tw__todo todo;
	if (!l)
		return -EINVAL;
	if (tw__forked(l->service))
		return -EPERM;
	if (timeout_ns && tw__limiter_is_inside(l, NULL))
		return -EDEADLK;
	uint64_t now_ns = tw_now(l->service);
	tw__limiter_lock(l, &todo);
	l->started = false;
	drop_all(l, now_ns, &todo);
	tw__limiter_unlock(l, &todo);
	if (tw__forked(l->service))
		return -EPERM; /* a callback has forked, and returned here */
	tw__limiter_relock(l);
	int r = await(l, is_at_rest, timeout_ns);
	pthread_mutex_unlock(&l->lock);
	return r;
}

/* --------------------------------------------------------------------- life */

static int config_check(const struct tw_limiter_config *c)
{
	if (c->max_concurrency == 0 || c->max_concurrency > MAX_CONCURRENCY || c->reserved ||
	    c->flags & ~(uint32_t)(TW_LIMITER_COLLECT | TW_LIMITER_PAUSED_REFUSES))
		return -EINVAL;
	if (c->max_pending > TW__NODES_MAX || (c->executor && !tw__executor_is_sound(c->executor)))
		return -EINVAL;
	if (c->low_water && !c->on_low_water)
		return -EINVAL;
	if (c->aging_ns && (c->aging_ns < 1000 || c->aging_ns > UINT64_C(1) << 46))
		return -EINVAL;
	if (c->rate_starts > MAX_RATE || c->rate_interval_ns > TW_MAX_DELAY_NS ||
	    (c->rate_starts == 0) != (c->rate_interval_ns == 0))
		return -EINVAL;
	return 0;
}

static uint64_t seed_of(uint64_t wanted)
{
	uint64_t seed;
	if (wanted)
		return tw__random_mix(wanted);
	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
		return seed;
	return tw__random_mix(tw_clock_now(tw_clock_monotonic()));
}

static void free_all(struct tw_limiter *l)
{
	struct tw__runner *runner;
	struct tw__listener *listener;
	while ((runner = l->free_runners)) {
		l->free_runners = runner->next;
		free(runner);
	}
	while ((listener = l->listeners)) {
		l->listeners = listener->next;
		free(listener);
	}
	free(l->results);
	free(l->tokens);
	tw__line_free(&l->line);
	tw__heap_free(&l->untimed);
	tw__nodes_fini(&l->nodes);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void set_up(struct tw_limiter *l, tw_service *service, const struct tw_limiter_config *config)
{
	l->service = service;
	l->config = *config;
	if (!l->config.max_pending)
		l->config.max_pending = TW__NODES_MAX;
	l->limit = config->max_concurrency;
	l->line.aging_ns = config->aging_ns;
	l->listeners_end = &l->listeners;
	l->due_end = &l->due;
	l->random = seed_of(config->seed);
	pthread_mutex_init(&l->lock, NULL);
	tw__nodes_init(&l->nodes, sizeof(struct tw__job), TW__NODES_MAX);
	tw__inbox_init(l);
	tw__rate_init(l);
	tw__times_init(l);
}

int tw_limiter_create(tw_limiter **out, tw_service *service, const struct tw_limiter_config *cfg)
{
	struct tw_limiter_config config;
	if (!out || !service || !cfg)
		return -EINVAL;
	if (tw__forked(service))
		return -EPERM;
	int r = tw__struct_read(&config, sizeof config, offsetof(struct tw_limiter_config, executor), cfg);
	if (!r)
		r = config_check(&config);
	if (r)
		return r;
	struct tw_limiter *l = aligned_alloc(_Alignof(struct tw_limiter), sizeof *l);
	if (!l)
		return -ENOMEM;
	memset(l, 0, sizeof *l);
	set_up(l, service, &config);
	if (config.rate_starts && !(l->tokens = calloc(config.rate_starts, sizeof *l->tokens)))
		r = -ENOMEM;
	if (!r)
		r = tw__line_reserve(&l->line, 0); /* for the inbox */
	if (!r)
		r = tw__base_hold(&l->base, service, config.executor);
	if (r) {
		free_all(l);
		return r;
	}
	*out = l;
	return 0;
}

static bool all_home(const struct tw_limiter *l)
{
	return !l->runners_out && !l->timers_out && !l->telling && !l->unlocking;
}

/* What comes back by itself: runners, timers' callbacks. The lock is held, and given up meanwhile. */
static bool await_all_home(struct tw_limiter *l)
{
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + HOMECOMING_NS;
	bool waits = l->service->threaded || l->base.executor != tw_executor_inline();
	if (l->rate_armed &&
	    (tw_cancel(l->service, l->rate_timer) == TW_CANCELLED || tw__work_recall(&l->rate_retry))) {
		l->rate_armed = false;
		l->timers_out--;
	}
	if (l->time_retry_out && tw__work_recall(&l->time_retry)) {
		l->time_retry_out = false;
		l->timers_out--;
	}
	while (!all_home(l) && waits) {
		pthread_mutex_unlock(&l->lock);
		sched_yield();
		tw__limiter_relock(l);
		waits = tw_clock_now(tw_clock_monotonic()) < end_ns;
	}
	return all_home(l);
}

int tw_limiter_destroy(tw_limiter *l)
{
	if (!l)
		return 0;
	if (tw__forked(l->service)) {
		free_all(l);
		return 0;
	}
	if (tw__limiter_is_inside(l, NULL))
		return -EDEADLK;
	tw__limiter_relock(l);
	bool over = !l->unfinished && !l->running && !l->quiet_waiters && !l->room_waiters && await_all_home(l);
	pthread_mutex_unlock(&l->lock);
	if (!over)
		return -EBUSY;
	tw__base_let_go(&l->base);
	free_all(l);
	return 0;
}
