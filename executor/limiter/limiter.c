/* The public functions of the limiter as a whole. Calls all others but job.c. */
#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

static bool is_idle(const struct tw_limiter *l)
{
	return !l->unfinished && l->idles.told == l->idles.reached;
}

/* ------------------------------------------------------------------- create */

/* A pool must have room for n jobs that block, and one run more. */
static bool holds(struct tw_limiter *l, uint32_t n)
{
	struct tw__base base = tw__object_base(&l->object);
	unsigned capacity = base.pooled ? tw__pool_limits(base.executor)->capacity : 0;
	bool blocks = !(l->config.flags & TW_LIMITER_NONBLOCKING);
	return n > 0 && n <= TW__MAX_CONCURRENCY && (!blocks || !capacity || n < capacity);
}

/* Both are 0 without a rate. With TW_FOREVER the bucket is refilled by hand. */
static bool interval_fits(uint32_t starts, uint64_t interval_ns)
{
	return (interval_ns <= TW_MAX_DELAY_NS || interval_ns == TW_FOREVER) &&
	       (interval_ns == 0) == (starts == 0);
}

static int config_check(const struct tw_limiter_config *c)
{
	const char *bad = NULL;
	const uint32_t flags = TW_LIMITER_COLLECT | TW_LIMITER_PAUSED_REFUSES |
			       TW_LIMITER_NONBLOCKING | TW_LIMITER_PAUSED | TW_LIMITER_NO_QUEUE;
	tw__need(&bad, !(c->flags & ~flags), "flags");
	tw__need(&bad, tw__executor_is_sound(c->executor), "executor");
	tw__need(&bad, c->max_pending <= (c->flags & TW_LIMITER_NO_QUEUE ? 0 : TW__NODES_MAX),
		 "max_pending");
	tw__need(&bad, c->rate_starts <= TW__MAX_RATE, "rate_starts");
	tw__need(&bad, interval_fits(c->rate_starts, c->rate_interval_ns), "rate_interval_ns");
	return tw__bad_member(-EINVAL, "tw_limiter_create", "tw_limiter_config", bad);
}

static void limiter_fini(struct tw__object *object)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object, object);
	tw__line_move(&l->idles.due, &l->idles.waiting);
	while (l->idles.waiting.first) /* in a forked child */
		tw__free(tw__listener_of(tw__line_pop(&l->idles.waiting)));
	tw__free(l->results);
	tw__free(l->rate.starts_ns);
	tw__nodes_fini(&l->nodes);
}

static bool limiter_look(struct tw__object *object, struct tw__figures *out)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object, object);
	const struct tw__counters *c = &l->counters;
	tw__inbox_look(l, 256);
	*out = (struct tw__figures){.running = l->permits.attempts,
				    .waiting = l->line.count,
				    .since_ns = l->line.first ? l->line.first->since_ns : 0,
				    .delayed = l->delayed.count,
				    .rejected = c->rejected,
				    .retried = c->retried,
				    .timed_out = c->ended[TW_JOB_STATUS_TIMED_OUT],
				    .queue = &c->queue,
				    .run = &c->run};
	return tw__object_has_mail(object);
}

static const struct tw__object_kind limiter_kind = {"limiter", sizeof(struct tw_limiter),
						    offsetof(struct tw_limiter, object),
						    limiter_fini, limiter_look};

static void set_up(struct tw_limiter *l, tw_service *service, const struct tw_limiter_config *c)
{
	l->service = service;
	l->config = *c;
	tw__object_set_name(&l->object, c->name);
	if (!c->max_pending && !(c->flags & TW_LIMITER_NO_QUEUE))
		l->config.max_pending = TW__NODES_MAX;
	l->has_inbox = l->config.max_pending == TW__NODES_MAX &&
		       !(c->flags & ~(uint32_t)(TW_LIMITER_NONBLOCKING | TW_LIMITER_PAUSED));
	l->paused = c->flags & TW_LIMITER_PAUSED;
	l->permits.limit = c->max_concurrency;
	l->random = c->seed ? tw__random_mix(c->seed) : tw__living_seed(service);
	tw__line_init(&l->idles.waiting);
	tw__line_init(&l->idles.due);
	tw__line_init(&l->tells);
	tw__nodes_init(&l->nodes, sizeof(struct tw__job));
	tw__work_init(&l->run, service, tw__object_base(&l->object).executor, tw__limiter_run);
	l->run.is_job = !(c->flags & TW_LIMITER_NONBLOCKING);
}

