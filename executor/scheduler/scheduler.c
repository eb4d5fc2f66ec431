/* Creation, end and statistics of schedulers. */

#include "wheel/core/frame.h"
#include "executor/scheduler/host.h"
#include "executor/scheduler/run.h"
#include "executor/scheduler/submit.h"

/* --------------------------------------------------------------------- config */

static const int64_t usual_timeout_ns[TW_PRIORITIES] = {
    [TW_PRIORITY_IMMEDIATE] = -INT64_C(1000000),
    [TW_PRIORITY_USER_BLOCKING] = INT64_C(250000000),
    [TW_PRIORITY_NORMAL] = INT64_C(5000000000),
    [TW_PRIORITY_LOW] = INT64_C(10000000000),
    [TW_PRIORITY_IDLE] = INT64_C(1073741823000000),
};

#define MOST_NS (INT64_C(1) << 62)

static bool timeouts_are_good(const struct tw_scheduler_config *config)
{
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (config->timeout_ns[i] > MOST_NS || config->timeout_ns[i] < -MOST_NS)
			return false;
	return config->timeout_ns[TW_PRIORITY_NONE] == 0;
}

static int scheduler_config_check(const struct tw_scheduler_config *c)
{
	const char *bad = NULL;
	bool is_manual = c->host == TW_HOST_MANUAL;
	tw__need(&bad, c->max_tasks <= TW__NODES_MAX, "max_tasks");
	tw__need(&bad, c->slice_ns <= (uint64_t)MOST_NS, "slice_ns");
	tw__need(&bad, timeouts_are_good(c), "timeout_ns");
	tw__need(&bad, (unsigned)c->host <= TW_HOST_MANUAL, "host");
	tw__need(&bad, is_manual ? !c->executor : tw__executor_is_sound(c->executor), "executor");
	tw__need(&bad, is_manual || !(c->wanted || c->wanted_arg), "wanted");
	return tw__bad_member(-EINVAL, "tw_scheduler_create", "tw_scheduler_config", bad);
}

/*
 * Copies a caller's config, checks it and fills in the defaults. cfg may be NULL.
 * 0, or -EINVAL and -E2BIG with a text.
 */
static int read_config(struct tw_scheduler_config *config, const struct tw_scheduler_config *cfg)
{
	int r = TW__CONFIG_READ(tw_scheduler_config, config, executor, cfg);
	if (!r)
		r = scheduler_config_check(config);
	if (r)
		return r;
	if (!config->max_tasks)
		config->max_tasks = 1 << 20;
	if (!config->slice_ns)
		config->slice_ns = 5000000;
	for (int i = 0; i < TW_PRIORITIES; i++)
		if (!config->timeout_ns[i])
			config->timeout_ns[i] = usual_timeout_ns[i];
	return 0;
}

/* ------------------------------------------------------------------------ birth */

/*
 * Submitters and host hold the lock for some 50 ns in alternation. Therefore a mutex that spins
 * for a moment before it sleeps, if the system has one.
 */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
#ifdef __GLIBC__
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void init(tw_scheduler *scheduler)
{
	/* As many again may be cleared. */
	tw__nodes_init(&scheduler->nodes, sizeof(struct tw__task));
	tw__work_init(&scheduler->work, scheduler->base.service, scheduler->base.executor,
		      tw__scheduler_host_called);
	tw__work_init(&scheduler->retry, scheduler->base.service, &tw__inline_executor,
		      tw__scheduler_retry);
	init_lock(&scheduler->lock);
}

int tw_scheduler_create(tw_scheduler **out, tw_service *service,
			const struct tw_scheduler_config *cfg)
{
	struct tw_scheduler_config config;
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	int r = read_config(&config, cfg);
	if (r)
		return r;
	tw_scheduler *scheduler = calloc(1, sizeof *scheduler);
	r = scheduler ? tw__base_hold(&scheduler->base, service, config.executor) : -ENOMEM;
	if (r) {
		free(scheduler);
		return r;
	}
	scheduler->config = config;
	init(scheduler);
	*out = scheduler;
	return 0;
}

/* -------------------------------------------------------------------------- end */

/*
 * The lock is held; it is released while done functions are called. The task that runs is not
 * touched.
 */
static void scheduler_drop_all(tw_scheduler *scheduler, struct tw__heap *heap)
{
	struct tw__task *task;
	while ((task = tw__task_of(tw__heap_pop_loose(heap)))) {
		if (task == scheduler->current)
			continue; /* out of its heap; its turn ends the rest */
		if (tw__task_is_cleared(task)) {
			tw__scheduler_forget(scheduler, task);
			continue;
		}
		struct tw__deferred_done deferred = tw__deferred_done_of(task);
		scheduler->stats.dropped++;
		tw__scheduler_give_back(scheduler, task);
		scheduler->host.out++; /* another close waits for the done function */
		pthread_mutex_unlock(&scheduler->lock);
		tw__scheduler_tell(scheduler, deferred, TW_FATE_DROPPED, -ESHUTDOWN);
		pthread_mutex_lock(&scheduler->lock);
		scheduler->host.out--;
		tw__bell_ring(&scheduler->returned);
	}
}