int tw_limiter_create(tw_limiter **out, tw_service *service, const struct tw_limiter_config *cfg)
{
	struct tw_limiter_config config;
	if (!out || !service || !cfg)
		return tw__invalid("%s is NULL", !out ? "out" : service ? "config" : "service");
	int r = TW__STRUCT_READ(tw_limiter_config, &config, executor, cfg);
	if (!r)
		r = config_check(&config);
	if (r)
		return r;
	struct tw__object *object;
	r = tw__object_create(&object, service, config.executor, tw__limiter_tell, &limiter_kind);
	if (r)
		return r;
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, object, object);
	set_up(l, service, &config);
	bool fits = holds(l, config.max_concurrency);
	if (fits && config.rate_starts)
		r = tw__rate_set(l, config.rate_starts, config.rate_interval_ns);
	if (fits && !r)
		*out = l;
	else
		(void)tw_limiter_destroy(l);
	return fits ? r : tw__bad_member(-EINVAL, __func__, "tw_limiter_config", "max_concurrency");
}

int tw_limiter_destroy(tw_limiter *l)
{
	if (!l || tw__object_destroy_forked(&l->object))
		return 0;
	if (tw__inside_object(&l->object, NULL))
		return tw__waits_inside(__func__);
	tw__limiter_lock(l);
	if (!is_idle(l) || l->permits.attempts || l->object.sleepers) {
		tw__limiter_leave(l, 0);
		return -EBUSY;
	}
	struct tw__base base = tw__object_base(&l->object);
	tw__object_close(&l->object);
	tw__base_leave_work(&base, &l->run); /* if it is still out, it finds no job */
	tw__due_stop(&l->rate.due);
	tw__limiter_leave(l, 0);
	tw__object_lock(&l->object);
	tw__object_destroy(&l->object);
	return 0;
}

/* -------------------------------------------------------------- idle and close */

/*
 * Calls what the tick thread has left, since the executor may refuse it forever. Drops jobs in the
 * order in which they would have run, and those that wait for a retry last. The lock is given up
 * now and then. The caller is a user. By `inside`, tw_job_wait knows who drops.
 */