/*
 * Takes back what is out, if possible: no other thread might ever call it. If the driver has it in
 * this moment, and the executor refuses it, the driver runs it.
 */
static void recall_host(tw_scheduler *scheduler)
{
	bool requested = scheduler->host.state == TW__HOST_REQUESTED;
	tw__scheduler_put_timer_away(scheduler);
	if (requested &&
	    (scheduler->config.host == TW_HOST_MANUAL || tw__work_recall(&scheduler->work)))
		scheduler->host.state = TW__HOST_IDLE;
	else if (requested)
		tw__base_leave_work(&scheduler->base, &scheduler->work);
	if (scheduler->host.retrying && tw__work_recall(&scheduler->retry))
		scheduler->host.retrying = false;
}

static bool has_returned(const tw_scheduler *scheduler)
{
	return scheduler->host.state == TW__HOST_IDLE && !scheduler->host.out &&
	       !scheduler->host.retrying;
}

/* The lock is held. */
static void scheduler_shut(tw_scheduler *scheduler)
{
	scheduler->closed = true;
	recall_host(scheduler);
	scheduler_drop_all(scheduler, &scheduler->timers);
	scheduler_drop_all(scheduler, &scheduler->tasks);
}

int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns)
{
	int r = TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	if (tw__scheduler_is_inside(scheduler))
		return tw__waits_inside(__func__);
	pthread_mutex_lock(&scheduler->lock);
	scheduler_shut(scheduler);
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	while (!has_returned(scheduler) &&
	       tw__bell_await(&scheduler->returned, &scheduler->lock, deadline_ns))
		continue;
	r = has_returned(scheduler) ? 0 : -ETIMEDOUT;
	pthread_mutex_unlock(&scheduler->lock);
	return r;
}

static void scheduler_free_all(tw_scheduler *scheduler)
{
	tw__nodes_fini(&scheduler->nodes);
	tw__heap_free(&scheduler->tasks);
	tw__heap_free(&scheduler->timers);
	free(scheduler);
}

/* It has returned, and no other thread uses it. */
static void scheduler_end(tw_scheduler *scheduler)
{
	struct tw__base base = scheduler->base;
	pthread_mutex_destroy(&scheduler->lock);
	scheduler_free_all(scheduler);
	tw__base_let_go(&base);
}

void tw__scheduler_unlock_returned(tw_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	/* destroyed: the last thing that returns frees all */
	bool last = scheduler->base.left && has_returned(scheduler);
	tw__bell_ring(&scheduler->returned);
	pthread_mutex_unlock(&scheduler->lock);
	if (tw_unlikely(last))
		scheduler_end(scheduler);
}

/*
 * Tells whether other threads finish what is out without the calling thread. A turn that runs, runs
 * elsewhere. The scheduler's own pool runs the host callback; the service's tick thread runs timers
 * and retries. Another executor may be a queue that this very thread pumps.
 */
static bool others_return_it(const tw_scheduler *scheduler)
{
	const struct tw__base *base = &scheduler->base;
	if (scheduler->host.state == TW__HOST_RUNNING)
		return true;
	if (scheduler->host.state == TW__HOST_REQUESTED && !tw__pool_of(base->executor))
		return false;
	return tw__base_may_wait(base) &&
	       (base->service->threaded || (!scheduler->host.out && !scheduler->host.retrying));
}

static int scheduler_destroy(tw_scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->lock);
	scheduler_shut(scheduler);
	while (!has_returned(scheduler) && others_return_it(scheduler))
		tw__bell_await(&scheduler->returned, &scheduler->lock, UINT64_MAX);
	bool returned = has_returned(scheduler);
	if (!returned)
		tw__base_leave(&scheduler->base);
	pthread_mutex_unlock(&scheduler->lock);
	if (returned)
		scheduler_end(scheduler);
	return 0;
}

int tw_scheduler_destroy(tw_scheduler *scheduler)
{
	if (scheduler && tw__scheduler_is_inside(scheduler))
		return tw__waits_inside(__func__);
	return TW__BASE_DESTROY(scheduler, scheduler_free_all, scheduler_destroy);
}

/* ------------------------------------------------------------------- statistics */

int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out)
{
	int r = TW__OUT_CHECK(tw_scheduler_stats, out, completed);
	if (!r)
		r = TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	pthread_mutex_lock(&scheduler->lock);
	struct tw_scheduler_stats stats = scheduler->stats;
	uint64_t held = scheduler->tasks.count + (uint64_t)scheduler->timers.count;
	struct tw__task *current = scheduler->current;
	/* Close has taken it out of the heap. */
	held += current && !tw__heap_has(&current->item) && current->running;
	stats.host_requested = scheduler->host.state == TW__HOST_REQUESTED;
	stats.host_timer = scheduler->host.timer_set;
	stats.delayed = scheduler->timers.count - scheduler->timers_cleared;
	pthread_mutex_unlock(&scheduler->lock);
	stats.ready = held - stats.cleared - stats.delayed;
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