static void drop_all(struct tw_limiter *l)
{
	struct tw__inside inside = {
	    .object = &l->object, .item = &l->line, .outer = tw__innermost_inside};
	struct tw__job *job;
	unsigned steps = 0;
	l->ended = true;
	if (tw__inside_object(&l->object, &l->line))
		return; /* a `done` that the drop calls has closed: that drop goes on */
	tw__innermost_inside = &inside;
	while (l->tells.first || (job = l->line.first) || (job = l->delayed.first)) {
		if (l->tells.first) {
			tw__tell_next(l);
			continue;
		}
		tw__job_leave_line(l, job, tw_service_now(l->service));
		tw__settle(l, job, TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
		tw__job_go_on(l, job, TW__CALLER);
		tw__object_breathe(&l->object, &steps);
	}
	tw__tell_next(l); /* idle listeners; one turn of them, since they may go on forever */
	tw__innermost_inside = inside.outer;
}

/*
 * Waits for an idle that comes after the call's beginning, and whose listeners have returned. An
 * earlier one is not enough, even if its listeners are called only now: somebody has submitted
 * since. The lock is given up meanwhile. The caller is a user.
 */
static int await_idle(struct tw_limiter *l, uint64_t deadline_ns, bool in_time, bool drops)
{
	uint64_t wanted = l->idles.reached + (l->unfinished != 0);
	for (;;) {
		if (drops)
			drop_all(l);
		if (l->idles.told >= wanted)
			return 0;
		if (!in_time)
			return -ETIMEDOUT;
		if (drops && tw__idle_is_due(l)) /* a listener listens again */
			in_time = tw_clock_now(tw_clock_monotonic()) < deadline_ns;
		else
			in_time = tw__object_await(&l->object, deadline_ns);
		tw__inbox_look(l, UINT_MAX);
	}
}

/* Without a mode the call only waits. A drain without a timeout only begins. */
static int wait_or_close(const char *call, struct tw_limiter *l, uint64_t timeout_ns,
			 const enum tw_close_mode *mode)
{
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	bool drops = mode && *mode == TW_CLOSE_DROP;
	int r = tw__limiter_enter(call, l);
	if (r)
		return r;
	bool is_inside = timeout_ns && tw__inside_object(&l->object, NULL);
	if (mode && !is_inside && tw__object_close(&l->object))
		tw__object_ring(&l->object); /* threads that wait for room look */
	tw__inbox_look(l, UINT_MAX);         /* all that came before the close */
	r = is_inside ? -EDEADLK : await_idle(l, deadline_ns, timeout_ns != 0, drops);
	if (r == -ETIMEDOUT && mode && !drops && timeout_ns)
		r = await_idle(l, 0, false, true);
	tw__limiter_leave(l, 1);
	return is_inside ? tw__waits_inside(call) : r;
}

int tw_limiter_wait_idle(tw_limiter *l, uint64_t timeout_ns)
{
	return wait_or_close(__func__, l, timeout_ns, NULL);
}

int tw_limiter_close(tw_limiter *l, enum tw_close_mode mode, uint64_t timeout_ns)
{
	if ((unsigned)mode > TW_CLOSE_DRAIN)
		return tw__bad(-EINVAL, __func__, "mode");
	return wait_or_close(__func__, l, timeout_ns, &mode);
}

int tw_limiter_on_idle(tw_limiter *l, tw_idle_fn *fn, void *arg)
{
	int r = fn ? tw__limiter_enter(__func__, l) : tw__invalid("fn is NULL");
	if (r)
		return r;
	struct tw__listener *listener = tw__alloc(sizeof *listener);
	if (listener) {
		*listener =
		    (struct tw__listener){.fn = fn, .arg = arg, .context = tw__context_capture()};
		tw__line_append(&l->idles.waiting, tw__in_line_link(&listener->place));
	}
	if (listener && !l->unfinished) {
		tw__idle_reached(l);
		tw__tell_idle(l);
	}
	tw__limiter_leave(l, 1);
	return listener ? 0 : -ENOMEM;
}

/* -------------------------------------------------------------------- change */

int tw_limiter_set_paused(tw_limiter *l, bool paused)
{
	int r = tw__limiter_enter(__func__, l);
	if (r)
		return r;
	l->paused = paused;
	tw__object_ring(&l->object); /* threads that wait for room look */
	tw__limiter_leave(l, 1);
	return 0;
}

int tw_limiter_set_max_concurrency(tw_limiter *l, uint32_t max_concurrency)
{
	int r = tw__limiter_enter(__func__, l);
	if (r)
		return r;
	bool fits = holds(l, max_concurrency);
	if (fits)
		l->permits.limit = max_concurrency;
	tw__limiter_leave(l, 1);
	return fits ? 0 : tw__bad(-EINVAL, __func__, "max_concurrency");
}

int tw_limiter_set_rate(tw_limiter *l, uint32_t starts, uint64_t interval_ns)
{
	if (starts > TW__MAX_RATE || (!starts && interval_ns))
		return tw__bad(-EINVAL, __func__, "starts");
	if (!interval_fits(starts, interval_ns))
		return tw__bad(-EINVAL, __func__, "interval_ns");
	int r = tw__limiter_enter(__func__, l);
	if (r)
		return r;
	r = tw__rate_set(l, starts, interval_ns);
	tw__limiter_leave(l, 1);
	return r;
}

/* ---------------------------------------------------------------- statistics */

int tw_limiter_stats(tw_limiter *l, struct tw_limiter_stats *out)
{
	int r = TW__OUT_CHECK(tw_limiter_stats, out, running);
	if (!r)
		r = TW__OBJECT_CHECK(l, "limiter");
	if (r)
		return r;
	tw__limiter_lock(l);
	const struct tw__counters *c = &l->counters;
	struct tw_limiter_stats stats = {
	    .max_concurrency = l->permits.limit,
	    .running = l->permits.attempts,
	    .late = l->permits.late,
	    .permits = l->permits.out,
	    .debt = l->permits.out > l->permits.limit ? l->permits.out - l->permits.limit : 0,
	    .pending = c->added - c->settled - (l->permits.attempts - l->permits.late),
	    .retrying = l->delayed.count,
	    .added = c->added,
	    .succeeded = c->ended[TW_JOB_STATUS_SUCCEEDED],
	    .failed = c->ended[TW_JOB_STATUS_FAILED],
	    .cancelled = c->ended[TW_JOB_STATUS_CANCELLED],
	    .timed_out = c->ended[TW_JOB_STATUS_TIMED_OUT],
	    .dropped = c->ended[TW_JOB_STATUS_DROPPED],
	    .retried = c->retried,
	    .rejected = c->rejected,
	    .refused_completions = c->refused_completions,
	    .queue = tw__histogram_read(&c->queue),
	    .run = tw__histogram_read(&c->run)};
	if (stats.queue.count)
		stats.queue_mean_ns = tw_load_relaxed(&c->queue.sum_ns) / stats.queue.count;
	if (stats.run.count)
		stats.run_mean_ns = tw_load_relaxed(&c->run.sum_ns) / stats.run.count;
	tw__object_unlock(&l->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
